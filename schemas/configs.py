"""Dynamic configs a plan may name: whom they bind, unit and bounds, and what stock Kafka says."""

from dataclasses import dataclass

from quotaflow.schemas.config_values import EnumValue, ListValue, NumberValue


@dataclass(frozen=True, slots=True)
class Config:
    """One dynamic config. `refusal` is what stock Kafka answers, None where it takes the config.

    `of_client_ids`: a client quota, which client ids may have as users may (KIP-55).
    """

    key: str
    entity_type: str
    comment: str
    values: NumberValue | ListValue | EnumValue
    refusal: str | None = None
    of_client_ids: bool = False

    def canonical(self, value: str) -> str:
        """The value as it is written, the same text for the same value.

        Raises ValueError naming the bound it breaks.
        """
        return self.values.canonical(self.key, value)

    def plain(self, value: str) -> str:
        """A value that another login set, as it would be written, without bounds."""
        return self.values.plain(value)

    def binds(self, entity_type: str) -> bool:
        """Whether entities of this type may have it."""
        return entity_type == self.entity_type or (self.of_client_ids and entity_type == CLIENT_ID)

    @property
    def is_list(self) -> bool:
        """Kafka splits its value at commas."""
        return isinstance(self.values, ListValue)


USER, CLIENT_ID, IP = "user", "client-id", "ip"
CLIENT_METRICS, BROKER, TOPIC = "client-metrics", "broker", "topic"
BROKER_LOGGER = "broker-logger"
ENTITY_TYPES = {
    USER: "users",
    CLIENT_ID: "clients",
    IP: "ips",
    CLIENT_METRICS: "client-metrics",
    BROKER: "brokers",
    TOPIC: "topics",
    BROKER_LOGGER: "broker-loggers",
}
"""Types of entities, and what kafka-configs.sh calls them."""
QUOTA_ENTITIES = (USER, CLIENT_ID, IP)
"""Types of entities whose configs are client quotas (KIP-546)."""

PROBE, REFUSED = "probe.", "refused: "
"""Of settings: what a cluster answered when it was asked whether it takes a config."""

PRODUCER_IDS_RATE = Config(
    key="producer_ids_rate",
    entity_type=USER,
    comment="new producer ids a user may bring to one broker (KIP-936)",
    values=NumberValue("producer ids per second and broker", 0, 1_000_000),
    refusal="42 Invalid configuration key producer_ids_rate",
)
# Kafka's QuotaConfigs: byte rates are LONG there, percentages DOUBLE.
PRODUCER_BYTE_RATE = Config(
    key="producer_byte_rate",
    entity_type=USER,
    comment="bytes a user may produce to one broker (KIP-13)",
    values=NumberValue("bytes per second and broker", 0, 2**53, whole=True, floor=65_536),
    of_client_ids=True,
)
CONSUMER_BYTE_RATE = Config(
    key="consumer_byte_rate",
    entity_type=USER,
    comment="bytes a user may fetch from one broker (KIP-13)",
    values=NumberValue("bytes per second and broker", 0, 2**53, whole=True, floor=65_536),
    of_client_ids=True,
)
REQUEST_PERCENTAGE = Config(
    key="request_percentage",
    entity_type=USER,
    comment="time of one broker's threads a user may take (KIP-124)",
    values=NumberValue("per cent of one thread", 0, 1_000_000, floor=1),
    of_client_ids=True,
)
# Kafka's QuotaConfig: an INT, at least 1 because 0 would refuse every connection.
CONNECTION_CREATION_RATE = Config(
    key="connection_creation_rate",
    entity_type=IP,
    comment="new connections that one broker takes from an address (KIP-612)",
    values=NumberValue("connections per second and broker", 0, 2**31 - 1, whole=True),
)
# Kafka's TransactionLogConfig: an INT of milliseconds. Under six hours a pause of a night shift
# or of a failed deploy would cost producers their ids, so no plan goes below it.
PRODUCER_ID_EXPIRATION_MS = Config(
    key="producer.id.expiration.ms",
    entity_type=BROKER,
    comment="how long a broker remembers a producer id that does not write (KIP-854)",
    values=NumberValue("ms", 21_600_000 - 1, 2**31 - 1, whole=True),
)
# Kafka's ClientMetricsConfigs: the interval's bounds, and patterns of which only these are written.
METRICS = Config(
    key="metrics",
    entity_type=CLIENT_METRICS,
    comment="prefixes of the metrics that are asked for (KIP-714)",
    values=ListValue(r"\*|[\w.-]+", "a prefix of metric names"),
)
INTERVAL_MS = Config(
    key="interval.ms",
    entity_type=CLIENT_METRICS,
    comment="how often they are to be pushed (KIP-714)",
    values=NumberValue("ms", 99, 3_600_000, whole=True),
)
MATCH = Config(
    key="match",
    entity_type=CLIENT_METRICS,
    comment="which client instances are asked (KIP-714)",
    values=ListValue(
        r"client_instance_id=[\w-]{22}(\|[\w-]{22})*", "client_instance_id= and ids with | between"
    ),
)
# Kafka's QuotaConfig: under 1 MB/s rates are not measured well.
LEADER_RATE, FOLLOWER_RATE = (
    Config(
        key=f"{side}.replication.throttled.rate",
        entity_type=BROKER,
        comment=f"bytes that may be {done} of replicas that a list names (KIP-73)",
        values=NumberValue("bytes per second", 999_999, 2**53, whole=True),
    )
    for side, done in (("leader", "sent"), ("follower", "taken"))
)
LEADER_REPLICAS, FOLLOWER_REPLICAS = (
    Config(
        key=f"{side}.replication.throttled.replicas",
        entity_type=TOPIC,
        comment=f"replicas that are throttled as {side}s (KIP-73)",
        values=ListValue(r"[0-9]+:[0-9]+", "partition:broker"),
    )
    for side in ("leader", "follower")
)
# Kafka's LogLevelConfig. A broker writes a line per request from DEBUG on.
REQUEST_LOGGER = Config(
    key="kafka.request.logger",
    entity_type=BROKER_LOGGER,
    comment="level of a broker's request log (KIP-412)",
    values=EnumValue(("FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE")),
)
LOGGING_LEVELS = ("DEBUG", "TRACE", "ALL")
"""Levels at which a broker writes its request log; ALL is log4j2's, and Kafka sets it not."""

CONFIGS: dict[str, Config] = {
    config.key: config
    for config in (
        PRODUCER_IDS_RATE,
        PRODUCER_BYTE_RATE,
        CONSUMER_BYTE_RATE,
        REQUEST_PERCENTAGE,
        CONNECTION_CREATION_RATE,
        PRODUCER_ID_EXPIRATION_MS,
        METRICS,
        INTERVAL_MS,
        MATCH,
        LEADER_RATE,
        FOLLOWER_RATE,
        LEADER_REPLICAS,
        FOLLOWER_REPLICAS,
        REQUEST_LOGGER,
    )
}

_OTHERS = "controller_mutation_rate"
_OF_TOPICS = """
    cleanup.policy compression.gzip.level compression.lz4.level compression.type
    compression.zstd.level delete.retention.ms file.delete.delay.ms flush.messages flush.ms
    index.interval.bytes local.retention.bytes local.retention.ms max.compaction.lag.ms
    max.message.bytes message.format.version message.timestamp.after.max.ms
    message.timestamp.before.max.ms message.timestamp.difference.max.ms message.timestamp.type
    min.cleanable.dirty.ratio min.compaction.lag.ms min.insync.replicas preallocate
    remote.log.copy.disable remote.log.delete.on.disable remote.storage.enable retention.bytes
    retention.ms segment.bytes segment.index.bytes segment.jitter.ms segment.ms
    unclean.leader.election.enable
"""
_OF_BROKERS = """
    background.threads client.quota.callback.class log.cleaner.threads log.retention.bytes
    log.retention.ms log.segment.bytes max.connection.creation.rate max.connections
    max.connections.per.ip message.max.bytes num.io.threads num.network.threads
    num.recovery.threads.per.data.dir num.replica.fetchers
    replica.alter.log.dirs.io.max.bytes.per.second
"""
_OF_GROUPS = """
    consumer.heartbeat.interval.ms consumer.session.timeout.ms share.auto.offset.reset
    share.heartbeat.interval.ms share.isolation.level share.record.lock.duration.ms
    share.session.timeout.ms streams.heartbeat.interval.ms streams.num.standby.replicas
    streams.session.timeout.ms
"""

HARMLESS = frozenset((*CONFIGS, *" ".join((_OTHERS, _OF_TOPICS, _OF_BROKERS, _OF_GROUPS)).split()))
"""Keys whose values may be shown: those of Kafka's TopicConfig and GroupConfig, quotas, and some of
brokers' dynamic configs. Under another key there may be a secret."""
