"""Records that shippers and JSON layouts write around a line: their names, times and brokers.

Field names are those of each writer's own documentation. A record is JSON that was read.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

Record = Mapping[str, Any]

OTLP, CLOUDWATCH, JSON_STRING = "OTLP logs", "CloudWatch", "JSON string"
DOCKER, CRI, SYSLOG, PLAIN = "docker", "CRI", "syslog", "text before JSON"

FIELDS = (
    "message",
    "log",
    "event",
    "event.original",
    "log.original",
    "short_message",
    "full_message",
    "textPayload",
    "body",
    "line",
    "msg",
    "MESSAGE",
    "payload",
)
"""Fields in which they put a line: Beats, Logstash, Fluent Bit, GELF, Splunk, GCP, OTLP, journald,
Kafka Connect."""
TIMES = (
    "ts",
    "@timestamp",
    "timestamp",
    "time",
    "_time",
    "ISODATE",
    "S_ISODATE",
    "UNIXTIME",
    "S_UNIXTIME",
    "timereported",
    "timeUnixNano",
    "timeMillis",
    "instant",
    "date",
    "__REALTIME_TIMESTAMP",
    "timestampSeconds",
    "observedTimeUnixNano",
    "receiveTimestamp",
    "R_ISODATE",
    "R_UNIXTIME",
    "timegenerated",
    "EventTime",
)
"""Fields in which they put its time, the most trustworthy first."""
LOGGERS = ("logger", "loggerName", "logger_name", "log.logger", "_logger")
"""Fields in which JSON layouts put the logger's name."""

REQUEST_LOGGER = "kafka.request.logger"

_BROKERS = ("broker", "broker_id", "broker.id", "node_id", "node.id", "kafka.broker.id")
_PODS = ("pod_name", "pod.name", "k8s.pod.name", "pod", "_k8s_pod_name", "kube_pod_name")
_HOSTS = (
    *("host", "host.name", "hostname", "source_host", "agent.hostname", "_HOSTNAME"),
    *("HOST", "FULLHOST", "Hostname"),
    *("service.instance.id", "logStream"),
)
_WITHIN = (
    *("kubernetes", "fields", "_fields", "labels", "tags", "attributes", "resource"),
    *("resource.labels", "resource.attributes", "cloud", "orchestrator"),
)
_NAMING = {path.partition(".")[0] for path in (*_BROKERS, *_PODS, *_HOSTS, *_WITHIN)}
_NAMING |= {*_BROKERS, *_PODS, *_HOSTS, *_WITHIN, "ddtags"}
_KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (OTLP, ("resourceLogs",)),
    (OTLP, ("resource_logs",)),
    (CLOUDWATCH, ("logEvents",)),
    (CLOUDWATCH, ("logGroup",)),
    ("Google Cloud", ("textPayload",)),
    ("Google Cloud", ("jsonPayload",)),
    ("Google Cloud", ("logName",)),
    ("GELF", ("short_message",)),
    ("Datadog", ("ddsource",)),
    ("Datadog", ("ddtags",)),
    ("Filebeat", ("@metadata",)),
    ("Filebeat", ("agent", "input")),
    ("Filebeat", ("beat",)),
    ("Vector", ("source_type",)),
    ("Splunk HEC", ("event", "sourcetype")),
    ("Splunk HEC", ("event", "source")),
    ("Splunk HEC", ("event", "host")),
    ("Splunk HEC", ("event", "time")),
    ("Kafka Connect", ("schema", "payload")),
    ("syslog-ng", ("MESSAGE", "HOST")),
    ("syslog-ng", ("MESSAGE", "ISODATE")),
    ("syslog-ng", ("MESSAGE", "PROGRAM")),
    ("journald", ("MESSAGE",)),
    ("rsyslog", ("msg", "syslogtag")),
    ("rsyslog", ("rawmsg",)),
    ("CloudEvents", ("specversion", "data")),
    ("NXLog", ("SourceModuleName",)),
    ("Telegraf", ("fields", "name", "tags")),
    ("Cribl", ("_raw",)),
    ("logstash", ("@version",)),
    ("ECS layout", ("ecs.version",)),
    ("ECS layout", ("log.level", "message")),
    ("log4j JSON layout", ("loggerName",)),
    ("log4j JSON layout", ("instant",)),
    ("fluentd or Fluent Bit", ("kubernetes",)),
    (DOCKER, ("log", "stream", "time")),
    ("fluentd or Fluent Bit", ("log",)),
    ("fluentd or Fluent Bit", ("docker",)),
)
"""A name for the records that have all of these fields; the first that fits."""
_KIND_KEYS = frozenset(key for _, keys in _KINDS for key in keys)
OTHER = "record of a shipper"

_MOST_US = 1 << 63
_NAME_CHARS = 253  # of a domain name
_PARTS: tuple[tuple[str, str], ...] = (("_p", "P"), ("logtag", "P"), ("partial_message", "true"))
_PARTS += (("CONTAINER_PARTIAL_MESSAGE", "true"),)
_PART_KEYS = frozenset(key for key, _ in _PARTS)
_JOIN = {
    DOCKER: "let the shipper join parts, such as Fluent Bit's multiline.parser docker",
    CRI: "let the shipper join parts, such as Fluent Bit's multiline.parser cri",
}
_TORN = "raise the shipper's limit of a line, and let it join parts that a runtime split"


def name(record: Record) -> str:
    """What wrote a record, as far as its fields say."""
    return _name_of(_KIND_KEYS.intersection(record))


@lru_cache(1024)
def _name_of(keys: frozenset[str]) -> str:
    return next((kind for kind, needed in _KINDS if keys.issuperset(needed)), OTHER)


def is_part(record: Record) -> bool:
    """Whether its container runtime split a line, and this is a part but not the last one."""
    if _PART_KEYS.isdisjoint(record):
        return False
    return any(str(record.get(key)).lower() == value.lower() for key, value in _PARTS)


def cure_of_torn(kind: str) -> str:
    """What helps where a record of this kind has a part of a line."""
    return f"{kind}: a part of a line: {_JOIN.get(kind, _TORN)}"


def time(record: Record) -> Any:
    """The time in a record as a number or text; None if it has none."""
    for field in TIMES:
        value = record.get(field)
        if value is None:
            continue
        if isinstance(value, dict):
            value = _of_parts(value, ("epochSecond", "seconds"), ("nanoOfSecond", "nanos"))
        elif field == "timestampSeconds":
            value = _of_parts(record, (field,), ("timestampNanos",))
        is_scalar = isinstance(value, int | float | str) and not isinstance(value, bool)
        if is_scalar and (value not in ("", "0", 0) or field == "ts"):
            return value
    return None


class Origin(NamedTuple):
    """The broker that records name as such, and names that may be of it: of pods, then of hosts."""

    broker: str | None = None
    names: tuple[str, ...] = ()


UNNAMED = Origin()


def origin(records: Iterable[Record]) -> Origin:
    """What records say about their broker, the innermost first."""
    nodes = [node for each in records for node in _naming_nodes(each)]
    broker = next((value for node in nodes for value in _values(node, _BROKERS)), None)
    names = (v for fields in (_PODS, _HOSTS) for node in nodes for v in _values(node, fields))
    return Origin(broker, tuple(name for name in names if len(name) <= _NAME_CHARS))


def valid(text: str) -> str:
    """The text without halves of surrogate pairs, which an escape of JSON can spell."""
    return text.encode("utf-8", "replace").decode("utf-8")


def logger(record: Record) -> str | None:
    """The logger's name, as a JSON layout has it."""
    named = (at(record, field) for field in _present(record, LOGGERS))
    return next((each for each in named if isinstance(each, str)), None)


def at(record: Record, path: str) -> Any:
    """The value of a dotted field: as one key, or as keys of nested records."""
    if path in record:
        return record[path]
    first, _, rest = path.partition(".")
    inner = record.get(first)
    return at(inner, rest) if rest and isinstance(inner, dict) else None


def _naming_nodes(record: Record) -> Iterator[Record]:
    """The record, its tags, and the records within it that may name a broker."""
    if _NAMING.isdisjoint(record):
        return
    yield record
    if tags := dict(_tags(record)):
        yield tags
    for path in _present(record, _WITHIN):
        if isinstance(node := at(record, path), dict):
            yield node


def _values(node: Record, fields: tuple[str, ...]) -> Iterator[str]:
    for field in _present(node, fields):
        value = at(node, field)
        if isinstance(value, int | str) and not isinstance(value, bool) and value != "":
            yield valid(str(value))


def _present(node: Record, fields: tuple[str, ...]) -> tuple[str, ...]:
    """Those of these dotted fields whose first key a record has, or that are a key of it."""
    return _of_keys(_keys_of(fields).intersection(node), fields)


@lru_cache(1024)
def _keys_of(fields: tuple[str, ...]) -> frozenset[str]:
    return frozenset(key for field in fields for key in (field, field.partition(".")[0]))


@lru_cache(1024)
def _of_keys(keys: frozenset[str], fields: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f for f in fields if f in keys or f.partition(".")[0] in keys)


def _tags(record: Record) -> Iterator[tuple[str, str]]:
    """Datadog's tags, `name:value`."""
    listed = record.get("ddtags", record.get("tags"))
    texts = listed.split(",") if isinstance(listed, str) else listed
    for text in texts if isinstance(texts, list) else ():
        key, colon, value = text.partition(":") if isinstance(text, str) else ("", "", "")
        if colon:
            yield key.strip(), value.strip()


def _of_parts(record: Record, seconds: tuple[str, ...], nanos: tuple[str, ...]) -> int | None:
    """Microseconds of a time in two numbers."""
    whole = next((record[key] for key in seconds if key in record), None)
    part = next((record[key] for key in nanos if key in record), 0)
    try:
        us = int(whole) * 1_000_000 + int(part) // 1_000  # type: ignore[arg-type]
        return us if abs(us) < _MOST_US else None
    except (TypeError, ValueError, OverflowError):
        return None
