"""Tables about producer ids (KIP-936): which client got which, and how many are new."""

from quotaflow.schemas.columns import CLIENT, CLUSTER_ID, EVENT_DATE, MINUTE, PRODUCER_ID
from quotaflow.schemas.levels import ADMIN_API
from quotaflow.schemas.table import BOOLEAN, DOUBLE, INT, LONG, STRING, TIMESTAMP, Column, Table

PRODUCER_ID_RATES = Table(
    name="producer_id_rates",
    comment=(
        "New producer ids per principal, broker and second (KIP-936). Open loop: no client was "
        "throttled. Aligned time: the broker's own figures may differ by one sample"
    ),
    columns=(
        CLUSTER_ID,
        EVENT_DATE,
        Column("event_time", TIMESTAMP, "start of the aligned second"),
        Column(
            "broker_id",
            INT,
            "broker that counted: the one that answered; for activations the partition's leader",
        ),
        Column(
            "principal",
            STRING,
            "principal, as Kafka prints it; null for activations of ids of unknown owner",
        ),
        Column(
            "kind",
            STRING,
            "allocation: ids handed out or used in transactions, by the second; activation: ids a "
            "leader had for the first time, by the snapshot. Do not add the kinds up",
        ),
        Column("sightings", LONG, "producer ids used in this second, repeats included"),
        Column(
            "new_ids",
            LONG,
            "ids the timed Bloom filter had not seen. A filter starts in each window of conf "
            "(producer.id.quota.window.size.seconds), so an id counts again after a pause of half "
            "to one and a half windows",
        ),
        Column("new_ids_exact", LONG, "ids new by exact count, beside the filter's"),
        Column(
            "rate_per_s",
            DOUBLE,
            "new_ids over the aligned windows ending here / their span; for activations, over the "
            "time since the snapshot before, null at the first",
        ),
        Column(
            "tokens",
            DOUBLE,
            "token bucket: quota x windows x size at most; may be negative; null for activations "
            "and without a quota",
        ),
        Column(
            "quota_per_s",
            DOUBLE,
            "producer_ids_rate of this principal, from conf; null: unlimited, the KIP's default",
        ),
        Column(
            "throttle_time_ms",
            LONG,
            "-tokens / quota in ms, 0 while tokens are left; null for activations and without a "
            "quota",
        ),
        Column(
            "throttle_time_avg_ms",
            DOUBLE,
            "mean of the throttle times of the windows ending here, one for each second "
            "with new ids over the quota; 0: there were none (the KIP's throttle-time); null "
            "without a quota",
        ),
        Column(
            "is_violating",
            BOOLEAN,
            "tokens below zero; for activations, rate over quota; false without a quota",
        ),
    ),
    key=("cluster_id", "event_time", "broker_id", "principal", "kind"),
    time="event_time",
    partitioning=("event_date", "kind"),
    area="producer_ids",
    level=ADMIN_API,
)

PRODUCER_ID_USES = Table(
    name="producer_id_uses",
    comment=(
        "One row per minute, broker, client and producer id: the id was given to the client or "
        "named by its transactional requests. A row without an id counts what a client that was "
        "given one in this minute produced: stock brokers log no id of a PRODUCE request"
    ),
    columns=(
        CLUSTER_ID,
        EVENT_DATE,
        MINUTE,
        Column("broker_id", INT, "broker that answered"),
        *CLIENT[:5],
        Column(
            "client_pattern",
            STRING,
            "client_id with * for numbers and random parts: what instances of one program share",
        ),
        Column("transactional_id", STRING, "transactional.id, null for idempotent producers"),
        PRODUCER_ID,
        Column("producer_epoch", INT, "its greatest epoch in this minute"),
        Column("first_seen", TIMESTAMP, "first such request"),
        Column("last_seen", TIMESTAMP, "last such request"),
        Column("requests", LONG, "such requests, PRODUCE among them"),
        Column("allocations", LONG, "answers of INIT_PRODUCER_ID among them"),
        Column("produce_requests", LONG, "PRODUCE requests among them"),
    ),
    key=(
        "cluster_id",
        "event_time",
        "broker_id",
        *(column.name for column in CLIENT[:5]),
        "transactional_id",
        "producer_id",
    ),
    time="event_time",
    partitioning=("event_date",),
    area="producer_ids",
)

ADDRESS_CLIENTS = Table(
    name="address_clients",
    comment=(
        "One row per minute, address, principal and program (client ids that differ only in "
        "numbers or random parts). Requests of all APIs count: who uses an address is "
        "known before a limit is set on it"
    ),
    columns=(
        CLUSTER_ID,
        EVENT_DATE,
        MINUTE,
        *(column for column in CLIENT if column.name == "client_address"),
        CLIENT[0],
        Column(
            "client_pattern",
            STRING,
            "client_id with * for numbers and random parts: what instances of one program share",
        ),
        Column(
            "replica_id",
            INT,
            "node id of a follower, by its fetches that moved bytes; null: of all other requests, "
            "fetches of a follower that brought nothing among them",
        ),
        Column("first_seen", TIMESTAMP, "first such request"),
        Column("last_seen", TIMESTAMP, "last such request"),
        Column("requests", LONG, "such requests"),
        Column("producer_ids", LONG, "different producer ids that INIT_PRODUCER_ID gave them"),
        Column(
            "allocating_connections",
            LONG,
            "connections on which those ids were given; fewer than ids: a connection is kept",
        ),
        Column("other_connections", LONG, "connections of such requests on which no id was given"),
        Column(
            "data_requests",
            LONG,
            "PRODUCE and FETCH requests that moved bytes, on connections with more than ten of "
            "them for each id that came on it in this minute or the one before",
        ),
        Column("data_bytes", LONG, "bytes that these moved"),
        Column(
            "max_weight",
            LONG,
            "requests that one line counts as, at most; over 1: ingest sampled an API, so that a "
            "client may have no row",
        ),
    ),
    key=(
        "cluster_id",
        "event_time",
        "client_address",
        "principal",
        "client_pattern",
        "replica_id",
    ),
    time="event_time",
    partitioning=("event_date",),
    area="producer_ids",
)
