"""Who sends requests from which address, by minute."""

import json
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines.results.declared import result_of
from quotaflow.schemas.tables.declared import REQUESTS

from .... import rows
from ....examples import EXPENSIVE
from ....record_batches import parsed
from ....rows import Row, at
from ....rule_rows import Rows, compute
from ..splits import assert_same_however_split

CLIENT = {"client_id": "orders-7", "client_address": "10.0.0.1", "connection_id": "a"}


def request(second: float, api: str = "METADATA", **others: Any) -> Row:
    return rows.request(second, api, **CLIENT | {"error_code": 0} | others)


def moved(size: int, **others: Any) -> Row:
    """A partition of a PRODUCE or FETCH request."""
    return {"topic": "t", "partition": 0, "bytes": size, "error_code": 0} | others


def addresses(requests: Rows) -> Rows:
    return compute(result_of("address_clients"), requests=requests)


def given_id(second: float, producer_id: int, connection: str, **others: Any) -> Row:
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
    names = ("client_pattern", "requests", "producer_ids")
    assert [row[name] for name in names] == ["orders-*", 8, 3]
    # Two requests were given no id, and END_TXN asks for none.
    assert (row["allocating_connections"], row["other_connections"]) == (2, 3)
    times = [row[name] for name in ("event_time", "first_seen", "last_seen")]
    assert times == [at(0), at(1), at(59.5)]


def test_each_client_of_an_address_is_apart_and_so_is_a_follower() -> None:
    clients = addresses(
        [
            request(1),
            request(1, principal="User:bob"),
            request(1, client_id=None),
            request(61),
            request(1, client_address="10.0.0.2"),
            request(1, client_address=None),
            request(1, "FETCH", replica_id=2, partitions=[moved(500)]),
            # Who may not fetch as a follower is none: brokers say so by partition.
            request(1, "FETCH", replica_id=3, error_code=31),
            request(1, "FETCH", replica_id=3, partitions=[moved(0, error_code=29)]),
            request(1, "FETCH", replica_id=3, partitions=[moved(700, error_code=29)]),
            request(1, "FETCH", replica_id=3, partitions=[moved(0)]),
            request(1, "FETCH", replica_id=3, partitions=[]),
            request(1, "FETCH", replica_id=3, partitions=None),
            request(1, "PRODUCE", replica_id=3, partitions=[moved(500)]),
        ]
    )
    assert len(clients) == 6
    assert {row["replica_id"]: row["requests"] for row in clients if row["replica_id"]} == {2: 1}


def data(clients: Rows) -> dict[str, tuple[int, int]]:
    """What each program moved beyond the work of its ids."""
    return {row["client_pattern"]: (row["data_requests"], row["data_bytes"]) for row in clients}


PRODUCED: Row = {"api": "PRODUCE", "partitions": [moved(90), moved(10)]}
REFUSED: Row = {"api": "PRODUCE", "partitions": [moved(90, error_code=29)]}


def test_what_a_program_moved_is_counted_unless_its_connection_took_ids_for_it() -> None:
    clients = addresses(
        [
            *(request(n, client_id="calm", connection_id="c", **PRODUCED) for n in range(4)),
            request(5, client_id="calm", connection_id="c", **REFUSED),
            request(6, client_id="calm", connection_id="c"),
            request(7, "FETCH", client_id="calm", connection_id="c", partitions=[moved(50)]),
            # A loop that writes its records under another name is still the loop.
            given_id(58, 5, "a", client_id="loop"),
            *(request(59, client_id="decoy", connection_id="a", **PRODUCED) for _ in range(2)),
            *(request(61, client_id="late", connection_id="a", **PRODUCED) for _ in range(10)),
            request(121, client_id="later", connection_id="a", **PRODUCED),
            # One id is no licence for all that its connection moves.
            given_id(1, 9, "d", client_id="busy"),
            *(request(2, client_id="busy", connection_id="d", **PRODUCED) for _ in range(11)),
            # The id of another broker's connection of that name.
            request(2, client_id="same", connection_id="a", broker_id=2, **PRODUCED),
        ]
    )
    assert data(clients) == {
        "calm": (5, 450),
        "loop": (0, 0),
        "decoy": (0, 0),
        "late": (0, 0),
        "later": (1, 100),
        "busy": (11, 1_100),
        "same": (1, 100),
    }


def fetch_line(replica_id: int, at_top: bool, name: str, answered: list[Row]) -> bytes:
    """A FETCH as a follower, as a broker logs it: the client wrote all but what is answered."""
    header: Row = {"requestApiKey": 1, "requestApiVersion": 12 if at_top else 16}
    header |= {"correlationId": 1, "clientId": name, "requestApiKeyName": "FETCH"}
    replica: Row = {"replicaId": replica_id}
    body: Row = {"sessionId": 0, "sessionEpoch": -1, "rackId": name, "forgottenTopicsData": []}
    fetched = [{"partition": n, "partitionMaxBytes": 1_048_576} for n in range(len(answered))]
    body |= {"topics": [{"topic": "t", "partitions": fetched}]}
    body |= replica if at_top else {"replicaState": replica | {"replicaEpoch": 1}}
    whole: Row = {"isForwarded": False, "requestHeader": header, "request": body}
    parts = [part | {"partitionIndex": n} for n, part in enumerate(answered)]
    responses = [{"topic": "t", "partitions": parts}]
    whole |= {"response": {"errorCode": 0, "responses": responses}, "totalTimeMs": 1.0}
    whole |= {"clientInformation": {"softwareName": name, "softwareVersion": name}}
    whole |= {"principal": "User:erin", "connection": "10.0.0.1:9092-10.0.0.5:4711-0-1"}
    return json.dumps(whole).encode()


ANSWERED = st.sampled_from(
    [
        {"errorCode": code, "recordsSizeInBytes": size}
        for code, size in ((29, 0), (29, -1), (0, 0), (6, 0))
    ]
)


@EXPENSIVE
@given(
    st.lists(
        st.builds(
            fetch_line,
            st.integers(0, 2**31 - 1),
            st.booleans(),
            st.text(max_size=9) | st.just("broker-2-fetcher-0"),
            st.lists(ANSWERED, max_size=3),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_no_line_of_a_fetch_that_brought_nothing_makes_a_follower(lines: list[bytes]) -> None:
    lines_read = [row | {"cluster_id": "c"} for row in parsed(lines, headers={"broker_id": "1"})]
    assert [row["replica_id"] for row in lines_read if row["api"] == "FETCH"] != []
    requests = [{name: row.get(name) for name in REQUESTS.column_names} for row in lines_read]
    assert {row["replica_id"] for row in addresses(requests)} == {None}


def test_the_line_of_a_fetch_that_brought_records_does() -> None:
    brought = {"errorCode": 0, "recordsSizeInBytes": 90}
    (row,) = parsed([fetch_line(2, False, "broker-2", [brought])], headers={"broker_id": "1"})
    fetch = {name: row.get(name) for name in REQUESTS.column_names} | {"cluster_id": "c"}
    assert [row["replica_id"] for row in addresses([fetch])] == [2]


def test_sampling_shows() -> None:
    clients = addresses([request(1, weight=None), request(2, "PRODUCE", weight=10.0)])
    assert [(row["requests"], row["max_weight"]) for row in clients] == [(11, 10)]


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
        partitions=st.sampled_from([None, [moved(0)], [moved(70)]]),
    ),
    max_size=30,
)


@EXPENSIVE
@given(requests=ANY_REQUESTS, minutes=st.sets(st.integers(0, 3)), seed=st.integers(0, 9))
def test_parts_of_time_and_any_order_equal_the_whole(
    requests: Rows, minutes: set[int], seed: int
) -> None:
    cuts = [at(60 * minute) for minute in minutes]
    shuffled = random.Random(seed).sample(requests, len(requests))
    assert_same_however_split(result_of("address_clients"), cuts, shuffled, requests=requests)
