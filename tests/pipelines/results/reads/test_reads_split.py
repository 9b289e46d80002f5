"""Results of reads are the same for any split of time and facts, and for any order."""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines.compute.result import Result
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.results.declared import result_of

from ....examples import EXPENSIVE
from ....oracle.rules.replica import RACK_AWARE
from ....rows import Row, at
from ..splits import assert_same_however_split
from .replica_rows import (
    RACKS,
    answered,
    broker,
    fetch,
    of_cluster,
    replica,
    seen,
    selector,
    with_offsets,
)

MINUTES = 4
FACTS = 150
LEAST_ROWS = {"remote_reads": 0}
"""A remote read needs a topic with a name, and an offset below a local start that is known."""
LIST, EPOCH = "LIST_OFFSETS", "OFFSET_FOR_LEADER_EPOCH"


def made_up_topic(dice: random.Random) -> Row:
    n = dice.choice([1, 2, 3])
    return dice.choice([{"topic_id": f"id{n}"}, {"topic_id": None, "topic": f"t{n}"}])


def made_up_partition(dice: random.Random) -> Row:
    others: Row = {"fetch_offset": dice.choice([None, 5, 50, 95, 120])}
    others |= {"partition": dice.choice([0, 1]), **made_up_topic(dice)}
    if dice.random() < 0.2:
        return answered(0, error_code=dice.choice([1, 1, 6]), high_watermark=-1, **others)
    return answered(
        dice.choice([0, None, 10, 1_000]),
        preferred_read_replica=dice.choice([-1, -1, 2, 3]),
        high_watermark=dice.choice([90, 100, 110]),
        log_start_offset=dice.choice([10, 20]),
        follower_log_start_offset=dice.choice([None, 30]),
        **others,
    )


def made_up_fetch(dice: random.Random) -> Row:
    """A fetch of a consumer or a follower, by topic names and ids."""
    return fetch(
        dice.randrange(MINUTES * 60_000) / 1_000,
        dice.choice([1, 2, 3]),
        *(made_up_partition(dice) for _ in range(dice.randrange(4))),
        client_id=dice.choice(["reader", "other", None]),
        client_address=dice.choice(["10.1.0.1", "10.2.0.1", "0:0:0:0:0:0:0:1"]),
        connection_id=dice.choice(["one", "two"]),
        rack_id=dice.choice(["az-a", "az-b", None]),
        replica_id=dice.choice([None, None, None, 3]),
        api_version=dice.choice([8, 17]),
        client_software_version=dice.choice(["1", "2"]),
        response_bytes=dice.choice([0, 0, 1_000]),
        session_id=dice.choice([0, 7]),
        session_partitions=1,
        source_topic="log",
        source_partition=0,
        source_offset=dice.randrange(2**60),
    )


def made_up_request(dice: random.Random) -> Row:
    api = dice.choice(["PRODUCE", "FETCH", LIST, EPOCH])
    weight = dice.choice([None, 1.0, 3.0])
    return made_up_fetch(dice) | {"api": api, "weight": weight, "body": made_up_body(dice, api)}


def made_up_body(dice: random.Random, api: str) -> str | None:
    partitions = dice.sample([0, 1, 2], dice.randrange(4))
    request: list[Any] = [
        {"partitionIndex": n, "timestamp": dice.choice([-1, -2, 5]), "leaderEpoch": 4}
        for n in partitions
    ]
    response: list[Any] = [
        {"partitionIndex": n, "errorCode": dice.choice([0, 0, 6]), "offset": dice.randrange(9)}
        | {"leaderEpoch": dice.choice([3, 4])}
        for n in reversed(partitions)
    ]
    body = {
        "request": {"topics": [{"name": "t", "partitions": request}]},
        "response": {"topics": [{"name": "t", "partitions": response}]},
    }
    return None if api == "PRODUCE" or dice.random() < 0.1 else json.dumps(body)


def made_up_snapshots(dice: random.Random) -> dict[str, list[Row]]:
    """What snapshots saw change, in and after the minutes; one key changes once a time."""
    snapshots: dict[str, list[Row]] = {"topics": [], "replicas": [], "brokers": [], "configs": []}
    snapshots["partition_offsets"] = []
    for second in (60, 100, 150, 230, 300):
        is_removed = dice.random() < 0.2
        n = dice.choice([1, 2])
        topic = {"topic_id": f"id{n}", "topic": f"t{n}"}
        snapshots["topics"].append(seen(second, **topic) | {"is_removed": is_removed})
        snapshots["partition_offsets"] += [
            seen(second, topic=name, partition=partition, log_start_offset=0)
            | {"local_log_start_offset": dice.choice([None, 70, 90, 90])}
            for name in ("t1", "t2", "t3")
            for partition in (0, 1)
        ]
        led = {"is_leader": dice.random() < 0.5, "is_in_sync": dice.random() < 0.7}
        snapshots["replicas"] += [
            replica(id_, second, **topic, partition=partition)
            | (led if second > 60 and id_ == 1 else {})
            | {"is_removed": is_removed and id_ == 3}
            for id_ in (1, 2, 3)
            for partition in (0, 1)
        ]
        id_ = dice.choice([1, 2, 3])
        snapshots["brokers"].append(broker(id_, dice.choice(["az-a", "az-b", None]), second))
        snapshots["configs"].append(
            selector(dice.choice([RACK_AWARE, None]), second) | {"entity_name": str(id_)}
        )
    return snapshots


@pytest.mark.parametrize(
    "result",
    [
        result_of("preferred_replicas", Conf(racks=RACKS)),
        result_of("replica_offsets"),
        result_of("fetch_faults"),
        result_of("rack_traffic", Conf(racks=RACKS)),
        result_of("offset_lookups"),
        result_of("remote_reads"),
    ],
    ids=lambda result: result.table.name,
)
@EXPENSIVE
@given(seed=st.integers(0, 2**32), cuts=st.lists(st.integers(-1, MINUTES + 1), max_size=3))
def test_any_split_gives_the_same_table(result: Result, seed: int, cuts: list[int]) -> None:
    dice = random.Random(seed)
    make = made_up_fetch if result.facts.name == "fetches" else made_up_request
    facts = [make(dice) for _ in range(FACTS)]
    lookups = {lookup.table.name for lookup in result.lookups}
    snapshots = {name: rows for name, rows in made_up_snapshots(dice).items() if name in lookups}
    rows = with_offsets(result, of_cluster({result.facts.name: facts, **snapshots}))
    shuffled = dice.sample(rows[result.facts.name], FACTS)
    starts = [at(60 * cut) for cut in cuts]
    table = assert_same_however_split(result, starts, shuffled, **rows)
    assert len(table) > LEAST_ROWS.get(result.table.name, MINUTES)
