"""Whether clients suffer from a throttle of replication that is too high."""

from typing import Any

import pytest

from ...cases import cases
from ...rows import Row, at, config, reassigned, replicated, request, row, setting, throttled
from .rate_rows import CAPACITY, MOVES, NOW, BySide, demand, demands, sent
from .view_tables import Tables, picked, view


def answered(minute: int, total_ms: float, count: int = 30, **others: Any) -> list[Row]:
    """PRODUCEs of a minute before the last one (0), all as slow."""
    second = NOW - 60 * minute
    row = request(second, "PRODUCE", total_time_ms=total_ms)
    return [row | others for _ in range(count)]


FETCH = {"api": "FETCH", "remote_time_ms": 0.0}
QUIET = [row for n in range(3, 30) for row in answered(n, 20.0)]
QUIET_FETCHES = [row | FETCH for row in QUIET]


SLOW = QUIET + answered(0, 1_100.0) + answered(1, 1_100.0) + answered(2, 1_100.0)
ANSWERED: dict[str, tuple[list[Row], bool | None]] = {
    "as usual": (QUIET + answered(0, 30.0) + answered(1, 30.0), True),
    "two minutes": (QUIET + answered(0, 1_100.0) + answered(1, 1_100.0), False),
    "one minute is none": (QUIET + answered(0, 1_100.0), True),
    "nor two apart": (QUIET + answered(0, 1_100.0) + answered(2, 1_100.0), True),
    "it is over": (QUIET + answered(3, 1_100.0) + answered(4, 1_100.0), None),
    "too few to tell": (QUIET + answered(0, 1_100.0, 19) + answered(1, 1_100.0, 19), True),
    "it is always so": ([row for n in range(30) for row in answered(n, 1_100.0)], True),
    "one in two hundred": (
        [row for n in range(2) for row in [*answered(n, 20.0, 199), *answered(n, 9e3, 1)]] + QUIET,
        True,
    ),
    "at another broker": (
        QUIET + answered(0, 1_100.0, broker_id=2) + answered(1, 1_100.0, broker_id=2),
        None,
    ),
    "followers are no clients": (
        QUIET + answered(0, 1_100.0, replica_id=3) + answered(1, 1_100.0, replica_id=3),
        None,
    ),
    "consumers wait for the broker": (
        QUIET_FETCHES + answered(0, 600.0, **FETCH) + answered(1, 600.0, **FETCH),
        False,
    ),
    "consumers wait for records": (
        QUIET_FETCHES
        + [row | {"remote_time_ms": 599.0} for row in answered(0, 600.0, **FETCH)]
        + [row | {"remote_time_ms": 599.0} for row in answered(1, 600.0, **FETCH)],
        True,
    ),
}
BORNE: dict[str, tuple[list[Row], bool]] = {
    "without conf": ([], False),
    "a higher limit": ([setting("replication.produce_p99_ms", 1_200)], True),
    "a higher rise": ([setting("replication.p99_rise_factor", 60.0)], True),
}


@pytest.fixture(scope="module")
def demanded() -> dict[str, BySide]:
    cases = {case: {"requests": served} for case, (served, _) in ANSWERED.items()}
    cases |= {
        case: {"requests": SLOW, "settings": settings} for case, (settings, _) in BORNE.items()
    }
    return demands(cases)


@pytest.mark.parametrize("case", ANSWERED)
def test_whether_clients_are_well(demanded: dict[str, BySide], case: str) -> None:
    assert demanded[case][1, "leader"]["are_clients_healthy"] == ANSWERED[case][-1]


@pytest.mark.parametrize("case", BORNE)
def test_conf_says_what_clients_bear(demanded: dict[str, BySide], case: str) -> None:
    assert demanded[case][1, "leader"]["are_clients_healthy"] == BORNE[case][-1]


def test_what_clients_bore_before_the_rate_was_changed_says_nothing_of_it() -> None:
    actual = demand(requests=SLOW, replication_throttles=[throttled(NOW, rate_set_at=at(NOW + 1))])
    assert actual[1, "leader"]["are_clients_healthy"] is None


def test_while_clients_suffer_what_a_broker_carries_is_too_much() -> None:
    limited = {"leader_throttled_bytes": 600}
    actual = demand(
        settings=[CAPACITY],
        requests=SLOW,
        rack_traffic=[sent(NOW - 60 * n, 1_000 + n) for n in range(5)],
        replication_traffic=[
            replicated(NOW - 60 * n, 1, 2, bytes=600, **limited) for n in (0, 1, 3)
        ],
    )[1, "leader"]
    assert (actual["capacity_bytes_per_s"], actual["capacity_source"]) == (1_011.0, "latency")


IN_SYNC = {"topic_id": "t1", "topic": None}


@cases(
    ("changes", "least", "shrunk"),
    ("down to its least", [(NOW - 50, 2)], "2", [1, 1]),
    ("under its least", [(NOW - 50, 1)], "2", [1, 1]),
    ("more than its least", [(NOW - 50, 2)], "1", [0, 0]),
    ("a while ago", [(NOW - 300, 2)], "2", [0, 0]),
    ("it grows again", [(NOW - 900, 1), (NOW - 50, 2)], "2", [0, 0]),
)
@cases("seen", ("no requests", ([], None)), ("well", (QUIET + answered(0, 20.0), True)))
def test_partitions_at_their_least_in_sync_replicas(
    changes: list[tuple[int, int]],
    least: str,
    shrunk: list[int],
    seen: tuple[list[Row], bool | None],
) -> None:
    """They need bandwidth: no client waits for them, and no rate is halved."""
    least_key, of_topic = "min.insync.replicas", {"entity_type": "topic", "entity_name": "orders"}
    of_broker = {"entity_type": "broker", "entity_name": "1"}
    content: Tables = {
        "replicas": [
            row("replicas", 0, {}, broker_id=n, topic="orders", is_in_sync=True) for n in (1, 2, 3)
        ],
        "topics": [row("topics", 0, {}, topic="orders")],
        "configs": [
            config(0, least_key, least, **of_topic),
            config(0, least_key, "3", **of_broker),
        ],
    }
    shrinks = [
        reassigned(second, "in_sync", n, **IN_SYNC)
        for second, count in changes
        for n in range(1, count + 1)
    ]
    content |= {"reassignment_changes": shrinks, "requests": seen[0]}
    actual = demand(**content)
    assert [row["shrunk_partitions"] for row in actual.values()] == shrunk
    assert actual[1, "leader"]["are_clients_healthy"] == seen[1]
    advice = view("replication_rate_advice", {"replication_throttles": MOVES} | content)
    assert picked(advice, "reason") == [("capacity_unknown",), ("capacity_unknown",)]


NAMED = {"cluster_id": "c1", "event_time": at(0), "topic_id": "t1", "topic": "orders"}
JOINED = [reassigned(NOW - 200, "in_sync", n, **IN_SYNC) for n in (1, 2)]
LEFT = reassigned(NOW - 50, "in_sync", 2, **IN_SYNC)
SEEN = NAMED | {"event_time": at(NOW - 50), "partition": 0, "is_removed": False}


@cases(
    ("changes", "replicas", "shrunk"),
    ("one fell out, by the log alone", [*JOINED, LEFT], [], 2),
    (
        "a move took away what it was to",
        [*JOINED, LEFT, reassigned(NOW - 300, "requested", 2)],
        [],
        0,
    ),
    ("how many there were before is not known", [LEFT], [], 0),
    (
        "a snapshot does not know when",
        JOINED,
        [SEEN | {"broker_id": n, "is_in_sync": n == 2} for n in (1, 2)],
        0,
    ),
)
def test_a_partition_shrinks_where_it_should_have_more(
    changes: list[Row], replicas: list[Row], shrunk: int
) -> None:
    content = {"topics": [NAMED | {"is_removed": False}], "replicas": replicas}
    content |= {"replication_throttles": MOVES, "reassignment_changes": changes}
    assert len(view("isr_shrinks", content)) == shrunk
