"""The catalogue against its sources: clients' payloads and classes, librdkafka's header."""

import csv
import json

import pytest

from quotaflow.schemas.metrics import JAVA, LIBRDKAFKA, METRICS, PREFIX, unit_of

STANDARD = """
producer.connection.creation.rate producer.connection.creation.total
producer.node.request.latency.avg producer.node.request.latency.max
producer.produce.throttle.time.avg producer.produce.throttle.time.max
producer.record.queue.time.avg producer.record.queue.time.max
consumer.connection.creation.rate consumer.connection.creation.total
consumer.node.request.latency.avg consumer.node.request.latency.max
consumer.poll.idle.ratio.avg
consumer.coordinator.commit.latency.avg consumer.coordinator.commit.latency.max
consumer.coordinator.assigned.partitions
consumer.coordinator.rebalance.latency.avg consumer.coordinator.rebalance.latency.max
consumer.coordinator.rebalance.latency.total
consumer.fetch.manager.fetch.latency.avg consumer.fetch.manager.fetch.latency.max
"""
"""KIP-714, "Standard producer metrics" and "Standard consumer metrics"."""

UNITS_IN_LIBRDKAFKA = {"bytes": "By"}


@pytest.fixture(scope="module")
def sources(golden):
    """Rows of source, name, kind and (librdkafka) unit.

    Java's clients are what tests/oracle/ClientMetrics.java prints; Streams the sensors of its
    metrics classes, without those whose values are no numbers, which Kafka does not push;
    librdkafka the table in rdkafka_telemetry_encode.h.
    """
    with (golden / "otlp/metric_names.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_catalogue_is_what_the_sources_have(sources):
    of_source = {(LIBRDKAFKA if "rdkafka" in r["source"] else JAVA, r["name"]) for r in sources}
    in_catalogue = {
        (client, metric.name) for metric in METRICS.values() for client in metric.clients
    }
    assert sorted(of_source - in_catalogue) == [], "in a source, and not in the catalogue"
    assert sorted(in_catalogue - of_source) == [], "in the catalogue, and in no source"


def test_kinds_are_those_of_the_sources(sources):
    assert {r["name"]: METRICS[r["name"]].kind for r in sources if r["kind"]} == {
        r["name"]: r["kind"] for r in sources
    }


def test_units_are_librdkafkas_but_for_the_time_of_a_rate(sources):
    for row in sources:
        if row["unit"]:
            unit = unit_of(row["name"]).split("/")[0]
            assert unit == UNITS_IN_LIBRDKAFKA.get(row["unit"], row["unit"]), row["name"]


def test_every_metric_seen_is_known_with_its_kind_and_client(golden):
    rows = json.loads((golden / "otlp/catalog.json").read_text())
    clients = {"apache-kafka-java": JAVA, "confluent-kafka-python": LIBRDKAFKA}
    for software, _, name, kind, *_ in rows:
        assert METRICS[name].kind == kind.split("/")[0], name
        assert clients[software] in METRICS[name].clients, name


def test_the_standard_metrics_are_those_of_kip_714_and_both_libraries_send_them():
    standard = [metric for metric in METRICS.values() if metric.is_standard]
    assert {metric.kip_name for metric in standard} == {PREFIX + n for n in STANDARD.split()}
    assert {metric.clients for metric in standard} == {(JAVA, LIBRDKAFKA)}


def test_a_metric_no_kip_lists_has_no_name_there():
    metric = METRICS[PREFIX + "producer.request.latency.avg"]
    assert (metric.kip, metric.kip_name, metric.is_standard) == (None, None, False)
    assert METRICS[PREFIX + "stream.client.state"].kip == "KIP-1091"


UNITS = {
    "1/s": """
        producer.record.send.rate consumer.share.fetch.manager.acknowledgements.send.rate
    """,
    "1": """
        producer.record.send.total producer.topic.compression.rate
        producer.compression.rate.avg producer.bufferpool.wait.ratio
        consumer.fetch.manager.records.lag
    """,
    "By/s": """
        producer.topic.byte.rate consumer.fetch.manager.bytes.consumed.rate
        admin.client.node.incoming.byte.rate stream.state.bytes.read.compaction.rate
    """,
    "By": """
        producer.topic.byte.total producer.buffer.available.bytes producer.batch.size.max
        producer.node.request.size.avg consumer.fetch.manager.fetch.size.avg
    """,
    "ns": """
        producer.bufferpool.wait.time.ns.total producer.io.wait.time.ns.avg
        producer.iotime.total stream.task.process.latency.avg stream.state.put.latency.max
    """,
    "s": """
        producer.metadata.age consumer.coordinator.last.heartbeat.seconds.ago
        consumer.last.poll.seconds.ago
    """,
    "ms": """
        producer.produce.throttle.time.avg producer.node.request.latency.max
        consumer.coordinator.rebalance.latency.total
        consumer.coordinator.heartbeat.response.time.max
        consumer.share.fetch.manager.fetch.throttle.time.max
        consumer.unsent.requests.queue.time.max stream.thread.process.latency.avg
        stream.state.record.e2e.latency.min app.info.start.time.ms
    """,
    "1/h": "consumer.coordinator.rebalance.rate.per.hour",
}


@pytest.mark.parametrize(
    ("name", "unit"), [(name, unit) for unit, names in UNITS.items() for name in names.split()]
)
def test_units(name, unit):
    assert unit_of(PREFIX + name) == unit


@pytest.mark.parametrize(
    ("part", "unit"),
    [
        (".ns.", "ns"),
        (".seconds.ago", "s"),
        (".ratio", "1"),
        (".byte.", "By"),
        (".bytes.", "By"),
        (".queue.time.", "ms"),
        (".throttle.time.", "ms"),
        (".size.avg", "By"),
    ],
)
def test_a_name_that_says_its_unit_has_it(part, unit):
    named = [metric for metric in METRICS.values() if part in metric.name]
    assert named
    assert {metric.unit.split("/")[0] for metric in named} == {unit}


def test_the_list_is_open():
    assert unit_of("org.apache.kafka.my.application.orders.total") is None
    assert unit_of("stream.client.state") is None


def test_rates_and_totals_of_one_quantity_have_units_that_fit():
    for name, metric in METRICS.items():
        total = METRICS.get(name.removesuffix(".rate") + ".total")
        if name.endswith(".rate") and total:
            assert metric.unit == f"{total.unit}/s", name


def test_every_meaning_is_one_line_with_what_is_told_of_the_quantity():
    for name, metric in METRICS.items():
        assert metric.meaning.isprintable(), name
        assert metric.meaning.strip() == metric.meaning != "", name
    assert METRICS[PREFIX + "producer.batch.size.max"].meaning.endswith(": greatest")
    assert METRICS[PREFIX + "consumer.coordinator.rebalance.rate.per.hour"].meaning.endswith(
        "rebalances: per hour"
    )
