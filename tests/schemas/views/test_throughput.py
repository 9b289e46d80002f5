"""What clients send and consume, and which software they are."""

from quotaflow.pipelines.compute import texts
from quotaflow.udfs.engine.database import opened

from ... import case_tables
from ...cases import cases
from ...rows import CLIENT, HOSTILE, SENT, Row, at, cumulative, delta, gauge, request
from .view_tables import Picked, picked, view

BYTES = "producer.topic.byte.total"
IN = "consumer.fetch.manager.records.consumed.total"
BYTES_IN = "consumer.fetch.manager.bytes.consumed.total"
SHARED_IN = "consumer.share.fetch.manager.bytes.consumed.total"


def counter(
    second: float, start: float, metric: str, value: float, topic: str | None = None
) -> Row:
    return delta(second, start, value, metric, topic=topic)


@cases(
    ("points", "expected"),
    *case_tables.rows(
        __file__,
        "throughput",
        counter,
        cumulative,
        gauge,
        SENT=SENT,
        BYTES=BYTES,
        IN=IN,
        BYTES_IN=BYTES_IN,
        SHARED_IN=SHARED_IN,
    ),
)
def test_throughput(points: list[Row], expected: Picked) -> None:
    actual = view("client_throughput ORDER BY minute", {"client_metrics": points})
    names = ("records_sent", "bytes_sent", "records_consumed", "bytes_consumed", "elapsed_ms")
    assert picked(actual, *names) == expected


def test_versions_in_use() -> None:
    old = {"client_software_name": "librdkafka", "client_software_version": "2.5.0"}
    silent = {"client_software_name": None, "client_software_version": None}
    instances = ["i1", "i2", "i1"]
    content = {
        "requests": [
            request(1, "PRODUCE"),
            request(9, "FETCH", principal="User:bob", client_id=HOSTILE),
            request(5, "METADATA", client_address="10.0.0.8", weight=10),
            request(3, "PRODUCE", **old),
            request(4, "PRODUCE", **silent),
            request(2, "API_VERSIONS", **silent),
            request(2, "FETCH", replica_id=2, **silent),
        ],
        "telemetry_subscriptions": [{**CLIENT, "client_instance_id": i} for i in instances],
    }
    actual = view("client_versions ORDER BY client_software_name", content)
    java, librdkafka, unknown = actual
    assert java == {
        "cluster_id": "c1",
        "client_software_name": "apache-kafka-java",
        "client_software_version": "4.3.1",
        "version_number": 4_003_001,
        "newer_version": None,
        "principals": ["User:alice", "User:bob"],
        "client_ids": 2,
        "client_addresses": 2,
        "request_count": 12,
        "first_seen": at(1),
        "last_seen": at(9),
        "telemetry_instances": 2,
    }
    assert (librdkafka["client_software_version"], librdkafka["telemetry_instances"]) == (
        "2.5.0",
        0,
    )
    assert (unknown["client_software_name"], unknown["request_count"]) == ("unknown", 1)
    assert (librdkafka["version_number"], unknown["version_number"]) == (2_005_000, None)


def test_an_old_version_has_the_newest_of_its_library() -> None:
    used = ("2.9.0", "2.10.0", "dev")
    lines = [request(1, "PRODUCE", client_software_version=text) for text in used]
    lines += [request(1, "PRODUCE", client_software_name="x", client_software_version="1.0")]
    shown = view("client_versions ORDER BY version_number", {"requests": lines})
    assert {row["client_software_version"]: row["newer_version"] for row in shown} == {
        "dev": None,
        "1.0": None,
        "2.9.0": "2.10.0",
        "2.10.0": None,
    }


VERSIONS = {
    "2.9.0": 2_009_000,
    "2.10.0": 2_010_000,
    "v1.18.2": 1_018_002,
    "7.4.0-ccs": 7_004_000,
    "2.5.0-rdkafka-2.5.3": 2_005_000,
    "4": 4_000_000,
    "4.3": 4_003_000,
    "1.99999.5": 1_999_005,
    "99999999999.1.1": None,
    "dev": None,
    "": None,
    HOSTILE: None,
}


def test_versions_compare_as_numbers() -> None:
    content = {
        "requests": [request(1, "PRODUCE", client_software_version=text) for text in VERSIONS],
        "telemetry_subscriptions": [{**CLIENT, "client_instance_id": "i1"}],
    }
    actual = view("client_versions", content)
    assert {row["client_software_version"]: row["version_number"] for row in actual} == VERSIONS


def test_rules_count_versions_as_the_view_does() -> None:
    by_number = "SELECT v, version_number(v) FROM (SELECT unnest(?) AS v)"
    least = "SELECT least_version(v) FROM (SELECT unnest(['dev', '2.10.0', '2.9.0', NULL]) AS v)"
    with opened({}) as database:
        database.instance.add_macros(texts.read("shared/macros.sql"))
        numbers = database.connection.execute(by_number, [list(VERSIONS)]).fetchall()
        assert dict(numbers) == VERSIONS
        assert database.connection.execute(least).fetchall() == [("2.9.0",)]
