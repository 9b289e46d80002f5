"""What is wrong with brokers, groups and topics; each fault has a twin that is well."""

from typing import Any

from ... import case_tables
from ...rows import Row, at, row
from .test_client_diagnoses import PEERS, among_healthy, minutes
from .view_tables import Picked, Tables, assert_shown, by_case, picked, signals, view

SHOWN = ("symptom", "cause", "detail", "is_ongoing")


def of_kind(subject_kind: str) -> str:
    order = "ORDER BY group_id, topic, broker_id, symptom, rank"
    return f"diagnoses WHERE subject_kind = '{subject_kind}' {order}"


def diagnosed(subject_kind: str, content: Tables) -> list[Row]:
    return view(of_kind(subject_kind), content)


def waiting(part: str, hit: int, ms: float = 400.0) -> Tables:
    """So many of the six clients of a broker wait."""
    faults = [{part: ms} if n < hit else None for n in range(len(PEERS))]
    clients = zip(PEERS, faults, strict=True)
    return {"request_times": [each for name, fault in clients for each in minutes(name, fault)]}


def noisy(hit: int) -> Tables:
    content = waiting("request_queue", hit)
    content["request_times"] += minutes("User:noisy", {"local": 40.0}, requests=1_000)
    return content


BROKERS: dict[str, tuple[Tables, Picked]] = {
    "a slow disk": (waiting("local", 6), [("slow", "slow_broker", "1", True)]),
    "few network threads": (waiting("response_queue", 3), [("slow", "busy_network", "1", True)]),
    "it pauses": (waiting("request_queue", 4), [("slow", "stalled_broker", "1", True)]),
    "a neighbour of all": (noisy(5), [("slow", "noisy_neighbour", "noisy", True)]),
    "one client waits for a network thread": (waiting("response_queue", 1), []),
    "two of six do": (waiting("response_queue", 2), []),
    "its clients are slow to read": (waiting("send", 6), []),
    "its clients wait for followers": (waiting("remote", 6), []),
    "a neighbour whom nobody notices": (noisy(0), []),
    "all is well": (among_healthy(), []),
}


def test_a_broker_is_slow_for_half_of_its_clients() -> None:
    assert_shown(BROKERS, of_kind("broker"), *SHOWN)


def test_a_slow_broker_has_its_share_and_who_is_hit_and_is_one_incident() -> None:
    content = waiting("local", 6)
    (broker,) = diagnosed("broker", content)
    assert (broker["broker_id"], broker["requests"], round(broker["share"], 2)) == (1, 300, 0.99)
    assert signals(broker)["clients_hit"] == signals(broker)["broker_clients"] == 6
    assert broker["facts"] == [{"fact": "hit", "text": "u0, u1, u2, u3, u4, u5"}]
    assert picked(view("incidents", content), "cause", "subjects") == [("slow_broker", 6)]


def test_a_slow_broker_counts_clients_of_both_apis_and_their_requests_to_it_alone() -> None:
    fault = {"response_queue": 400.0}
    rows = [
        each
        for n, name in enumerate(PEERS)
        for api, hit in (("PRODUCE", n < 3), ("FETCH", n >= 3))
        for each in (
            *minutes(name, fault if hit else None, api=api),
            *minutes(name, api=api, broker_id=2),
        )
    ]
    (broker,) = diagnosed("broker", {"request_times": rows})
    assert (signals(broker)["clients_hit"], signals(broker)["broker_clients"]) == (6, 12)
    assert (broker["broker_id"], broker["requests"], round(broker["waited_ms"])) == (1, 300, 405)


def test_two_causes_of_one_wait_have_their_shares_of_it() -> None:
    both = {"local": 200.0, "response_queue": 200.0}
    content = {"request_times": [each for name in PEERS for each in minutes(name, both)]}
    shares = {row["cause"]: round(row["share"], 1) for row in diagnosed("broker", content)}
    assert shares == {"slow_broker": 0.5, "busy_network": 0.5}


def rebalances(*seconds: float, stopped_ms: int | None = 30_000, **others: Any) -> Tables:
    given: Row = {"group_id": "g", "group_type": "classic", "members": 2, "stopped_ms": stopped_ms}
    given |= {"trigger": "missed_heartbeats", "trigger_client_id": "app-1", "reason": None}
    return {
        "rebalances": [
            row("rebalances", second, given | others)
            | {"group_epoch": n, "started_at": at(second), "ended_at": at(second + 31)}
            for n, second in enumerate(seconds)
        ]
    }


STORM = tuple(range(0, 600, 100))
LATE = {"trigger": "member_left", "reason": "consumer poll timeout has expired."}


GROUPS: dict[str, tuple[Tables, Picked]] = {
    "a member that does not come back": (
        rebalances(*STORM),
        [("rebalances", "missed_heartbeats", "app-1", True)],
    ),
    "an application that polls late": (
        rebalances(*STORM, **LATE),
        [("rebalances", "poll_interval", "app-1", True)],
    ),
    "a restart of each of three members": (rebalances(*STORM, members=3), []),
    "members keep what they do not give up": (rebalances(*STORM, stopped_ms=None), []),
    "members stop for a second": (rebalances(*STORM, stopped_ms=1_000), []),
    "four times": (rebalances(*STORM[:4], members=1), []),
    "one in an hour": (rebalances(*range(0, 36_000, 3_600)), []),
}


def test_a_group_rebalances_too_often() -> None:
    assert_shown(GROUPS, of_kind("group"), *SHOWN)


def test_causes_of_rebalances_share_them() -> None:
    content = rebalances(*STORM)
    for each in content["rebalances"][:2]:
        each |= {"trigger": "unknown", "trigger_client_id": None}
    shown = picked(diagnosed("group", content), "rank", "cause", "share", "confidence")
    assert shown == [(1, "missed_heartbeats", 4 / 6, 0.9), (2, "unknown", 2 / 6, None)]


def replicas(*in_sync: bool, leader: int | None = 1, offline: int | None = None) -> list[Row]:
    """A partition with replicas on brokers 1, 2 and so on."""
    given = {"topic_id": "t", "topic": "orders", "partition": 0, "is_removed": False}
    return [
        row("replicas", 0, given)
        | {"broker_id": n, "is_in_sync": is_in_sync, "is_leader": n == leader}
        | {"is_offline": n == offline}
        for n, is_in_sync in enumerate(in_sync, start=1)
    ]


def of_brokers(*brokers: int, **others: Any) -> Tables:
    """A cluster with these brokers, and its tables."""
    seen = {"host": "h", "port": 1, "is_fenced": False, "is_removed": False}
    return {"brokers": [row("brokers", 0, seen, broker_id=n) for n in brokers]} | others


MIN_ISR = [
    row(
        "configs",
        0,
        {"entity_type": "topic", "entity_name": "orders", "config_key": "min.insync.replicas"},
        config_value="2",
        is_removed=False,
    )
]
CAME_BACK = [
    row(
        "reassignment_changes",
        30,
        {"topic_id": "t", "topic": "orders", "partition": 0, "replica_id": 2, "change": "in_sync"},
        error_code=0,
    )
]
ADDED = [
    row(
        "moving_replicas",
        0,
        {"topic": "orders", "partition": 0, "broker_id": 2, "role": "adding"},
        is_removed=False,
    )
]


def test_a_topic_lacks_replicas() -> None:
    named = {"MIN_ISR": MIN_ISR, "ADDED": ADDED, "CAME_BACK": CAME_BACK}
    topics = case_tables.table(
        __file__, "a_topic_lacks_replicas", of_brokers, replicas, row, **named
    )
    assert_shown(topics, of_kind("topic"), *SHOWN)


def test_a_topic_that_lacks_replicas_has_its_leader_and_its_isr() -> None:
    (topic,) = diagnosed("topic", of_brokers(1, replicas=replicas(True, False, True)))
    facts = {each["fact"]: each["text"] for each in topic["facts"]}
    assert facts == {"partition": "0", "leader": "1", "isr": "1, 3"}
    assert topic["share"] == 1.0


def crossed(**others: Any) -> Tables:
    """A step of a client that spares so many bytes an hour."""
    given = {"advice": "set_producer_rack", "principal": "User:a", "client_id": "a"}
    given |= {"topic": "orders", "client_rack": "az-a", "saved_bytes_per_hour": 1e8}
    given |= {"since": at(0), "until": at(3_600), "saved_bytes": 10**8, "lasted_ms": 3_660_000}
    return {"producer_rack_advice": [row("producer_rack_advice", 0, given | others)]}


REMOTE = {"advice": "raise_remote_fetch_quota", "broker_id": 3, "bytes_per_hour": 1e9}
REMOTE |= {"principal": None, "client_id": None, "topic": None}


COSTS: dict[str, tuple[Tables, Picked]] = {
    "a producer": (crossed(), [("client", "set_producer_rack")]),
    "leaders of a topic": (
        crossed(advice="move_leaders", principal=None, client_id=None),
        [("topic", "move_leaders")],
    ),
    "a quota of remote reads": (
        {"remote_read_advice": [row("remote_read_advice", 0, REMOTE, since=at(0), until=at(60))]},
        [("broker", "raise_remote_fetch_quota")],
    ),
    "little crosses racks": (crossed(saved_bytes_per_hour=9e6), []),
    "it is not known how much": (crossed(saved_bytes_per_hour=None), []),
}


def test_a_cost_without_need_has_what_spares_it_and_is_no_incident() -> None:
    assert_shown(COSTS, "diagnoses WHERE symptom = 'cost'", "subject_kind", "cause")
    contents = {case: content for case, (content, _) in COSTS.items()}
    assert not any(by_case(contents, "SELECT * FROM incidents").values())


def test_a_cost_has_its_bytes_and_how_long_they_lasted() -> None:
    (cost,) = view("needless_costs", crossed())
    signals = {each["signal"]: each["value"] for each in cost["evidence"]}
    assert signals == {"bytes": 1e8, "lasted_ms": 3_660_000}
