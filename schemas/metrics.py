"""The KIP-714 catalogue: what clients push, in which unit, and which client pushes it.

Neither the Java client nor librdkafka sends units, so they come from here. Kafka's names are
families: a quantity and what is told of it (`.rate`, `.total`, `.avg`, `.max`). The list is open:
Streams and applications (KIP-1076) push names of their own through the same channel. Units are
UCUM, as OTLP asks for: By, ms, ns, s, 1 for counts and ratios.
"""

from dataclasses import dataclass

PREFIX = "org.apache.kafka."

JAVA, LIBRDKAFKA = "apache-kafka-java", "librdkafka"
"""The libraries; what wraps librdkafka often gives a client_software_name of its own."""

_PER_STAT = {"rate": "/s", "rate.per.hour": "/h"}
_BOTH = "producer consumer"
_CLIENT_AND_NODE = "producer producer.node consumer consumer.node"
_SHARE = ["consumer.share", "consumer.share.fetch.manager", "consumer.share.coordinator"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its name as sent, unit, kind, the client libraries that send it, its meaning."""

    name: str
    unit: str
    kind: str
    clients: tuple[str, ...]
    meaning: str


# groups, quantity, what Java tells of it, what librdkafka tells, unit of the quantity, meaning
_FAMILIES = (
    (_BOTH, "connection.creation", "rate total", "rate total", "1", "connections opened"),
    (_BOTH, "connection.close", "rate total", "", "1", "connections closed"),
    (_BOTH, "connection.count", "-", "", "1", "connections open now"),
    (_BOTH, "network.io", "rate total", "", "1", "network operations, reads and writes"),
    (_BOTH, "select", "rate total", "", "1", "times the IO layer looked for new IO"),
    (_BOTH, "io.ratio io.wait.ratio", "-", "", "1", "share of time the IO thread works or waits"),
    (_BOTH, "io.time.ns io.wait.time.ns", "avg total", "", "ns", "time in IO, or waiting for it"),
    (
        _BOTH,
        "successful.authentication failed.authentication "
        "successful.reauthentication failed.reauthentication",
        "rate total",
        "",
        "1",
        "connections that did or did not authenticate",
    ),
    (_BOTH, "successful.authentication.no.reauth", "total", "", "1", "without reauthentication"),
    (_BOTH, "reauthentication.latency", "avg max", "", "ms", "time a reauthentication took"),
    (_CLIENT_AND_NODE, "incoming.byte outgoing.byte", "rate total", "", "By", "bytes on the wire"),
    (
        _CLIENT_AND_NODE,
        "request response",
        "rate total",
        "",
        "1",
        "requests sent, answers received",
    ),
    (_CLIENT_AND_NODE, "request.size", "avg max", "", "By", "size of requests"),
    ("producer.node consumer.node", "request.latency", "avg max", "avg max", "ms", "per broker"),
    ("producer", "request.latency", "avg max", "avg max", "ms", "latency of produce requests"),
    ("producer", "produce.throttle.time", "avg max", "avg max", "ms", "throttled by a broker"),
    ("producer", "record.queue.time", "avg max", "avg max", "ms", "batches waiting in the client"),
    ("producer", "batch.size", "avg max", "", "By", "bytes of a batch sent, per partition"),
    ("producer", "batch.split", "rate total", "", "1", "batches split as too large"),
    (
        "producer",
        "record.size",
        "avg max",
        "",
        "By",
        "size of records; max is the largest per batch",
    ),
    ("producer", "records.per.request", "avg", "", "1", "records in a produce request"),
    ("producer", "requests.in.flight", "-", "", "1", "requests waiting for an answer"),
    ("producer", "waiting.threads", "-", "", "1", "threads blocked on buffer memory"),
    ("producer", "buffer.available.bytes buffer.total.bytes", "-", "", "By", "buffer memory"),
    ("producer", "buffer.exhausted", "rate total", "", "1", "sends dropped: buffer exhausted"),
    ("producer", "bufferpool.wait.ratio", "-", "", "1", "share of time waiting for buffer memory"),
    ("producer", "compression.rate", "avg", "", "1", "compressed size over size before"),
    ("producer.topic", "compression.rate", "-", "", "1", "compressed size over size before"),
    ("producer.topic", "byte", "rate total", "", "By", "bytes sent to the topic"),
    ("producer producer.topic", "record.send", "rate total", "", "1", "records sent"),
    ("producer producer.topic", "record.error", "rate total", "", "1", "sends that failed"),
    ("producer producer.topic", "record.retry", "rate total", "", "1", "sends tried again"),
    ("producer", "metadata.age", "-", "", "s", "age of the metadata in use"),
    (
        "producer",
        "bufferpool.wait.time.ns metadata.wait.time.ns flush.time.ns txn.init.time.ns "
        "txn.begin.time.ns txn.prepare.time.ns txn.send.offsets.time.ns txn.commit.time.ns "
        "txn.abort.time.ns",
        "total",
        "",
        "ns",
        "time the application was blocked",
    ),
    ("consumer", "commit.sync.time.ns committed.time.ns", "total", "", "ns", "time in the call"),
    ("consumer", "last.poll.seconds.ago", "-", "", "s", "since the last poll"),
    ("consumer", "poll.idle.ratio", "avg", "avg", "1", "share of time inside poll"),
    ("consumer", "time.between.poll", "avg max", "", "ms", "between two polls"),
    ("consumer.coordinator", "assigned.partitions", "-", "-", "1", "partitions assigned now"),
    ("consumer.coordinator", "commit.latency", "avg max", "avg max", "ms", "of an offset commit"),
    ("consumer.coordinator", "commit join sync", "rate total", "", "1", "commits, joins, syncs"),
    ("consumer.coordinator", "heartbeat", "rate total", "", "1", "heartbeats sent"),
    ("consumer.coordinator", "heartbeat.response.time", "max", "", "ms", "answer to a heartbeat"),
    ("consumer.coordinator", "join.time sync.time", "avg max", "", "ms", "of a join or sync"),
    (
        "consumer.coordinator",
        "rebalance.latency",
        "avg max total",
        "avg max total",
        "ms",
        "of a successful rebalance",
    ),
    ("consumer.coordinator", "rebalance", "total rate.per.hour", "", "1", "rebalances that ended"),
    ("consumer.coordinator", "failed.rebalance", "total rate.per.hour", "", "1", "that failed"),
    (
        "consumer.coordinator",
        "last.heartbeat.seconds.ago last.rebalance.seconds.ago",
        "-",
        "",
        "s",
        "since the last one",
    ),
    (
        "consumer.coordinator",
        "partition.assigned.latency partition.lost.latency partition.revoked.latency",
        "avg max",
        "",
        "ms",
        "time in the listener's callback",
    ),
    ("consumer.fetch.manager", "bytes.consumed", "rate total", "", "By", "bytes consumed"),
    ("consumer.fetch.manager", "records.consumed", "rate total", "", "1", "records consumed"),
    ("consumer.fetch.manager", "fetch", "rate total", "", "1", "fetch requests"),
    ("consumer.fetch.manager", "fetch.latency", "avg max", "avg max", "ms", "of a fetch request"),
    ("consumer.fetch.manager", "fetch.size", "avg max", "", "By", "bytes in a fetch response"),
    ("consumer.fetch.manager", "fetch.throttle.time", "avg max", "", "ms", "throttled by a broker"),
    ("consumer.fetch.manager", "records.per.request", "avg", "", "1", "records in a response"),
    ("consumer.fetch.manager", "records.lag", "- avg max", "", "1", "records behind the end"),
    ("consumer.fetch.manager", "records.lead", "- avg min", "", "1", "records after the start"),
    ("consumer.fetch.manager", "preferred.read.replica", "-", "", "1", "node id; -1 the leader"),
    (_SHARE[0], "poll.idle.ratio", "", "avg", "1", "share of time inside poll"),
    (_SHARE[0], "time.between.poll", "", "avg max", "ms", "between two polls"),
    (_SHARE[0], "bytes.consumed", "", "rate total", "By", "bytes consumed"),
    (_SHARE[0], "acknowledgements.send", "", "rate total", "1", "acknowledgements sent"),
    (_SHARE[1], "fetch", "", "rate total", "1", "fetch requests"),
    (_SHARE[1], "fetch.latency fetch.throttle.time", "", "avg max", "ms", "of a fetch request"),
    (_SHARE[1], "fetch.size", "", "avg max", "By", "bytes in a fetch response"),
    (_SHARE[2], "heartbeat", "", "rate total", "1", "heartbeats sent"),
    ("app.info", "start.time.ms", "-", "", "ms", "when the client started, since the epoch"),
    ("kafka", "count", "count", "", "1", "metrics registered in the client"),
)


def _metrics() -> dict[str, Metric]:
    found: dict[str, Metric] = {}
    for groups, quantities, java, librdkafka, unit, meaning in _FAMILIES:
        by_client = {JAVA: java.split(), LIBRDKAFKA: librdkafka.split()}
        for group in groups.split():
            for quantity in quantities.split():
                for stat in dict.fromkeys(by_client[JAVA] + by_client[LIBRDKAFKA]):
                    clients = tuple(client for client, stats in by_client.items() if stat in stats)
                    name = PREFIX + f"{group}.{quantity}" + (f".{stat}" if stat != "-" else "")
                    kind = "sum" if stat == "total" else "gauge"
                    per = unit + _PER_STAT.get(stat, "")
                    found[name] = Metric(name, per, kind, clients, meaning)
    return found


METRICS = _metrics()
"""Every metric known, by its full name."""


def unit_of(name: str) -> str | None:
    """The UCUM unit of a metric by its full name; None where the catalogue does not know it."""
    metric = METRICS.get(name)
    return metric.unit if metric else None
