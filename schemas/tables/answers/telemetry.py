"""Answers about telemetry of clients."""

import pyarrow as pa

from quotaflow.schemas.columns import CLUSTER_ID
from quotaflow.schemas.table import DOUBLE, INT, LONG, STRING, TIMESTAMP, Column, Table

CLIENT_COVERAGE = Table(
    name="client_coverage",
    comment=(
        "One row per client instance that was there in the week before as_of. Which pushes of "
        "that week its subscription requests (KIP-714), and which came. A push is missing if the "
        "next one comes later than 1.5 intervals: counted are whole intervals without a push, "
        "each as long as the subscription named at that time, up to as_of or the end of the "
        "client. After the last contact of a silent client they count for 60 s or three intervals, "
        "whichever is longer: then a broker forgets the client. Times without metrics in the "
        "subscription do not count. Pushes that upkeep deleted do not count as missing: an "
        "instance not seen since then is left out, and an older one can be vanished but not "
        "never_pushed."
    ),
    columns=(
        CLUSTER_ID,
        Column("client_instance_id", STRING, "client instance id as Kafka prints a Uuid"),
        Column("principal", STRING, "authenticated principal at its last contact, e.g. User:alice"),
        Column("client_id", STRING, "client.id at its last contact: untrusted text"),
        Column("client_software_name", STRING, "client library (KIP-511) at its last contact"),
        Column(
            "client_software_version",
            STRING,
            "version of the client library at its last contact",
        ),
        Column("client_address", STRING, "address it connected from at its last contact"),
        Column("broker_ids", pa.list_(INT), "brokers that it pushed to or requested from, sorted"),
        Column("first_seen", TIMESTAMP, "first push or subscription request"),
        Column("last_seen", TIMESTAMP, "last push or subscription request"),
        Column(
            "state",
            STRING,
            "terminated (sent its last push), cut_off (a broker answered 35 UNSUPPORTED_VERSION, "
            "42 INVALID_REQUEST or 87 INVALID_RECORD, after which clients stop), vanished (silent "
            "for more than 1.5 intervals), never_pushed (requested its subscription, then silent "
            "for as long), or active",
        ),
        Column("subscription_requests", LONG, "subscription requests (GetTelemetrySubscriptions)"),
        Column("push_interval_ms", INT, "push interval of its last subscription, in ms"),
        Column("accepted_pushes", LONG, "pushes that a broker accepted"),
        Column("rejected_pushes", LONG, "pushes that a broker rejected"),
        Column("expected_pushes", LONG, "accepted_pushes + missing_pushes"),
        Column("missing_pushes", LONG, "pushes that were due and did not come"),
        Column(
            "missing_share",
            DOUBLE,
            "missing_pushes / expected_pushes, 0 to 1; null: none was expected",
        ),
        Column("first_push", TIMESTAMP, "first accepted push"),
        Column("last_push", TIMESTAMP, "last accepted push"),
        Column("as_of", TIMESTAMP, "newest push or subscription request of the cluster"),
    ),
    key=("cluster_id", "client_instance_id"),
    time="last_seen",
    clustering=(
        "last_seen",
        "client_instance_id",
    ),
)


SUBSCRIPTION_PROPOSALS = Table(
    name="subscription_proposals",
    comment=(
        "One row per rule of conf with open alerts whose clients are still active. The client- "
        "metrics resource that requests more metrics from exactly these clients while their "
        "alerts are open (KIP-714). If there are more clients than the value of one config can "
        "name, the clients with the newest alerts are left out."
    ),
    columns=(
        CLUSTER_ID,
        Column("rule", STRING, "name of the rule in conf"),
        Column("entity_name", STRING, "name of the client-metrics resource"),
        Column("metrics", STRING, "prefixes to request"),
        Column("interval_ms", INT, "push interval to request, in ms"),
        Column(
            "client_instance_ids",
            pa.list_(STRING),
            "client instances that match, sorted, at most 1000",
        ),
        Column("clients", LONG, "client instances with open alerts of the rule"),
        Column("omitted_clients", LONG, "those of them that the resource cannot name"),
        Column("pushes_per_s", DOUBLE, "pushes per second that the resource would cause"),
        Column(
            "wire_bytes_per_s",
            DOUBLE,
            "bytes per second on the wire that it would cause, by the size of these clients' "
            "pushes so far (fewer metrics make smaller ones); null: of one of them no push is "
            "known",
        ),
        Column("since", TIMESTAMP, "when the first of the alerts opened"),
        Column("metric", STRING, "metric of the alerts"),
        Column("bound", DOUBLE, "bound of the rule, in unit"),
        Column("unit", STRING, "unit of the metric; null: not known"),
    ),
    key=("cluster_id", "rule"),
    time="since",
    clustering=(
        "since",
        "rule",
    ),
)
