"""The catalogue against what real clients sent, and the units of every family."""

import json

import pytest

from quotaflow.schemas.metrics import JAVA, LIBRDKAFKA, METRICS, PREFIX, unit_of


def test_every_metric_seen_is_known_with_its_kind_and_client(golden):
    rows = json.loads((golden / "otlp/catalog.json").read_text())
    clients = {"apache-kafka-java": JAVA, "confluent-kafka-python": LIBRDKAFKA}
    for software, _, name, kind, *_ in rows:
        assert METRICS[name].kind == kind.split("/")[0], name
        assert clients[software] in METRICS[name].clients, name


def test_every_metric_of_librdkafka_seen_or_of_share_consumers(golden):
    rows = json.loads((golden / "otlp/catalog.json").read_text())
    seen = {row[2] for row in rows if row[0] == "confluent-kafka-python"}
    known = {name for name, metric in METRICS.items() if LIBRDKAFKA in metric.clients}
    assert {name for name in known - seen if ".share." not in name} == set()


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("producer.record.send.rate", "1/s"),
        ("producer.record.send.total", "1"),
        ("producer.topic.byte.rate", "By/s"),
        ("producer.topic.byte.total", "By"),
        ("producer.topic.compression.rate", "1"),
        ("producer.compression.rate.avg", "1"),
        ("producer.buffer.available.bytes", "By"),
        ("producer.bufferpool.wait.time.ns.total", "ns"),
        ("producer.bufferpool.wait.ratio", "1"),
        ("producer.batch.size.max", "By"),
        ("producer.metadata.age", "s"),
        ("producer.produce.throttle.time.avg", "ms"),
        ("producer.node.request.latency.max", "ms"),
        ("producer.node.request.size.avg", "By"),
        ("producer.io.wait.time.ns.avg", "ns"),
        ("consumer.coordinator.rebalance.latency.total", "ms"),
        ("consumer.coordinator.rebalance.rate.per.hour", "1/h"),
        ("consumer.coordinator.heartbeat.response.time.max", "ms"),
        ("consumer.coordinator.last.heartbeat.seconds.ago", "s"),
        ("consumer.fetch.manager.bytes.consumed.rate", "By/s"),
        ("consumer.fetch.manager.records.lag", "1"),
        ("consumer.fetch.manager.fetch.size.avg", "By"),
        ("consumer.share.fetch.manager.fetch.throttle.time.max", "ms"),
        ("app.info.start.time.ms", "ms"),
    ],
)
def test_units(name, unit):
    assert unit_of(PREFIX + name) == unit


def test_the_list_is_open():
    assert unit_of("org.apache.kafka.stream.thread.poll.ratio") is None


def test_rates_and_totals_of_one_quantity_have_units_that_fit():
    for name, metric in METRICS.items():
        total = METRICS.get(name.removesuffix(".rate") + ".total")
        if name.endswith(".rate") and total:
            assert metric.unit == f"{total.unit}/s", name
