"""The files init writes: conf, scripts for an operator, broker files, next steps."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib import resources
from pathlib import Path

from quotaflow.pipelines.config import Conf, logins
from quotaflow.pipelines.connect import conf_file, kafka_commands
from quotaflow.pipelines.connect.cluster_discovery import Discovery
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection, quoted
from quotaflow.pipelines.kafka.release import Release
from quotaflow.udfs.counted import counted

_SHIPPERS = ("fluent-bit.yaml", "vector.yaml", "rsyslog.conf", "otel-collector-logs.yaml")
_COLLECTOR_OF_PUSHES = "otel-collector-metrics.yaml"
_APPENDER_FILES = (
    "request-log.properties",
    *("Log4j2Appender.java", "Reload4jAppender.java", "RequestLog.java", "RequestLines.java"),
    *("RequestLogSettings.java", "RecordSender.java", "SenderCounts.java", "JmxBean.java"),
)
_LOG4J2_APPENDER = "log4j2-topic.yaml"
_RECEIVER_FILES = ("TelemetryReceiver.java",)
_GATE_FILES = ("TelemetryGate.java",)
_REPORTERS = "metric.reporters=org.apache.kafka.common.metrics.JmxReporter,quotaflow.{}\n"
_SCRIPT = "#!/bin/sh\n# {}\nset -eu\n"
_PRINCIPALS = {"SHIPPER": "User:shipper", "RECEIVER": "User:receiver"}
_OPERATOR = "User:quotaflow-operator"
_UNKNOWN = (
    "the principal that brokers print for this login is not known: PIPELINE=User:NAME sh acls.sh; "
    "see docs/connect.md, The principal"
)
_EXECUTABLE, _READABLE = 0o755, 0o644
_NAMED = 3


def render(conf: Conf, discovery: Discovery, now: datetime) -> dict[str, str]:
    """The files by path within the folder."""
    package = resources.files("quotaflow.broker")
    reporter = _reporter_files(conf, discovery.release)
    layouts = [discovery.release.layout]
    if discovery.release.has_log4j2:
        layouts.append(_LOG4J2_APPENDER)
    names = [*layouts, *_SHIPPERS, *_APPENDER_FILES, *reporter]
    if conf.ingest.otlp_topic:
        names.append(_COLLECTOR_OF_PUSHES)
    broker_files = {f"broker/{name}": (package / name).read_text("utf-8") for name in names}
    if reporter:
        broker_files["broker/server.properties"] = _server_properties(conf, discovery.release)
    return {
        "conf.yaml": conf_file.text(conf, discovery, now),
        "topics.sh": _topics(conf, discovery),
        "acls.sh": _acls(conf),
        **broker_files,
        "NEXT.md": _next(conf, discovery.release),
    }


def _reporter_files(conf: Conf, release: Release) -> tuple[str, ...]:
    """The sources of what lets clients push telemetry; none where nothing does or shall."""
    if release.loads_receiver:
        return _RECEIVER_FILES if conf.ingest.receiver_topic else ()
    return _GATE_FILES if release.takes_telemetry else ()


def without_receiver(conf: Conf, release: Release) -> Conf:
    """Conf that reads no topic of a receiver where none can load, unless it was named."""
    if release.loads_receiver or "receiver_topic" in conf.ingest.model_fields_set:
        return conf
    ingest = conf.ingest.model_copy(update={"receiver_topic": None})
    return conf.model_copy(update={"ingest": ingest})


def write(folder: Path, contents: Mapping[str, str], *, over: bool = False) -> None:
    """Write all files, or none if one exists already and `over` is false.

    Raises ConfigError that names the existing files.
    """
    existing = [name for name in contents if (folder / name).exists()]
    if existing and not over:
        raise ConfigError(
            f"{folder} has {_named(existing)} already, and nothing was written: give another "
            "folder with --out, or overwrite with --force"
        )
    try:
        for name, content in contents.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
            path.chmod(_EXECUTABLE if name.endswith(".sh") else _READABLE)
    except OSError as error:
        raise ConfigError(f"cannot write to {folder}: {error.strerror}") from None


def _named(files: Sequence[str]) -> str:
    """The first files by name, and the number of the others."""
    others = len(files) - _NAMED
    return ", ".join(files[:_NAMED]) + (
        f" and {counted(others, 'more file')}" if others > 0 else ""
    )


def _topics(conf: Conf, discovery: Discovery) -> str:
    lines = kafka_commands.topics(conf, discovery, Connection.from_conf(conf.kafka))
    what = (
        "The topics quotaflow reads, with one replica on the cluster that is observed: followers'\n"
        "# fetches of the log would be lines of the log. Elsewhere take three. The last topic has\n"
        "# what is to be restored: nothing is written to configs without it."
    )
    return _SCRIPT.format(what) + "".join(f"{line}\n" for line in lines)


def _acls(conf: Conf) -> str:
    what = (
        "The rights each login needs. Edit the names: with mTLS they are distinguished names,\n"
        "# with tokens often ids.\n"
        "# As soon as a resource has one ACL, Kafka refuses all other principals on it, unless\n"
        "# allow.everyone.if.no.acl.found is false already."
    )
    parts = [_SCRIPT.format(what)]
    parts += [f"{login}={quoted(name)}\n" for login, name in _PRINCIPALS.items()]
    # A right of a name that nobody has would lock the pipeline's own login out of its topics.
    if (own := conf.kafka.own_principal) is None:
        parts.append(f'PIPELINE="${{PIPELINE:?{_UNKNOWN}}}"\n')
    else:
        parts.append(f"PIPELINE={quoted(own)}\n")
    parts.append(f"OPERATOR={_OPERATOR}\n")
    for login, roles in kafka_commands.LOGINS.items():
        lines = list(kafka_commands.rights(login, conf, Connection.from_conf(conf.kafka)))
        if lines:
            parts.append(f"\n# {login}: {', '.join(roles)}\n")
            parts += [f"{line}\n" for line in lines]
    return "".join(parts)


def _server_properties(conf: Conf, release: Release) -> str:
    head = (
        "# Add to each broker's server.properties: naming a reporter alone replaces JmxReporter.\n"
    )
    if not release.loads_receiver:
        return head + _REPORTERS.format("TelemetryGate")
    lines = _producer_of_receiver(conf)
    if url := conf.kafka.properties.get(logins.TOKEN_URL):
        head += f"# Their JVMs need the option -D{logins.ALLOWED_URLS}={url} too.\n"
    return (
        head
        + _REPORTERS.format("TelemetryReceiver")
        + "".join(f"{key}={value}\n" for key, value in lines.items())
    )


def _producer_of_receiver(conf: Conf) -> dict[str, str]:
    """Where the receiver sends pushes to, and how it logs in."""
    kafka, topic = conf.kafka.properties, conf.ingest.receiver_topic
    login = {
        f"quotaflow.telemetry.producer.{key}": kafka[key]
        for key in ("security.protocol", "sasl.mechanism", logins.TOKEN_URL)
        if key in kafka
    }
    mechanism = logins.MECHANISMS.get(kafka.get("sasl.mechanism", ""))
    for key, value in mechanism.defaults.items() if mechanism else ():
        # Brokers have Kafka 4 or later, where the handler of tokens has another name.
        login[f"quotaflow.telemetry.producer.{key}"] = value.replace(".secured.", ".")
    if "sasl.mechanism" in login.keys() | kafka.keys():
        login |= {
            "quotaflow.telemetry.producer.sasl.jaas.config": (
                "${file:/etc/kafka/quotaflow/receiver.properties:jaas}"
            ),
            "config.providers": "file",
            "config.providers.file.class": (
                "org.apache.kafka.common.config.provider.FileConfigProvider"
            ),
        }
    return {
        "quotaflow.telemetry.topic": topic or "",
        "quotaflow.telemetry.bootstrap.servers": kafka.get("bootstrap.servers", "BROKER:9092"),
        **login,
    }


def _next(conf: Conf, release: Release) -> str:
    return (
        "# Next\n\n"
        "Run the scripts where Kafka's tools and `client.properties` (an admin's login) are.\n\n"
        "1. `sh topics.sh` makes the topics.\n"
        "2. Make the logins, edit their names in `acls.sh`, and `sh acls.sh`.\n"
        f"3. `broker/`: start brokers with `{release.layout}`, and one shipper beside each\n"
        "   (`fluent-bit.yaml`, `rsyslog.conf`, `otel-collector-logs.yaml` or `vector.yaml`:\n"
        "   edit what is marked EDIT). Or without a shipper: `request-log.properties` and the\n"
        "   jar of the Java files (docs/connect.md, step 3).\n"
        f"4. {_next_reporter(conf, release)}\n"
        "5. `quotaflow doctor --conf conf.yaml` says what is missing.\n"
        "6. `quotaflow capture --conf conf.yaml --for 10m --yes` switches the request log\n"
        "   on for a while, if brokers do not write it all the time.\n"
        "7. `quotaflow snapshot --conf conf.yaml`, `quotaflow run --conf conf.yaml --once`, both\n"
        "   on a schedule; then `quotaflow tables --conf conf.yaml`.\n"
    )


def _next_reporter(conf: Conf, release: Release) -> str:
    match _reporter_files(conf, release):
        case ():
            why = (
                "`ingest.receiver_topic` is null"
                if release.takes_telemetry
                else f"Kafka {release} takes no telemetry, 3.7 and newer do"
            )
            return f"No receiver: {why}, and clients push nothing."
        case names if names == _GATE_FILES:
            return (
                "`broker/`: compile `TelemetryGate.java` with the brokers' own Java and load it,\n"
                "   or clients never push; its line for `server.properties` is there. A receiver\n"
                f"   needs Kafka 4.2: on {release} the request log brings the pushes."
            )
    collector = (
        f"\n   A Collector with `{_COLLECTOR_OF_PUSHES}` copies the pushes to\n"
        f"   `{conf.ingest.otlp_topic}`."
        if conf.ingest.otlp_topic
        else ""
    )
    return (
        "`broker/`: build the receiver and load it, or clients never push; its lines for\n"
        f"   `server.properties` are there.{collector}"
    )
