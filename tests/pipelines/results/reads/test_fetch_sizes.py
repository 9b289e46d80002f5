"""How much fetches bring at once, and what limits it."""

import random
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines.results.declared import result_of
from quotaflow.schemas.tables.catalog import TABLES

from .... import case_tables
from ....cases import cases, grouped
from ....examples import EXPENSIVE
from ....rows import LIMITERS, Row, at
from ....rule_rows import Rows, compute
from ..splits import assert_same_however_split
from .replica_rows import BEFORE, seen

RESULT = result_of("fetch_sizes")
MIB = 1024 * 1024
QUOTA_BYTES_PER_S = 900.0


def answered(size: int, partition: int = 0, limit: int | None = 1_000, **others: Any) -> Row:
    row = {"topic": None, "topic_id": "id1", "partition": partition, "bytes": size}
    row |= {"partition_max_bytes": limit, "error_code": 0, "preferred_read_replica": -1}
    return row | {"fetch_offset": 10 * partition} | others


def left_out(*partitions: int) -> list[Row]:
    return [{"topic": None, "topic_id": "id1", "partition": n} for n in partitions]


def fetch(broker_id: int, *partitions: Row, second: float = 1, **others: Any) -> Row:
    row = {"cluster_id": "c", "broker_id": broker_id, "event_time": at(second)}
    row |= {"record_time": at(second), "principal": "User:alice", "client_id": "reader"}
    row |= {"max_bytes": 5_000, "min_bytes": 1, "max_wait_ms": 500, "throttle_time_ms": 0.0}
    row |= {"partitions": list(partitions), "error_code": 0, "session_partitions": 3}
    row |= {"response_bytes": sum(part["bytes"] for part in partitions), "starved": []}
    row |= {"session_max_bytes": 30_000, "session_partition_max_bytes": 10_000}
    return row | others


# The values of the first snapshot also hold before it.
AFTER = 300


def cap(broker_id: int, size: int) -> Row:
    row = seen(AFTER, cluster_id="c", entity_type="broker", entity_name=str(broker_id))
    return row | {"config_key": "fetch.max.bytes", "config_value": str(size)}


CONFIG_ROWS = [cap(3, 2_000)]
QUOTAS = [
    seen(BEFORE, cluster_id="c", user="bob", is_default_user=False, is_default_client_id=False)
    | {"is_default_ip": False, "config_key": "consumer_byte_rate", "quota": QUOTA_BYTES_PER_S}
]
TOPIC_ROWS = [
    seen(BEFORE, cluster_id="c", topic_id="id1", topic="orders"),
    seen(-1, cluster_id="c", topic_id="id1", topic="orders", is_removed=True),
    seen(BEFORE, cluster_id="d", topic_id="id1", topic="another"),
]
BOB = {"principal": "User:bob", "max_bytes": 50_000}
LIMITED: dict[str, dict[str, Row]] = {
    "max_bytes": {
        "exactly max_bytes": fetch(1, answered(4_000, limit=4_500), answered(1_000, 1, limit=4_500))
    },
    "broker_cap": {
        "exactly the broker's limit": fetch(3, answered(2_000, limit=9_000)),
        "exactly Kafka's default of that": fetch(
            1, answered(55 * MIB, limit=99 * MIB), max_bytes=99 * MIB
        ),
    },
    "quota_window": {
        "exactly what a quota lets through at once": fetch(4, answered(9_000, limit=10_000), **BOB)
    },
    "partition_max_bytes": {"a partition's limit": fetch(5, answered(1_000), answered(20, 1))},
    "first_batch": {
        "more than a partition's limit": fetch(6, answered(1_200)),
        "more than max_bytes": fetch(6, answered(5_001, limit=None)),
        "more than max_bytes, not the partition's": fetch(6, answered(6_000, limit=9_000)),
    },
    "drained": {
        "less than each": fetch(7, answered(999)),
        "as much as bob's quota, by a follower": fetch(
            4, answered(9_000, limit=10_000), **BOB, replica_id=2
        ),
        "as much as bob's quota, by a client without one": fetch(
            7, answered(9_000, limit=10_000), max_bytes=50_000
        ),
        "no limit of the partition known": fetch(7, answered(2_001, limit=None)),
    },
    "wait_timeout": {
        "no partitions": fetch(8),
        "no bytes": fetch(8, answered(0)),
        "partitions not known": fetch(8, partitions=None, response_bytes=None),
    },
    "throttled": {"empty, with a throttle time": fetch(9, throttle_time_ms=3.0)},
    "redirected": {
        "named another replica": fetch(
            10, answered(0, preferred_read_replica=2), answered(0, 1, preferred_read_replica=3)
        )
    },
    "error": {
        "an error of the answer": fetch(11, error_code=71),
        "an error of a partition": fetch(11, answered(0, error_code=6), throttle_time_ms=3.0),
    },
}
CONTEXT = {"configs": CONFIG_ROWS, "client_quotas": QUOTAS, "topics": TOPIC_ROWS}


def computed(fetches: Rows) -> dict[tuple[int, int | None], Row]:
    sizes = compute(RESULT, fetches=fetches, **CONTEXT)
    rows = {(row["broker_id"], row["replica_id"]): row for row in sizes}
    assert len(rows) == len(sizes)
    return rows


@cases(("answer", "limiter"), *grouped(LIMITED))
def test_the_size_of_an_answer_shows_its_limiter(answer: Row, limiter: str) -> None:
    (row,) = computed([answer]).values()
    assert {name: row[f"{name}_fetches"] for name in LIMITERS if row[f"{name}_fetches"]} == {
        limiter: 1
    }
    assert sum(row["response_sizes"]) == (1 if row["bytes"] else 0)


def test_every_limiter_has_a_case() -> None:
    assert LIMITED.keys() == set(LIMITERS)


NO_SESSION = {"session_partitions": None, "session_max_bytes": None}
STARVING = [
    fetch(1, answered(5_000, limit=9_000), starved=left_out(1, 2)),
    fetch(1, answered(5_000, limit=9_000), starved=left_out(1)),
    fetch(1, answered(5_001, 2, limit=9_000)),
    fetch(1, answered(10, limit=9_000), answered(1, 1, limit=9_000), starved=None),
    fetch(2, answered(6_001, topic="by name", topic_id=None), answered(6_000, topic_id="id2")),
    fetch(1, answered(7_000, limit=9_000), replica_id=2, max_bytes=10**7, **NO_SESSION),
]


def test_numbers_that_no_broker_has_cost_no_batch() -> None:
    most = 2**63 - 1
    odd = fetch(1, answered(2, limit=-most), answered(most - 2, 1, limit=most), max_bytes=None)
    odd |= {"session_max_bytes": None, "session_partition_max_bytes": None}
    rows = computed([odd])
    assert rows[1, None]["fetches"] == 1
    assert rows[1, None]["bound_bytes"] is None


def test_partitions_that_are_left_out_show() -> None:
    rows = computed(STARVING)
    row = rows[1, None]
    assert (row["filled_fetches"], row["first_partitions"]) == (3, 2)
    assert (row["starved_fetches"], row["starved_partitions"]) == (2, 2)
    assert row["max_starved_fetches"] == 2
    served = [10_010, 1, 5_001]
    assert row["fairness"] == pytest.approx(sum(served) ** 2 / 3 / sum(n * n for n in served))
    assert (row["bytes"], row["max_response_bytes"]) == (15_012, 5_001)
    sizes = {power: n for power, n in enumerate(row["response_sizes"]) if n}
    assert sizes == {12: 3, 3: 1}
    assert (row["partitions"], row["bound_bytes"]) == (3, 5_000)
    assert row["oversized_batches"] == 1
    assert row["largest_oversized"] == [
        {"bytes": 5_001, "topic": "orders", "topic_id": "id1", "partition": 2, "fetch_offset": 20}
    ]
    unnamed = rows[2, None]["largest_oversized"]
    assert [(largest["topic"], largest["topic_id"]) for largest in unnamed] == [
        ("by name", None),
        (None, "id2"),
    ]
    follower = rows[1, 2]
    assert (follower["bytes"], follower["drained_fetches"]) == (7_000, 1)
    assert (follower["partitions"], follower["bound_bytes"]) == (None, None)
    assert (follower["fairness"], follower["oversized_batches"]) == (1.0, 0)


BOUNDS: dict[int | None, dict[str, list[Row]]] = case_tables.table(
    __file__, "BOUNDS", fetch, answered
)


@cases(("fetches", "bound"), *grouped(BOUNDS))
def test_an_answer_is_bounded_by_the_limits_of_its_session(
    fetches: list[Row], bound: int | None
) -> None:
    (row,) = computed(fetches).values()
    assert row["bound_bytes"] == bound


def test_the_ten_largest_batches_over_a_limit_are_listed() -> None:
    fetches = [fetch(1, answered(1_001 + n % 8, n % 8), second=n) for n in range(24)]
    (row,) = computed(fetches).values()
    assert (row["fetches"], row["active_s"]) == (24, 23.0)
    sizes = [batch["bytes"] for batch in row["largest_oversized"]]
    assert sizes == [1_008] * 3 + [1_007] * 3 + [1_006] * 3 + [1_005]
    assert row["oversized_batches"] == 24


SESSIONS: list[Row] = [
    {"session_partitions": None, "session_max_bytes": None, "session_partition_max_bytes": None},
    {"session_partitions": 3, "session_max_bytes": 1_200, "session_partition_max_bytes": 1_000},
    {"session_partitions": 2, "session_max_bytes": 2_000, "session_partition_max_bytes": 1_000},
]


def made_up_fetches(dice: random.Random) -> Rows:
    """Fetches of some clients and a follower over six minutes."""
    return [
        fetch(
            dice.choice([1, 3]),
            *(answered(dice.choice([0, 20, 1_000, 1_200]), n) for n in range(dice.randrange(4))),
            second=dice.randrange(360_000) / 1_000,
            principal=dice.choice(["User:alice", "User:bob", None]),
            client_id=dice.choice(["reader", "", None]),
            replica_id=dice.choice([None, None, 2]),
            max_bytes=dice.choice([1_000, 2_000, 5_000]),
            starved=dice.choice([None, [], left_out(1), left_out(1, 2)]),
            **dice.choice(SESSIONS),
        )
        for _ in range(200)
    ]


@EXPENSIVE
@given(
    st.integers(0, 2**32),
    st.sets(st.integers(-1, 7).map(lambda minute: at(minute * 60)), max_size=4),
)
def test_any_cut_of_the_time_and_any_order_give_the_same_rows(
    seed: int, starts: set[datetime]
) -> None:
    dice = random.Random(seed)
    fetches = made_up_fetches(dice)
    shuffled = dice.sample(fetches, len(fetches))
    rows = assert_same_however_split(RESULT, [*starts], shuffled, fetches=fetches, **CONTEXT)
    assert len({tuple(row[name] for name in TABLES["fetch_sizes"].key) for row in rows}) == len(
        rows
    )
    for row in rows:
        if row["bound_bytes"] is not None:
            assert row["bound_bytes"] <= row["partitions"] * row["partition_max_bytes"]
