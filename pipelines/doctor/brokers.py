"""Checks brokers: connection, version, telemetry receiver, request logger, clock."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime

from kafka import errors as kafka_errors
from kafka.protocol import admin as requests

from quotaflow.pipelines.doctor import managed_services
from quotaflow.pipelines.doctor.cluster_probe import Probe
from quotaflow.pipelines.doctor.finding import BAD, OK, WARNING, Finding, refused
from quotaflow.pipelines.doctor.managed_services import ManagedService
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection, tool
from quotaflow.pipelines.kafka import release
from quotaflow.pipelines.kafka.cluster_state import BROKER_LOGGER, CLIENT_METRICS, UnansweredError
from quotaflow.pipelines.kafka.release import Release
from quotaflow.pipelines.terminal import texts
from quotaflow.schemas.configs import LOGGING_LEVELS, REQUEST_LOGGER
from quotaflow.udfs.counted import counted, noun

_GET_SUBSCRIPTIONS, _PUSH = 71, 72
_QUORUM_TOPIC = "__cluster_metadata"
_FEATURE = "metadata.version"
_NEEDS_DESCRIBE = "grant Describe on the cluster"
_NEEDS_DESCRIBE_CONFIGS = "grant DescribeConfigs on the cluster"


def findings(probe: Probe) -> Iterator[Finding]:
    """What every broker must do for this pipeline."""
    try:
        brokers = [b["broker_id"] for b in probe.state.brokers() if not b["is_fenced"]]
    except UnansweredError as error:
        yield refused("brokers", str(error), "is the cluster up?")
        return
    apis, releases, silent = _versions(probe, brokers)
    yield _reached(brokers, silent)
    yield _version(probe, releases)
    service = managed_services.of_servers(probe.conf.kafka.properties.get("bootstrap.servers", ""))
    yield receiver(apis, releases, service)
    yield _subscriptions(probe)
    yield _logging(probe, releases)
    yield _raft_listeners(probe, list(releases))
    yield _clock(probe)


def _versions(
    probe: Probe, brokers: list[int]
) -> tuple[dict[int, set[int]], dict[int, Release], dict[int, str]]:
    """APIs and release of each broker, from its own connection; errors of unreachable ones."""
    apis, releases, silent = dict[int, set[int]](), dict[int, Release](), dict[int, str]()
    for broker_id in brokers:
        try:
            apis[broker_id] = set(probe.client.get_broker_version_data(broker_id).api_versions)
            releases[broker_id] = release.of_broker(probe.client, broker_id)
        except kafka_errors.KafkaError as error:
            silent[broker_id] = str(error) or type(error).__name__
    return apis, releases, silent


def _reached(brokers: list[int], silent: dict[int, str]) -> Finding:
    if not silent:
        return Finding("brokers", OK, f"reached from here: {_listed(brokers)}")
    seen = "; ".join(f"broker {broker} does not answer: {why}" for broker, why in silent.items())
    remedy = "start it, or open the way to its advertised.listeners from this machine"
    return Finding("brokers", BAD, seen, remedy)


def _version(probe: Probe, releases: Mapping[int, Release]) -> Finding:
    try:
        features = probe.client.describe_features()
    except kafka_errors.KafkaError as error:
        return refused(
            "version", str(error) or type(error).__name__, "Kafka 2.4 or newer answers this"
        )
    level = features.get(_FEATURE, {}).get("finalized")
    used = ", ".join(sorted(name for name, feature in features.items() if feature.get("finalized")))
    seen = f"{named(releases)}; {_FEATURE} {level[1] if level else 'unknown'}"
    return Finding("version", OK, f"{seen}; features in use: {used or 'none'}")


def named(releases: Mapping[int, Release]) -> str:
    """The releases of brokers; with their brokers if there are several."""
    brokers = defaultdict[Release, list[int]](list)
    for broker_id, each in releases.items():
        brokers[each].append(broker_id)
    if len(brokers) == 1:
        return f"Kafka {next(iter(brokers))}"
    return ", ".join(f"Kafka {each} on {_listed(ids)}" for each, ids in sorted(brokers.items()))


def receiver(
    apis: Mapping[int, set[int]],
    releases: Mapping[int, Release],
    service: ManagedService | None = None,
) -> Finding:
    """A broker without a telemetry receiver does not offer the two APIs of KIP-714."""
    without = [b for b, offered in apis.items() if not {_GET_SUBSCRIPTIONS, _PUSH} <= offered]
    if not without:
        return Finding("receiver", OK, "every broker lets clients push telemetry")
    seen = f"no telemetry receiver on {_listed(without)}"
    if service:
        return Finding("receiver", WARNING, seen, f"{service.name}: {service.limits}")
    remedies = dict.fromkeys(_receiver_of(releases[broker_id]) for broker_id in without)
    remedy = f"clients never push there: {'; '.join(remedies)}; without telemetry, ignore this"
    return Finding("receiver", WARNING, seen, remedy)


def _receiver_of(of_broker: Release) -> str:
    """What lets clients push to a broker of this release."""
    if of_broker.loads_receiver:
        return (
            "load broker/TelemetryReceiver.java or any reporter that takes client telemetry "
            "(metric.reporters) and restart"
        )
    if of_broker.takes_telemetry:
        return (
            f"Kafka {of_broker} loads no TelemetryReceiver (4.2 and newer do): load "
            "broker/TelemetryGate.java or any ClientTelemetry reporter (metric.reporters) and "
            "restart, and the request log brings the pushes"
        )
    return f"Kafka {of_broker} takes no telemetry: upgrade to 3.7 or newer, best 4.2"


def _subscriptions(probe: Probe) -> Finding:
    try:
        names = probe.state.config_names(CLIENT_METRICS)
    except UnansweredError as error:
        return refused("subscriptions", str(error), _NEEDS_DESCRIBE_CONFIGS)
    if names:
        return Finding("subscriptions", OK, counted(len(names), "client-metrics resource"))
    words = tool("kafka-configs.sh", Connection.from_conf(probe.conf.kafka))
    words += ["--alter", "--entity-type", "client-metrics", "--entity-name", "all", "--add-config"]
    remedy = " ".join([*words, "'interval.ms=60000,metrics=[org.apache.kafka.]'"])
    return Finding(
        "subscriptions", WARNING, "no client-metrics resource: no client pushes metrics", remedy
    )


def _logging(probe: Probe, releases: Mapping[int, Release]) -> Finding:
    """The level of each broker's request logger, which only that broker can answer."""
    levels = Counter[str]()
    off = []
    for broker_id in releases:
        for answer in probe.state.configs(BROKER_LOGGER, [str(broker_id)], broker_id):
            if answer.reason:
                return refused("request logger", answer.reason, _NEEDS_DESCRIBE_CONFIGS)
            level = {c.name: c.value for c in answer.content}.get(REQUEST_LOGGER.key, "not set")
            levels[level] += 1
            off += [] if level in LOGGING_LEVELS else [broker_id]
    levels_text = ", ".join(
        f"{level} on {counted(n, 'broker')}" for level, n in sorted(levels.items())
    )
    if not off:
        return Finding("request logger", OK, f"{levels_text}: requests are logged")
    layouts = sorted({releases[broker_id].layout for broker_id in off})
    remedy = "`quotaflow capture` switches it on for a while; for good: "
    remedy += ", ".join(f"broker/{layout}" for layout in layouts)
    return Finding("request logger", WARNING, f"{levels_text}: off on {_listed(off)}", remedy)


def _raft_listeners(probe: Probe, brokers: list[int]) -> Finding:
    try:
        names = probe.state.raft_listeners(brokers)
    except UnansweredError as error:
        return refused("raft listeners", str(error), _NEEDS_DESCRIBE_CONFIGS)
    return raft_listeners(names, probe.conf.ingest.controller_listeners)


def raft_listeners(names: Set[str], of_conf: Sequence[str]) -> Finding:
    """Requests of raft on a listener that conf does not name would be rows of clients."""
    listed = ", ".join(sorted(names))
    if missing := sorted(names - {*of_conf}):
        seen = f"brokers' controller.listener.names: {listed}; not in conf: {', '.join(missing)}"
        remedy = f"set ingest.controller_listeners: [{listed}], else rows of requests have raft's"
        return Finding("raft listeners", BAD, seen, remedy)
    return Finding("raft listeners", OK, f"{listed or 'none'}: conf leaves out their raft requests")


def _clock(probe: Probe) -> Finding:
    """The controller's clock compared with ours: its own last-caught-up time is now."""
    topic = requests.DescribeQuorumRequest.TopicData
    partition = topic.PartitionData(partition_index=0)
    request = requests.DescribeQuorumRequest(
        topics=[topic(topic_name=_QUORUM_TOPIC, partitions=[partition])]
    )
    before = datetime.now(UTC)
    try:
        state = probe.state.ask(request).topics[0].partitions[0]
    except UnansweredError as error:
        return refused("clock", str(error), _NEEDS_DESCRIBE)
    middle = before + (datetime.now(UTC) - before) / 2
    times = {v.replica_id: v.last_caught_up_timestamp for v in state.current_voters}
    return clock(times.get(state.leader_id, -1), middle, probe.conf.ingest.max_clock_skew_s)


def clock(controller_ms: int, now: datetime, max_skew_s: int) -> Finding:
    """A controller's clock compared with ours, in ms since 1970; -1 if unknown."""
    if controller_ms < 0:
        return refused("clock", "brokers before Kafka 3.3 do not send their time", "")
    off_s = controller_ms / 1_000 - now.timestamp()
    side = "ahead of" if off_s > 0 else "behind"
    seen = f"the controller's clock is {texts.fixed(abs(off_s), 1)} s {side}"
    seen += f" ours (threshold: {max_skew_s} s, ingest.max_clock_skew_s)"
    if abs(off_s) <= max_skew_s:
        return Finding("clock", OK, seen)
    return Finding("clock", BAD, seen, "set both by NTP: times of events would be wrong")


def _listed(brokers: list[int]) -> str:
    return f"{noun(len(brokers), 'broker')} {', '.join(map(str, sorted(brokers)))}"
