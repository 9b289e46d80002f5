"""Every metric that one of the five KIPs names is in the list, and what it refers to exists."""

from collections import Counter

from quotaflow.pipelines.warehouse import views
from quotaflow.schemas.kip_metrics import KIP_METRICS, is_bean
from quotaflow.schemas.metrics import METRICS, PREFIX
from quotaflow.schemas.tables.catalog import TABLES

KIP_714_TABLES = """
connection.creations connection.count connection.errors request.rtt request.queue.latency
request.queue.count request.success request.errors io.wait.time
producer.record.bytes producer.record.count producer.queue.max.bytes producer.queue.bytes
producer.queue.max.messages producer.queue.messages
consumer.poll.interval consumer.poll.last consumer.poll.latency consumer.commit.count
consumer.group.assignment.strategy consumer.group.assignment.partition.count
consumer.assignment.partition.count consumer.group.rebalance.count consumer.group.error.count
consumer.record.queue.count consumer.record.queue.bytes consumer.record.application.count
consumer.record.application.bytes consumer.fetch.latency consumer.fetch.count
consumer.fetch.failures
producer.partition.queue.bytes producer.partition.queue.count producer.partition.latency
producer.partition.queue.latency producer.partition.record.retries
producer.partition.record.failures producer.partition.record.success
process.memory.bytes process.cpu.user.time process.cpu.system.time process.io.wait.time process.pid
"""
"""The tables of KIP-714's draft, without the prefix client."""

OTHERS = {
    "KIP-73": """
        LeaderReplicationThrottledRate FollowerReplicationThrottledRate PartitionBytesInRate
        SumReplicaLag LeaderThrottleTime FollowerThrottleTime LeaderDelayQueue
        LeaderQuotaRate FollowerQuotaRate""",
    "KIP-392": "preferred-read-replica",
    "KIP-936": "ProducerIds.rate ProducerIds.tokens ProducerIds.throttle-time",
}


def test_every_name_of_the_kips_is_listed_once() -> None:
    in_tables = [m.name for m in KIP_METRICS if m.listed == "draft table"]
    assert sorted(in_tables) == sorted(f"{PREFIX}client.{n}" for n in KIP_714_TABLES.split())
    for kip, names in OTHERS.items():
        assert sorted(m.name for m in KIP_METRICS if m.kip == kip) == sorted(names.split())
    counts = Counter(metric.name for metric in KIP_METRICS)
    assert max(counts.values()) == 1
    assert counts.keys().isdisjoint(METRICS)


def test_what_a_name_refers_to_exists() -> None:
    columns_of = {name: view.columns for name, view in views.load().items()}
    columns_of |= {name: table.columns for name, table in TABLES.items()}
    columns = {f"{name}.{column.name}" for name, of_one in columns_of.items() for column in of_one}
    for metric in KIP_METRICS:
        assert {name for name in metric.sent_as if not is_bean(name)} <= METRICS.keys()
        assert columns.issuperset(metric.answers), metric.name
        assert metric.remark


def test_a_remark_about_libraries_is_what_the_catalogue_has() -> None:
    for metric in KIP_METRICS:
        sent = [METRICS[name] for name in metric.sent_as if not is_bean(name)]
        is_java_only = bool(sent) and all(each.clients == ("apache-kafka-java",) for each in sent)
        is_example = metric.listed == "draft text"
        assert metric.remark.startswith("Java") == is_java_only or is_example, metric.name
