"""Points of a Collector's batch belong to the client that their resource names, and to no other."""

import pyarrow as pa
import pytest

from quotaflow.schemas.tables.declared import CLIENT_METRICS
from quotaflow.udfs.otlp import decode
from quotaflow.udfs.otlp.codecs import Limits

from .otlp_made import attribute, gauge, payload, point
from .test_pushes import pushes

CONTEXT = {
    "client_instance_id": "wqtSH2gTSq-fK5xhbi4Wsg",
    "principal": "User:alice",
    "client_id": "orders",
    "client_software_name": "apache-kafka-java",
    "client_software_version": "4.3.1",
    "client_source_address": "10.0.0.7",
    "client_source_port": "41636",
    "listener": "SASL_SSL",
    "broker_id": "2",
    "push_interval_ms": "1000",
}


def collected(resource=None, value=1):
    attributes = CONTEXT if resource is None else resource
    sent = [attribute(key, string_value=text) for key, text in attributes.items()]
    own = [attribute("client_rack", string_value="az-a")]
    return payload(gauge(point(as_int=value)), resource=[*own, *sent])


def decoded(batch):
    decoded = decode.decode_pushes(Limits())(iter([batch]))
    return [row for rows in decoded for row in rows.to_pylist()]


def by_log(data):
    """The same points by the request log, whose push columns are known."""
    batch = pushes([data], ["none"])
    names = batch.schema.names
    schema = CLIENT_METRICS.arrow
    renamed = {"client_address": "client_source_address", "client_port": "client_source_port"}
    for name in names:
        key = renamed.get(name, name)
        if key in CONTEXT:
            value = (
                int(CONTEXT[key]) if pa.types.is_integer(schema.field(name).type) else CONTEXT[key]
            )
            column = pa.array([value], schema.field(name).type)
            batch = batch.set_column(names.index(name), name, column)
    return batch


def of_a_collector(data):
    """A push whose Kafka record says nothing about clients."""
    batch = pushes([data], ["none"])
    for name in ("principal", "client_instance_id"):
        at = batch.schema.names.index(name)
        batch = batch.set_column(at, name, pa.nulls(batch.num_rows, pa.string()))
    return batch


def test_the_row_is_the_one_another_route_gives():
    (row,) = decoded(of_a_collector(collected()))
    (same,) = decoded(by_log(collected({})))
    assert row == same
    assert row["client_port"] == 41636
    assert row["resource"] == [("client_rack", "az-a")]


PREFIXED = {f"kafka.header.{key}": text for key, text in CONTEXT.items()}


def test_headers_of_a_kafka_receiver_are_the_same_with_their_prefix():
    (row,) = decoded(of_a_collector(collected(PREFIXED | {"kafka.header.tenant": "x"})))
    (same,) = decoded(by_log(collected({})))
    assert row == same


def claiming(claims, others=0):
    """A push whose client claims attributes, before those that a Collector adds."""
    filling = [attribute(f"a{n}", string_value="x") for n in range(others)]
    theirs = [attribute(key, string_value=text) for key, text in claims]
    added = [attribute(key, string_value=text) for key, text in PREFIXED.items()]
    return payload(gauge(point(as_int=1)), resource=[*theirs, *filling, *added])


@pytest.mark.parametrize(
    ("claims", "principal"),
    [
        pytest.param([("principal", "User:admin")], "User:alice", id="without the prefix"),
        pytest.param(
            # A Collector writes over the first attribute of a name.
            [(k, v) for k, v in PREFIXED.items() if k.endswith("principal")]
            + [("kafka.header.principal", "User:admin")],
            "User:alice", id="again, behind the one that is written over",
        ),
    ],
)  # fmt: skip
def test_a_client_cannot_claim_headers(claims, principal):
    (row,) = decoded(of_a_collector(claiming(claims)))
    assert (row["principal"], row["client_instance_id"]) == (
        principal,
        CONTEXT["client_instance_id"],
    )


def test_a_client_that_pushes_the_added_headers_over_the_limit_is_nobody():
    claims = [("client_instance_id", "another"), ("principal", "User:admin")]
    (row,) = decoded(of_a_collector(claiming(claims, others=Limits().attributes)))
    assert (row["principal"], row["client_instance_id"]) == (None, None)


def test_clients_of_one_batch_are_told_apart():
    """A Collector batches many clients, some of them unknown."""
    both = collected() + collected(CONTEXT | {"client_instance_id": "b", "client_id": "x"}, 2)
    rows = decoded(of_a_collector(both + collected({}, 3)))
    assert [(row["value_int"], row["client_id"]) for row in rows] == [
        (1, "orders"),
        (2, "x"),
        (3, None),
    ]
    assert len({row["series_id"] for row in rows}) == 3


def test_a_known_client_cannot_claim_to_be_another():
    claimed = collected({"principal": "User:admin", "client_instance_id": "another"})
    (row,) = decoded(by_log(claimed))
    assert row["principal"] == "User:alice"
    assert row["client_instance_id"] == CONTEXT["client_instance_id"]
    assert ("principal", "User:admin") in row["resource"]


@pytest.mark.parametrize("port", ["", "70 000", "9" * 40, "-"])
def test_a_number_that_is_none_is_null(port):
    (row,) = decoded(of_a_collector(collected(CONTEXT | {"client_source_port": port})))
    assert row["client_port"] is None
