"""Members of groups, of real lines and of made bodies."""

from typing import Any

import pytest

from quotaflow.pipelines.results.declared import result_of

from .... import case_tables
from ....rule_rows import Rows, compute
from . import golden_groups
from .group_rows import commit, heartbeat, left, old_heartbeat, request


def members(
    requests: Rows, *columns: str, topic_names: Rows | None = None
) -> list[tuple[Any, ...]]:
    rows = compute(result_of("group_members"), requests=requests, topic_names=topic_names or [])
    return sorted(tuple(row[name] for name in columns) for row in rows)


def partitions(topic: str, *numbers: int, topic_id: str | None = None) -> list[dict[str, Any]]:
    return [{"topic": topic, "topic_id": topic_id, "partition": n} for n in numbers]


RDK = ("confluent-kafka-python", "2.16.1-rdkafka-2.16.0")
JAVA = ("apache-kafka-java", "4.3.1")
GOLDEN = {
    "java-classic": [
        ("java-a", "classic", "az-a", *JAVA, "range", ["orders"], 1),
        ("java-a", "classic", None, *JAVA, None, None, 1),
    ],
    "java-consumer": [
        ("java-a", "consumer", "az-a", *JAVA, None, ["orders"], 2),
        ("java-a", "consumer", None, *JAVA, None, None, 2),
    ],
    "rdk-classic": [
        ("rdk-a", "classic", "az-b", *RDK, "range", ["orders", "returns"], 6),
        ("rdk-b", "classic", None, *RDK, "range", ["orders"], 3),
        ("rdk-c", "classic", None, *RDK, "range", ["orders"], 5),
    ],
}


@pytest.mark.parametrize("group", GOLDEN)
def test_members_of_real_clients(group: str) -> None:
    columns = ("client_id", "group_type", "rack_id", "client_software_name")
    columns += ("client_software_version", "assignor", "subscribed_topics", "group_epoch")
    rows = compute(result_of("group_members"), requests=golden_groups.requests(group))
    rows.sort(key=lambda row: (row["client_id"], row["event_time"]))
    assert [tuple(row[name] for name in columns) for row in rows] == GOLDEN[group]


def test_streams_members_have_tasks_and_a_process() -> None:
    columns = ("group_type", "active_tasks", "standby_tasks", "subscribed_topics", "process_id")
    process = "f8e2bb76-d442-4917-b553-6897a1ff1235"
    assert members(golden_groups.requests("shop-streams"), *columns) == [
        ("streams", ["0_0", "0_2"], [], ["orders"], process),
        ("streams", ["0_1"], [], ["orders"], process),
    ]


def test_topics_of_an_assignment_get_their_names() -> None:
    topic_id = "zMrmuvO5TCuILkVcOS8DCg"
    named = {"cluster_id": "c1", "topic_id": topic_id, "topic": "orders"}
    requests = golden_groups.requests("java-consumer")
    columns = ("event_time", "assigned_partitions")
    first, second = members(requests, *columns, topic_names=[named])
    assert first[1] == partitions("orders", 0, 1, 2, topic_id=topic_id)
    assert second[1] is None
    assert members(requests, *columns)[0][1][0]["topic"] is None


COUNTS = ("heartbeats", "errors", "rebalancing_answers", "fenced_answers", "group_epoch")
CASES: dict[str, tuple[Rows, tuple[Any, ...]]] = {
    **case_tables.table(__file__, "CASES", old_heartbeat, commit, request, heartbeat),
    "any of the fencing errors": (
        [old_heartbeat(n, code) for n, code in enumerate((22, 25, 82, 110, 111, 113, 16))],
        (7, 7, 0, 6, None),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_counts_of_a_member(case: str) -> None:
    requests, expected = CASES[case]
    assert members(requests, *COUNTS) == [expected]


def test_every_member_of_one_request_to_leave_has_a_row() -> None:
    columns = ("member_id", "leaves", "errors", "fenced_answers")
    requests = [left(1, ("m1", 0), ("m2", 25)), left(2, ("m3", 0), version=2)]
    assert members(requests, *columns) == [("m1", 1, 0, 0), ("m2", 1, 1, 1), ("m3", 1, 0, 0)]


def test_the_newest_of_a_minute_counts_and_what_it_does_not_name_stays() -> None:
    requested = {"subscribedTopicNames": ["b", "a", "a"], "rackId": "az-a", "rebalanceTimeoutMs": 9}
    later = {"subscribedTopicNames": None, "rackId": None, "rebalanceTimeoutMs": -1}
    columns = ("subscribed_topics", "rack_id", "max_poll_interval_ms", "client_address")
    requests = [
        heartbeat(2, 4, requested=later, client_address="10.9"),
        heartbeat(1, 0, 4, requested=requested),
    ]
    assert members(requests, *columns) == [(["a", "b"], "az-a", 9, "10.9")]


def test_bytes_that_cannot_be_read_are_counted() -> None:
    protocols = {"protocolType": "consumer", "protocols": [{"name": "x", "metadata": "[hidden]"}]}
    requests = [
        request(1, "JOIN_GROUP", {"memberId": "m"} | protocols, {"generationId": 1}),
        request(2, "SYNC_GROUP", {"memberId": "m"}, {"assignment": "AAA="}),
        request(3, "SYNC_GROUP", {"memberId": "m"}, {"assignment": "", "protocolType": None}),
    ]
    columns = ("unreadable_protocols", "subscribed_topics", "assigned_partitions")
    assert members(requests, *columns) == [(2, None, None)]
