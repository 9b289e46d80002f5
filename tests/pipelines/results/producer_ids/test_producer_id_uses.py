"""Uses of producer ids by minute, client and id."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines.results.declared import result_of
from quotaflow.schemas.tables.catalog import TABLES

from .... import rows
from ....examples import EXPENSIVE
from ....rows import Row, at, minute
from ....rule_rows import Rows, compute
from ..splits import assert_same_however_split


def request(second: float, api: str, producer_id: int | None = None, **others: Any) -> Row:
    given = {"client_id": "orders-7", "error_code": 0, "producer_id": producer_id} | others
    return rows.request(second, api, **given)


def uses(requests: Rows) -> Rows:
    return compute(result_of("producer_id_uses"), requests=requests)


FACTS = [
    request(1, "INIT_PRODUCER_ID", 5, transactional_id="t", producer_epoch=0),
    request(2, "INIT_PRODUCER_ID", 5, transactional_id="t", producer_epoch=1),
    request(3, "END_TXN", 5, transactional_id="t", producer_epoch=3),
    request(59, "PRODUCE", error_code=None, broker_id=2),
    request(60, "PRODUCE", error_code=None),
    request(61, "END_TXN", 5, transactional_id="t", producer_epoch=3),
    request(4, "PRODUCE", 6, error_code=None, client_id="proxied"),
    request(4, "PRODUCE", error_code=None, client_id="given none"),
    request(4, "INIT_PRODUCER_ID", 9, error_code=14),
    request(4, "INIT_PRODUCER_ID", -1, client_id="refused"),
    request(4, "METADATA"),
]


def test_uses_are_counted_by_minute_client_and_id() -> None:
    columns = ("requests", "allocations", "produce_requests", "producer_epoch")
    used = uses(FACTS)
    got = {
        (minute(row), row["client_id"], row["producer_id"]): tuple(row[name] for name in columns)
        for row in used
    }
    assert got == {
        (0, "orders-7", 5): (3, 2, 0, 3),
        (0, "orders-7", None): (1, 0, 1, None),
        (1, "orders-7", 5): (1, 0, 0, 3),
        (0, "proxied", 6): (1, 0, 1, None),
    }
    assert list(used[0]) == TABLES["producer_id_uses"].column_names
    assert {row["event_date"] for row in used} == {at(0).date()}


def test_a_use_has_its_first_and_last_time_and_whole_weights() -> None:
    """Ids that other brokers gave count too; a request of weight 2.6 counts twice."""
    requests = [
        request(1, "INIT_PRODUCER_ID", 5, weight=2.6),
        request(7.5, "END_TXN", 5),
        request(9, "PRODUCE", broker_id=2, weight=3.0),
        request(9, "PRODUCE", broker_id=2, client_id=None, client_address="10.0.0.2"),
        request(9, "INIT_PRODUCER_ID", 8, client_id=None, client_address="10.0.0.2"),
    ]
    used = {(row["client_id"], row["producer_id"]): row for row in uses(requests)}
    assert len(used) == 4
    given = used["orders-7", 5]
    times = [at(0), at(1), at(7.5)]
    assert [given[name] for name in ("event_time", "first_seen", "last_seen")] == times
    assert (given["requests"], given["allocations"]) == (3, 2)
    assert used["orders-7", None]["produce_requests"] == 3
    assert used[None, None]["produce_requests"] == 1


@pytest.mark.parametrize(
    ("client_id", "pattern"),
    [
        ("producer-12", "producer-*"),
        ("orders-0-3f2c9a1be4d7-main", "orders-*-*-main"),
        ("orders-3F2C9A1BE4D7", "orders-*"),
        ("d3b07384-d9a0-4c9b-8f3e-0123456789ab", "*"),
        ("x_deadbeef", "x_deadbeef"),
        ("shop", "shop"),
        ("", ""),
        (None, None),
        ("7" * 5_000, "*"),
        ("x" * 5_000, "x" * 200),
        ("ü" * 5_000, "ü" * 200),
    ],
)
def test_names_of_one_program_have_one_pattern(client_id: str | None, pattern: str | None) -> None:
    (row,) = uses([request(1, "INIT_PRODUCER_ID", 5, client_id=client_id)])
    assert row["client_pattern"] == pattern


ANY_REQUESTS = st.lists(
    st.builds(
        request,
        st.integers(0, 300).map(lambda halves: halves / 2),
        st.sampled_from(["INIT_PRODUCER_ID", "PRODUCE", "END_TXN", "METADATA"]),
        st.sampled_from([None, 1, 2]),
        client_id=st.sampled_from([None, "a-1", "b"]),
        weight=st.sampled_from([None, 1.0, 2.6]),
        error_code=st.sampled_from([None, 0, 0, 51]),
    ),
    max_size=40,
)


@EXPENSIVE
@given(requests=ANY_REQUESTS, minutes=st.sets(st.integers(0, 3)), seed=st.integers(0, 9))
def test_parts_of_time_and_any_order_equal_the_whole(
    requests: Rows, minutes: set[int], seed: int
) -> None:
    cuts = [at(60 * n) for n in minutes]
    shuffled = random.Random(seed).sample(requests, len(requests))
    assert_same_however_split(result_of("producer_id_uses"), cuts, shuffled, requests=requests)
