"""Who sends requests from which address, by minute."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines.results.producer_ids import address_clients

from ....examples import EXPENSIVE
from ....rule_rows import Rows, compute
from ..splits import assert_same_however_split

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
REQUEST = {"cluster_id": "c", "broker_id": 1, "principal": "User:alice", "client_id": "orders-7"}
REQUEST |= {"client_address": "10.0.0.1", "error_code": 0, "connection_id": "a"}


def request(second: float, api: str = "METADATA", **others: Any) -> dict[str, Any]:
    time = {"event_time": NOON + timedelta(seconds=second), "record_time": NOON}
    return REQUEST | time | {"api": api} | others


def addresses(requests: Rows) -> Rows:
    return compute(address_clients.result(), requests=requests)


def given_id(second: float, producer_id: int, connection: str, **others: Any) -> dict[str, Any]:
    named = {"producer_id": producer_id, "connection_id": connection}
    return request(second, "INIT_PRODUCER_ID", **named | others)


def test_a_program_at_an_address_has_its_ids_and_the_connections_that_brought_them() -> None:
    (row,) = addresses(
        [
            request(1, "PRODUCE"),
            given_id(2, 5, "a"),
            given_id(3, 6, "a", client_id="orders-8"),
            given_id(4, 7, "b", broker_id=2),
            given_id(5, 7, "b", broker_id=2),
            given_id(6, -1, "c"),
            given_id(7, 8, "d", error_code=51),
            request(59.5, "END_TXN", producer_id=9, connection_id="e"),
        ]
    )
    names = ("client_pattern", "requests", "producer_ids", "allocating_connections")
    assert [row[name] for name in names] == ["orders-*", 8, 3, 2]
    times = [row[name] for name in ("event_time", "first_seen", "last_seen")]
    assert times == [NOON + timedelta(seconds=second) for second in (0, 1, 59.5)]


def test_each_client_of_an_address_is_apart_and_so_is_a_follower() -> None:
    rows = addresses(
        [
            request(1),
            request(1, principal="User:bob"),
            request(1, client_id=None),
            request(61),
            request(1, client_address="10.0.0.2"),
            request(1, client_address=None),
            request(1, "FETCH", replica_id=2),
            # Who may not fetch as a follower is none.
            request(1, "FETCH", replica_id=2, error_code=31),
        ]
    )
    assert len(rows) == 6
    assert [row["requests"] for row in rows if row["is_follower"]] == [1]


def test_sampling_shows() -> None:
    rows = addresses([request(1, weight=None), request(2, "PRODUCE", weight=10.0)])
    assert [(row["requests"], row["max_weight"]) for row in rows] == [(11, 10)]


ANY_REQUESTS = st.lists(
    st.builds(
        request,
        st.integers(0, 300).map(lambda halves: halves / 2),
        st.sampled_from(["INIT_PRODUCER_ID", "PRODUCE", "FETCH"]),
        client_id=st.sampled_from([None, "a-1", "a-2", "b"]),
        connection_id=st.sampled_from(["x", "y"]),
        producer_id=st.sampled_from([None, 1, 2]),
        replica_id=st.sampled_from([None, 2]),
        weight=st.sampled_from([None, 1.0, 3.0]),
    ),
    max_size=30,
)


@EXPENSIVE
@given(requests=ANY_REQUESTS, minutes=st.sets(st.integers(0, 3)), seed=st.integers(0, 9))
def test_parts_of_time_and_any_order_equal_the_whole(
    requests: Rows, minutes: set[int], seed: int
) -> None:
    cuts = [NOON + timedelta(minutes=minute) for minute in minutes]
    shuffled = random.Random(seed).sample(requests, len(requests))
    assert_same_however_split(address_clients.result(), cuts, shuffled, requests=requests)
