"""Results of replication are the same for any split of the time, and any order of the facts."""

import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from quotaflow.pipelines.compute.result import Result
from quotaflow.pipelines.results.declared import result_of

from ....examples import EXPENSIVE
from ....oracle.rules.throttled_replicas import OPERATIONS
from ....rows import Row, at
from ..splits import assert_same_however_split
from . import throttle_rows
from .throttle_rows import (
    IN_ORDER,
    SNAPSHOTS,
    alter,
    fetch,
    in_sync,
    inputs,
    names,
    names_read,
    of_cluster,
    part,
    produce,
    reassign,
    rows_of,
    seen,
)

MINUTES = 5
TOPICS = {"orders": "id1", "clicks": "id2"}
RESULTS = {result.table.name: result for result in (*IN_ORDER, result_of("replica_lag"))}


def random_part(dice: random.Random) -> Row:
    size = dice.choice([None, 0, 1_000, 2_000_000])
    high_watermark = None if size is None else dice.randrange(100)
    ids = {"topic_id": dice.choice([*TOPICS.values()]), "partition": dice.choice([0, 0, 1])}
    return part(size, fetch_offset=dice.randrange(100), high_watermark=high_watermark, **ids)


def random_alter(dice: random.Random, second: float) -> Row:
    if dice.random() < 0.5:
        key = dice.choice([throttle_rows.LEADERS, throttle_rows.FOLLOWERS])
        operand = dice.choice(["0:1", "0:2,1:1", "0:2,0:3", "*"])
        operation = dice.choice(OPERATIONS)
        change = (key, operation, None if operation == throttle_rows.DELETE else operand)
        return alter(second, throttle_rows.TOPIC, dice.choice([*TOPICS]), change)
    key = dice.choice([throttle_rows.LEADER_RATE, throttle_rows.FOLLOWER_RATE])
    operation = dice.choice([throttle_rows.SET, throttle_rows.SET, throttle_rows.DELETE])
    value = None if operation == throttle_rows.DELETE else dice.choice(["1000", "500000"])
    return alter(second, throttle_rows.BROKER, dice.choice(["", "1", "2"]), (key, operation, value))


def random_request(dice: random.Random) -> Row:
    second = dice.randrange(MINUTES * 60_000) / 1_000
    kind = dice.random()
    if kind < 0.8:
        parts = [random_part(dice) for _ in range(dice.randrange(3))]
        forgotten = [{"topic_id": "id1", "partition": 0}] if dice.random() < 0.1 else []
        return fetch(
            second, dice.choice([1, 1, 2]), dice.choice([2, 3]), *parts, forgotten=forgotten
        )
    if kind < 0.9:
        return produce(second, 1, part(500))
    if kind < 0.95:
        return random_alter(dice, second)
    if kind < 0.97:
        return in_sync(second, "id1", 1, *dice.sample([2, 3], dice.randrange(3)))
    if kind < 0.985:
        return reassign(second, "orders", dice.choice([[2], [1, 3], None]))
    return names(second, *dice.sample([*TOPICS.items()], 1))


def random_snapshots(dice: random.Random) -> dict[str, list[Row]]:
    """Rows of snapshots after the minutes began. The first has no config of a throttle."""
    snapshots: dict[str, list[Row]] = {name: [] for name in SNAPSHOTS}
    for second in (100, 400):
        snapshots["topics"].append(seen(second, topic_id="id2", topic="clicks"))
        snapshots["brokers"] += [seen(second, broker_id=id_) for id_ in dice.sample([1, 2, 3], 2)]
        snapshots["replicas"] += [
            seen(second, topic_id="id1", topic="orders", partition=0, broker_id=id_)
            | {"is_in_sync": dice.random() < 0.5}
            for id_ in (2, 3)
        ]
    snapshots["configs"] = [
        throttle_rows.config(100, "broker", "1", "log.dir", "d"),
        throttle_rows.config(400, "broker", "1", throttle_rows.LEADER_RATE, "700000"),
        throttle_rows.config(230, "topic", "orders", throttle_rows.LEADERS, "0:1"),
    ]
    return snapshots


def random_tables(dice: random.Random) -> dict[str, list[Row]]:
    requests = of_cluster(random_request(dice) for _ in range(400))
    snapshots = {name: of_cluster(rows) for name, rows in random_snapshots(dice).items()}
    fetches = [row for row in requests if row["api"] == "FETCH"]
    return inputs(requests, snapshots) | {"fetches": fetches}


def results_before(result: Result, tables: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """The results that a result looks up."""
    computed = dict[str, list[Row]]()
    for each in IN_ORDER:
        if each.table.name in names_read(result):
            computed[each.table.name] = rows_of(each, tables | computed)
    return computed


@pytest.mark.parametrize("name", RESULTS)
@EXPENSIVE
@given(seed=st.integers(0, 2**32), cuts=st.sets(st.integers(0, MINUTES), min_size=1, max_size=3))
def test_any_split_gives_the_same_rows(name: str, seed: int, cuts: set[int]) -> None:
    dice, result = random.Random(seed), RESULTS[name]
    tables = random_tables(dice)
    tables |= results_before(result, tables)
    starts = [at(60 * cut) for cut in cuts]
    facts = tables[result.facts.name]
    read = {name: tables[name] for name in names_read(result)}
    whole = assert_same_however_split(result, starts, dice.sample(facts, len(facts)), **read)
    assume(whole)  # a few seeds make facts that no rule takes


def test_random_requests_have_many_reasons() -> None:
    tables = random_tables(random.Random(73))
    result = RESULTS["replication_throttles"]
    rows = rows_of(result, tables | results_before(result, tables))
    assert len({row["reason"] for row in rows}) > 6
