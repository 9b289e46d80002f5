"""Names of topics that come after the facts: each row gets the name, whenever it comes."""

import json
import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.compute.result import Result
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import FETCHES, REQUESTS, TOPICS

from ...delta_tables import NOON
from .maintained import Maintained, Rows

CONF = config.load()
RESULTS = {
    result.table.name: result
    for job in JOBS.values()
    if job.results
    for result in job.results(CONF)
}
TRAFFIC_AND_NAMES = (RESULTS["traffic"], RESULTS["topic_names"])
NAMED = [name for name, result in RESULTS.items() if result.unnamed]
NESTED = {"fetch_sizes": "largest_oversized", "group_members": "assigned_partitions"}
"""Results with ids of topics in a list of structs, and its column."""
ALTER_BODY = {
    "request": {"topics": [{"topicId": "id1", "partitions": [
        {"partitionIndex": 0, "newIsrWithEpochs": [{"brokerId": 2}]}]}]},
    "response": {"topics": [{"topicId": "id1", "partitions": [
        {"partitionIndex": 0, "errorCode": 0}]}]},
}  # fmt: skip
HEARTBEAT_BODY = {
    "request": {"groupId": "g", "memberId": "m", "memberEpoch": 1},
    "response": {"errorCode": 0, "memberId": "m", "memberEpoch": 1, "assignment": {
        "topicPartitions": [{"topicId": "id1", "partitions": [0]}]}},
}  # fmt: skip
COMMIT_BODY = {
    "request": {"groupId": "g", "memberId": "m", "generationIdOrMemberEpoch": 1, "topics": [
        {"topicId": "id1", "partitions": [{"partitionIndex": 0, "committedOffset": 5}]}]},
    "response": {"topics": [{"topicId": "id1", "partitions": [
        {"partitionIndex": 0, "errorCode": 0}]}]},
}  # fmt: skip
SHARE_BODY = {
    "request": {"groupId": "g", "memberId": "m", "topics": []},
    "response": {"responses": [{"topicId": "id1", "partitions": [{"partitionIndex": 0,
        "acquiredRecords": [{"firstOffset": 0, "lastOffset": 4, "deliveryCount": 1}]}]}]},
}  # fmt: skip
NAMING_BODY = {"response": {"topics": [{"name": "orders", "topicId": "id1"}]}}


def at(minute: float) -> dict[str, Any]:
    time = NOON + timedelta(minutes=minute)
    return {"cluster_id": "c", "event_time": time, "record_time": time}


def part(topic_id: str = "id1", **others: Any) -> dict[str, Any]:
    row = {"topic_id": topic_id, "partition": 0, "bytes": 5_000, "partition_max_bytes": 100}
    row |= {"fetch_offset": 5, "high_watermark": 90, "log_start_offset": 0, "in_request": True}
    return row | {"error_code": 0} | others


def moved(minute: float, api: str, *partitions: dict[str, Any], **others: Any) -> dict[str, Any]:
    row = {"api": api, "broker_id": 1, "principal": "User:alice", "client_id": "orders"}
    row |= {"partitions": list(partitions), "max_bytes": 100, "response_bytes": 5_000}
    return at(minute) | row | others


def request(minute: float, api: str, body: dict[str, Any]) -> dict[str, Any]:
    return moved(minute, api) | {"partitions": None, "body": json.dumps(body)}


FACTS: dict[str, Rows] = {
    REQUESTS.name: [
        moved(0, "FETCH", part()),
        moved(1, "PRODUCE", part(), part("id2")),
        moved(1, "FETCH", part(), replica_id=2),
        moved(2, "FETCH", part(topic="orders")),
        request(2, "ALTER_PARTITION", ALTER_BODY),
        request(2, "CONSUMER_GROUP_HEARTBEAT", HEARTBEAT_BODY) | {"group_id": "g"},
        request(2, "OFFSET_COMMIT", COMMIT_BODY) | {"group_id": "g"},
        request(2, "SHARE_FETCH", SHARE_BODY) | {"group_id": "g"},
        moved(4, "FETCH", part()),
    ],
    FETCHES.name: [
        moved(0, "FETCH", part(), part("id2")),
        moved(1, "FETCH", part(), replica_id=2),
        moved(1, "FETCH", part(error_code=1, high_watermark=-1, bytes=0)),
        moved(4, "FETCH", part(), part(error_code=6, high_watermark=-1, bytes=0)),
    ],
}
NAMING = request(3, "METADATA", NAMING_BODY)
SNAPSHOT = at(9) | {"topic_id": "id1", "topic": "orders", "is_removed": False}


def names(place: Maintained, name: str) -> set[tuple[Any, Any]]:
    """Topic ids and topics in the rows of a result."""
    columns = RESULTS[name].table.column_names
    rows = [dict(zip(columns, row, strict=False)) for row in place.table(name)]
    if name in NESTED:
        rows = [part for row in rows for part in row[NESTED[name]] or []]
    return {(row["topic_id"], row["topic"]) for row in rows if row.get("topic_id")}


def of_job(facts: Table) -> tuple[Result, ...]:
    """The results of one table of facts that have names, with those of it that they look up."""
    named = [result for result in RESULTS.values() if result.unnamed and result.facts is facts]
    lookups = {each.table.name for result in named for each in result.lookups}
    return tuple(
        result
        for name, result in RESULTS.items()
        if result.facts is facts and (result in named or name in lookups)
    )


def test_each_result_with_ids_of_topics_gets_their_names() -> None:
    with_ids = {
        name
        for name, result in RESULTS.items()
        if {"topic", "topic_id"} <= set(result.table.column_names)
    }
    own = {name for name in NAMED if name in {each.table.name for each in RESULTS[name].unnamed}}
    assert with_ids - {"topic_names"} == own - NESTED.keys()
    assert {each.table.name for name in NAMED for each in RESULTS[name].unnamed} <= set(TABLES)


@pytest.mark.faults
@pytest.mark.parametrize("source", [TOPICS, TABLES["topic_names"]], ids=lambda table: table.name)
@pytest.mark.parametrize("facts", [REQUESTS, FETCHES], ids=lambda table: table.name)
def test_a_name_that_comes_later_is_in_all_rows(
    tmp_path: Path, facts: Table, source: Table
) -> None:
    rows = FACTS[facts.name]
    place = Maintained.make(tmp_path, *of_job(facts), conf=CONF)
    place.keep(place.arrive(rows[:3]), 0)
    place.keep(place.arrive(rows[3:]), 1)
    before = {result.table.name: names(place, result.table.name) for result in of_job(facts)}
    assert ("id1", None) in set().union(*before.values())
    if facts is REQUESTS and source is TABLES["topic_names"]:
        place.keep(place.arrive([NAMING]), 2)
    else:
        place.append(source, [SNAPSHOT])
        place.refresh(2)
    for result in [each for each in of_job(facts) if each.unnamed]:
        named = names(place, result.table.name) - {("id2", None)}
        has_ids = result.table in {each.table for each in result.unnamed}
        assert named == ({("id1", "orders")} if has_ids else set()), result.table.name


def test_an_id_without_a_name_is_counted(tmp_path: Path) -> None:
    place = Maintained.make(tmp_path, *of_job(FETCHES), conf=CONF)
    place.keep(place.arrive(FACTS[FETCHES.name]), 0)
    ids = [row for result in of_job(FETCHES) for row in place.table(result.table.name)]
    assert place.progress()["doubtful"] == sum("id1" in row or "id2" in row for row in ids)


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.faults) for n in (1, 2))])
def test_the_order_of_names_and_facts_changes_nothing(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    facts = [*FACTS[REQUESTS.name], NAMING, moved(6, "PRODUCE", part("id3"))]
    dice.shuffle(facts)
    place = Maintained.make(tmp_path, *TRAFFIC_AND_NAMES, conf=CONF)
    for number, first in enumerate(range(0, len(facts), 2)):
        place.keep(place.arrive(facts[first : first + 2]), number)
        if number == dice.randrange(3):
            place.append(TOPICS, [SNAPSHOT | {"topic_id": "id3", "topic": "late"}])
    place.append(TOPICS, [SNAPSHOT | {"topic_id": "id3", "topic": "late"}])
    place.refresh(99)
    named = [at(3) | {"topic_id": "id1", "topic": "orders"}]
    names_of = {"topics": [SNAPSHOT | {"topic_id": "id3", "topic": "late"}], "topic_names": named}
    assert place.table("traffic") == place.whole(facts, **names_of)
