"""What snapshots alone show of moves and of throttles that are left over."""

from typing import Any

from ... import case_tables
from ...rows import Row, altered, at, broker_config, config, counted, row, setting
from .view_tables import Picked, Tables, assert_shown

NOW = 3_600
MOVED: Row = {"cluster_id": "c1", "topic": "t", "partition": 0, "is_removed": False}
LISTED = "leader.replication.throttled.replicas"
RATE = "follower.replication.throttled.rate"


def moving(second: float, broker_id: int = 3, **others: Any) -> Row:
    return MOVED | {"event_time": at(second), "broker_id": broker_id, "role": "adding"} | others


def size(second: float, broker_id: int, size_bytes: int, **others: Any) -> Row:
    row = {"event_time": at(second), "broker_id": broker_id, "size_bytes": size_bytes}
    return MOVED | row | {"log_dir": "/data", "is_future": False} | others


def replica(second: float, broker_id: int, **others: Any) -> Row:
    row = {"event_time": at(second), "topic_id": "i", "broker_id": broker_id}
    state = {"is_leader": broker_id == 1, "is_in_sync": True}
    return MOVED | row | state | others


def taken(*seconds: float, targets: tuple[str, ...] = (), refused: bool = False) -> list[Row]:
    """Snapshots of these times, as they count themselves."""
    names = targets or ("configs", "moving_replicas", "replica_sizes")
    return [
        counted(second, n, outcome, 1, job="snapshot", query_id="snapshot", target=name)
        for n, second in enumerate(seconds)
        for name in names
        for outcome in (("in", "left_out") if refused and name == "moving_replicas" else ("in",))
    ]


LEADER = [replica(0, 1), size(0, 1, 1_000)]


def move(*rows: Row, snapshots: list[Row]) -> Tables:
    return {
        "moving_replicas": [row for row in rows if "role" in row],
        "replica_sizes": [row for row in (*LEADER, *rows) if "size_bytes" in row],
        "replicas": [row for row in LEADER if "is_leader" in row],
        "pipeline_progress": snapshots,
    }


MOVES: dict[str, tuple[Tables, Picked]] = {
    **case_tables.table(__file__, "MOVES", move, taken, moving, size),
    "its log came after the move": (
        move(moving(10), size(20, 3, 300), snapshots=taken(10, 20)),
        [("moving", 300, 700, 30.0, 700 / 30)],
    ),
}


def test_how_far_a_move_is_by_the_sizes_of_logs() -> None:
    names = ("state", "size_bytes", "bytes_left", "bytes_per_s", "eta_s")
    assert_shown(MOVES, "ongoing_moves", *names)


def listing(second: float, value: str | None = "0:1", **others: Any) -> Row:
    entity = {"entity_type": "topic", "entity_name": "t", "config_source": "DYNAMIC_TOPIC_CONFIG"}
    return config(second, LISTED, value, **entity | others)


def rate(second: float, source: str = "DYNAMIC_BROKER_CONFIG") -> Row:
    return broker_config(RATE, "1000", second, config_source=source)


def throttle(*configs: Row, snapshots: list[Row] | None = None, **others: list[Row]) -> Tables:
    progress = taken(0, 1_800, NOW) if snapshots is None else snapshots
    return {"configs": [*configs], "pipeline_progress": progress} | others


def altered_since(key: str, **others: Any) -> Row:
    """The throttle was removed after the last snapshot."""
    return altered(NOW + 9, key, None, **{"entity_name": "t"} | others)


def taken_back(step: str = "done") -> Row:
    entity = {"entity_type": "topic", "entity_name": "t", "config_key": LISTED}
    return row("config_changes", NOW + 9, entity, step=step, purpose="apply", operation="DELETE")


LIST, RATED = ("stale_list", "t", float(NOW)), ("stale_rate", "1", float(NOW))
BEHIND = [replica(0, 2, is_in_sync=False)]
LEFT: dict[str, tuple[Tables, Picked]] = {
    "nothing needs it": (throttle(listing(0), rate(0)), [LIST, RATED]),
    "a rate of all brokers": (throttle(rate(0, "DYNAMIC_DEFAULT_BROKER_CONFIG")), [RATED]),
    "a static rate throttles nothing": (throttle(rate(0, "STATIC_BROKER_CONFIG")), []),
    "removed since": (throttle(listing(0), listing(60, None)), []),
    "the log shows that it was removed since": (
        throttle(listing(0), rate(0), config_alterations=[altered_since(LISTED)]),
        [RATED],
    ),
    "the topic was deleted since": (
        throttle(listing(0), config_alterations=[altered_since(LISTED, config_key=None)]),
        [],
    ),
    "quotaflow removed it since": (throttle(listing(0), config_changes=[taken_back()]), []),
    "who tried to remove it was refused": (
        throttle(listing(0), config_alterations=[altered_since(LISTED, error_code=42)]),
        [LIST],
    ),
    "quotaflow could not remove it": (
        throttle(listing(0), config_changes=[taken_back(step="refused")]),
        [LIST],
    ),
    "another topic's was removed since": (
        throttle(listing(0), config_alterations=[altered_since(LISTED, entity_name="other")]),
        [LIST],
    ),
    "removed and set again before the snapshot": (
        throttle(listing(0), config_alterations=[altered_since(LISTED, event_time=at(NOW - 9))]),
        [LIST],
    ),
    "an empty list": (throttle(listing(0, "")), []),
    "set just now": (throttle(listing(NOW - 60)), []),
    "conf waits longer": (
        throttle(listing(0), settings=[setting("replication.stale_throttle_s", NOW + 1)]),
        [],
    ),
    "a move goes on": (throttle(listing(0), rate(0), moving_replicas=[moving(0)]), []),
    "a move ended just now": (
        throttle(
            listing(0), rate(0), moving_replicas=[moving(0), moving(NOW - 60, is_removed=True)]
        ),
        [],
    ),
    "a move ended long ago": (
        throttle(listing(0), moving_replicas=[moving(0), moving(60, is_removed=True)]),
        [LIST],
    ),
    "another topic moves": (
        # Its rate may be for that.
        throttle(listing(0), rate(0), moving_replicas=[moving(0, topic="other")]),
        [LIST],
    ),
    "a replica is out of sync": (throttle(listing(0), rate(0), replicas=BEHIND), []),
    "one snapshot": (throttle(listing(NOW), snapshots=taken(NOW)), []),
    "moves are refused": (throttle(listing(0), snapshots=taken(0, 1_800, NOW, refused=True)), []),
    "moves are read since just now": (
        throttle(
            listing(0),
            snapshots=[*taken(0, 1_800, NOW, targets=("configs",)), *taken(NOW - 60, NOW)],
        ),
        [],
    ),
}


def test_which_throttles_are_left_over_by_snapshots_alone() -> None:
    names = ("finding", "entity_name", "age_s")
    assert_shown(LEFT, "throttle_leftovers ORDER BY finding", *names)


MANAGED = [setting("replication.remove_leftovers", "true")]


def logged(second: float) -> list[Row]:
    row = counted(second, 9, "in", 1, job="ingest_request_log", query_id="q", target="requests")
    return [*taken(0, 1_800, NOW), row]


TO_REMOVE = ("topic", "t", LISTED, None, "0:1", "leftover_list")
REMOVALS: dict[str, tuple[Tables, Picked]] = {
    "conf does not let plans": (throttle(listing(0)), [(*TO_REMOVE, "leftovers_not_managed")]),
    "conf lets them": (throttle(listing(0), settings=MANAGED), [(*TO_REMOVE, None)]),
    "a rate": (
        throttle(rate(0), settings=MANAGED),
        [("broker", "1", RATE, None, "1000", "leftover_rate", None)],
    ),
    "a rate of all brokers": (
        throttle(rate(0, "DYNAMIC_DEFAULT_BROKER_CONFIG"), settings=MANAGED),
        [("broker", "1", RATE, None, "1000", "leftover_rate", "default_of_all_brokers")],
    ),
    "a request log shows who set it": (
        throttle(listing(0), settings=MANAGED, snapshots=logged(NOW - 60)),
        [],
    ),
    "the request log ended two days ago": (
        throttle(listing(0), settings=MANAGED, snapshots=logged(NOW - 172_800)),
        [(*TO_REMOVE, None)],
    ),
    "a move goes on": (throttle(listing(0), settings=MANAGED, moving_replicas=[moving(0)]), []),
}


def test_what_snapshots_alone_show_as_left_over_is_removed_if_conf_lets_plans() -> None:
    of_leftovers = "desired_configs WHERE evidence_table = 'throttle_leftovers'"
    names = ("entity_type", "entity_name", "config_key", "config_value", "prior_value")
    assert_shown(REMOVALS, of_leftovers, *names, "reason_code", "blocked_reason")
