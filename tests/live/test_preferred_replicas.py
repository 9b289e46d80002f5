"""Preferred replicas of a real cluster: what its leaders named is what the rule names (KIP-392)."""

from collections import defaultdict
from pathlib import Path

import pytest

from .drive import Run
from .tables_read import query

GAUGE = "AND metric = 'org.apache.kafka.consumer.fetch.manager.preferred.read.replica'"


@pytest.mark.parametrize(
    ("client_id", "rack"), [("rdk-orders-carol", "az-c"), ("java-orders-bob", "az-b")]
)
def test_leaders_name_what_the_rule_names(filled: Path, client_id: str, rack: str) -> None:
    rows = query(filled, f"SELECT * FROM preferred_replicas WHERE client_id = '{client_id}'")
    assert {(row["client_rack"], row["topic"]) for row in rows} == {(rack, "orders")}
    in_rack = ord(rack[-1]) - ord("a") + 1
    named = {
        (row["preferred_read_replica"], row["expected_replica"], row["recommended_replica"])
        for row in rows
        if row["redirects"] > 0 and row["eligibility"] == "known"
    }
    assert named == {(in_rack, in_rack, in_rack)}


def test_a_java_consumer_s_own_gauge_tells_where_it_was_sent(filled: Path) -> None:
    client_id = "java-orders-bob"
    of_client = f"WHERE client_id = '{client_id}' AND topic = 'orders'"
    pushed: dict[int, set[int]] = defaultdict(set)
    for row in query(
        filled, f"SELECT partition, value_int FROM client_metrics {of_client} {GAUGE}"
    ):
        pushed[row["partition"]].add(row["value_int"])
    choices = query(filled, f"SELECT * FROM preferred_replicas {of_client}")
    sent = {
        row["partition"]: {row["preferred_read_replica"]} for row in choices if row["redirects"] > 0
    }
    assert pushed.keys() == {row["partition"] for row in choices}
    # It says -1 while it reads from the leader, as of each partition before its first answer.
    assert {
        partition: replicas - {-1} for partition, replicas in pushed.items() if replicas != {-1}
    } == sent
    assert len(sent) == len(pushed) - 1


def test_bytes_read_across_racks_are_those_of_the_log(filled: Path, run: Run) -> None:
    for client_id in ("rdk-orders-carol", "java-orders-bob"):
        (row,) = query(
            filled,
            "SELECT sum(bytes) AS bytes, sum(cross_rack_bytes) AS cross FROM preferred_replicas "
            f"WHERE client_id = '{client_id}'",
        )
        moved = sum(
            partition["recordsSizeInBytes"]
            for fetch in run.logged("FETCH", client_id)
            for topic in fetch["response"]["responses"]
            for partition in topic["partitions"]
        )
        assert row["bytes"] == moved > 0
        assert row["cross"] == 0


def test_each_topic_id_has_one_name(filled: Path, run: Run) -> None:
    named = {
        (row["topic_id"], row["topic"])
        for row in query(filled, "SELECT topic_id, topic FROM topic_names WHERE topic_id <> ''")
    }
    assert {topic for _, topic in named} >= {"orders", "clicks", "exports"}
    ids = {row["topic_id"]: row["topic"] for row in query(filled, "SELECT * FROM topic_ids")}
    assert named <= ids.items()
    assert run.written["orders"] > 0
