"""The rights each job needs on a Kafka cluster: the least, so that each can have its own login.

Kafka's authorizer grants an operation on a resource to a principal; Read and Write bring Describe
along, and AlterConfigs brings DescribeConfigs. `quotaflow init` prints these rights as kafka-acls
command lines; tests/live/test_least_rights.py runs each job with exactly them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

CLUSTER, TOPIC, GROUP, TRANSACTIONAL_ID = "cluster", "topic", "group", "transactional-id"
"""Types of resources, as kafka-acls calls its options."""
THE_CLUSTER, ALL = "kafka-cluster", "*"

REQUEST_LOG, RECEIVER, OTLP = "request_log_topic", "receiver_topic", "otlp_topic"
WAYS_IN = (REQUEST_LOG, RECEIVER, OTLP)
"""Keys of conf's `ingest` that stand for a topic's name below."""
LEASES = "lease_topic"
"""The key of conf's `feedback` that does."""
TOPIC_KEYS = (*WAYS_IN, LEASES)

DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS = "Describe", "DescribeConfigs", "AlterConfigs"
READ, WRITE = "Read", "Write"


@dataclass(frozen=True, slots=True)
class Acl:
    """One operation on one resource. Without an optional one the job runs, and reports that.

    `name` is the resource's, or one of TOPIC_KEYS; with `is_prefix` what names begin with.
    """

    resource_type: str
    name: str
    operation: str
    why: str
    is_prefix: bool = False
    is_optional: bool = False


_READS = tuple(Acl(TOPIC, key, READ, "what is ingested") for key in WAYS_IN)
_FOLLOWS = tuple(Acl(TOPIC, key, READ, "what comes is shown") for key in (REQUEST_LOG, RECEIVER))
_ALTERS = (Acl(CLUSTER, THE_CLUSTER, ALTER_CONFIGS, "quotas, configs of brokers, client-metrics"),)
_LEASES = (
    Acl(TOPIC, LEASES, READ, "what is to be restored"),
    Acl(TOPIC, LEASES, WRITE, "what is to be restored"),
)

ROLES: Mapping[str, tuple[Acl, ...]] = {
    "shipper": (Acl(TOPIC, REQUEST_LOG, WRITE, "the lines of the brokers' request log"),),
    "receiver": (Acl(TOPIC, RECEIVER, WRITE, "what clients push"),),
    "run": (
        *_READS,
        Acl(
            GROUP,
            "spark-kafka",
            READ,
            "only where spark.sql.streaming.kafka.useDeprecatedOffsetFetching is on",
            is_prefix=True,
            is_optional=True,
        ),
    ),
    "snapshot": (
        Acl(CLUSTER, THE_CLUSTER, DESCRIBE, "log dirs, moves, the quorum"),
        Acl(CLUSTER, THE_CLUSTER, DESCRIBE_CONFIGS, "configs of brokers, quotas, client-metrics"),
        Acl(TOPIC, ALL, DESCRIBE, "topics, partitions, replicas"),
        Acl(TOPIC, ALL, DESCRIBE_CONFIGS, "configs of topics"),
        Acl(TRANSACTIONAL_ID, ALL, DESCRIBE, "transactional ids", is_optional=True),
        Acl(GROUP, ALL, DESCRIBE, "groups, their members and offsets", is_optional=True),
        Acl(TOPIC, ALL, READ, "active producers (DescribeProducers)", is_optional=True),
        Acl(
            CLUSTER,
            THE_CLUSTER,
            ALTER_CONFIGS,
            "whether brokers take producer_ids_rate: asked, not set",
            is_optional=True,
        ),
    ),
    "apply": (
        *_ALTERS,
        Acl(TOPIC, ALL, ALTER_CONFIGS, "lists of throttled replicas"),
        *_LEASES,
    ),
    "capture": (*_ALTERS, *_FOLLOWS[:1]),
    "troubleshoot": (*_ALTERS, *_FOLLOWS),
}
"""Command or program -> what its login must be allowed. `restore` needs what `apply` needs; `plan`,
`show`, `sql`, `report` and the results read tables alone and need nothing."""


def needed(role: str, topics: Mapping[str, str | None]) -> tuple[Acl, ...]:
    """The rights of a role, topics by their names; a way in that is off needs none.

    `topics` holds the names by TOPIC_KEYS. Raises KeyError for a role that is not one of ROLES.
    """
    return tuple(
        replace(acl, name=topics.get(acl.name) or "") if acl.name in TOPIC_KEYS else acl
        for acl in ROLES[role]
        if acl.name not in TOPIC_KEYS or topics.get(acl.name)
    )
