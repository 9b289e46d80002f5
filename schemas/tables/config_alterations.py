"""`config_alterations`: who altered which dynamic config or client quota."""

from quotaflow.schemas.columns import CLIENT, CLUSTER_ID, EVENT_DATE, SOURCE
from quotaflow.schemas.table import INT, STRING, TIMESTAMP, Column, Table

CONFIG_ALTERATIONS = Table(
    name="config_alterations",
    comment=(
        "One row per dynamic config or client quota that a request was to alter, taken or refused; "
        "requests that only validate are left out. A DELETE without a config_key is of all configs "
        "the entity has; a row without an entity_type is a request too large to be kept"
    ),
    columns=(
        CLUSTER_ID,
        EVENT_DATE,
        Column("event_time", TIMESTAMP, "when the broker completed the request"),
        Column("broker_id", INT, "broker that took the request"),
        Column(
            "api",
            STRING,
            "INCREMENTAL_ALTER_CONFIGS; ALTER_CONFIGS, which deletes what it does not name; "
            "ALTER_CLIENT_QUOTAS; CREATE_TOPICS, with the configs it gives; DELETE_TOPICS",
        ),
        *CLIENT[:3],
        CLIENT[4],
        Column(
            "entity_type",
            STRING,
            "topic, broker, broker-logger, client-metrics, group, user, client-id or ip",
        ),
        Column(
            "entity_name",
            STRING,
            "its name, a broker's node id, a user without User:; empty: the default of all that "
            "have none of their own (KIP-226, KIP-546)",
        ),
        Column(
            "entity_client_id",
            STRING,
            "of a user's quota for one client id: that; empty: for client ids without one of their "
            "own; null: the entity has no such part",
        ),
        Column("config_key", STRING, "name of the config, or of the quota"),
        Column("operation", STRING, "SET, DELETE, APPEND or SUBTRACT"),
        Column(
            "config_value",
            STRING,
            "operand of it, a quota without needless digits; null for DELETE, and for configs not "
            "known to be harmless to show",
        ),
        Column("error_code", INT, "error code of its answer, 0 done; null: the answer was lost"),
        Column(
            "error_message",
            STRING,
            "message of its answer, at most 300 characters; null where it may show a value that "
            "is not shown",
        ),
        Column("position", INT, "place in the request: the later of two for one config wins"),
        *SOURCE[:3],
    ),
    key=("cluster_id", "source_topic", "source_partition", "source_offset", "position"),
    time="event_time",
    partitioning=("event_date",),
    area="configs",
)
