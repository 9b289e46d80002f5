"""Tables that plans, the report, `why` and dashboards read, each replaced whole.

`pipelines/results/answers/` computes them when what they are computed from changed.
"""

import pyarrow as pa

from quotaflow.schemas.columns import CLUSTER_ID
from quotaflow.schemas.table import BOOLEAN, DOUBLE, INT, LONG, STRING, TIMESTAMP, Column, Table

PRODUCER_ID_BURSTS = Table(
    name="producer_id_bursts",
    comment=(
        "One row per burst of new producer ids of a principal in the last week. Bursts of ten or "
        "more new producer ids of a principal, each at most 30 s after the one before, with their "
        "likely cause (KIP-936) and the numbers that show it. Three causes are accused: "
        "transactional_id_churn, producer_per_batch and restart_loop."
    ),
    columns=(
        CLUSTER_ID,
        Column("principal", STRING, "authenticated principal as Kafka prints it, e.g. User:alice"),
        Column("started_at", TIMESTAMP, "when the first id was given"),
        Column("ended_at", TIMESTAMP, "when the last id was given"),
        Column(
            "cause",
            STRING,
            "transactional_id_churn (new transactional.ids again and again, not used later), "
            "producer_per_batch (a new producer for every few requests), restart_loop (one client "
            "after another that ends early, or works and ends), deploy_burst (many clients start, "
            "each takes one or two ids; this is normal), or unknown (the numbers fit none of "
            "these)",
        ),
        Column("is_accused", BOOLEAN, "cause is one of the three that a quota should limit"),
        Column("ids", LONG, "new producer ids"),
        Column("clients", LONG, "clients that took them, by client id and address"),
        Column("hosts", LONG, "addresses of those clients"),
        Column("sources", LONG, "programs and hosts that took them (see source)"),
        Column(
            "source",
            STRING,
            "program and host that took most of them: client ids that differ only in numbers or "
            "random parts are one program",
        ),
        Column("source_ids", LONG, "ids that this source took"),
        Column("source_clients", LONG, "client ids of this source"),
        Column("source_duration_ms", LONG, "time between its first and its last id, in ms"),
        Column("median_gap_ms", DOUBLE, "median time between its ids, in ms; null: it took one"),
        Column("requests_per_id", DOUBLE, "its PRODUCE requests per id"),
        Column(
            "new_transactional_ids",
            LONG,
            "its ids for a transactional.id that had none before",
        ),
        Column(
            "abandoned_ids",
            LONG,
            "its ids that were not named again after its last one was given",
        ),
    ),
    key=("cluster_id", "principal", "started_at"),
    time="ended_at",
    clustering=(
        "ended_at",
        "principal",
    ),
)

RECENT_VIOLATIONS = Table(
    name="recent_violations",
    comment=(
        "One row per second in which a principal was over its producer-id quota on a broker. The "
        "seconds over the quota (KIP-936) that a plan can answer: those of the last hour (conf's "
        "plan.violation_lookback_s) of what is known of the cluster, so that a principal that "
        "stopped is not limited for ever. Seconds that only a deploy_burst explains are left out, "
        "because many clients that start at once are normal."
    ),
    columns=(
        CLUSTER_ID,
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
        Column("kind", STRING, "allocation, always"),
        Column("sightings", LONG, "producer ids used in this second, repeats included"),
        Column("new_ids", LONG, "ids the timed Bloom filter had not seen"),
        Column("new_ids_exact", LONG, "ids new by exact count, beside the filter's"),
        Column(
            "rate_per_s",
            DOUBLE,
            "new_ids over the aligned windows ending here / their span; for activations, over the "
            "time since the snapshot before, null at the first",
        ),
        Column("quota_per_s", DOUBLE, "producer_ids_rate of this principal, from conf"),
        Column(
            "throttle_time_ms",
            LONG,
            "-tokens / quota in ms, 0 while tokens are left; null for activations",
        ),
        Column(
            "cause",
            STRING,
            "cause of the burst that explains the second, the largest that is no deploy_burst; "
            "null: no burst does",
        ),
        Column(
            "source",
            STRING,
            "program and host that took most ids of that burst; null: no burst",
        ),
    ),
    key=("cluster_id", "principal", "broker_id", "event_time"),
    time="event_time",
    clustering=(
        "event_time",
        "principal",
    ),
)

QUOTA_ADVICE = Table(
    name="quota_advice",
    comment=(
        "One row per user and kind of client quota. The quota that the use of the last days "
        "suggests for each user: conf's quotas.percentile of its windows at the broker where it "
        "used most, plus quotas.headroom. Client ids with a quota of their own for this user "
        "(levels 1 and 2) are left out, because no quota of the user limits them. A user that its "
        "quota throttled in more than one of ten windows would use more than it shows, so its "
        "quota is raised, to twice the quota at most and once a day at most. A day is measured to "
        "the newest window, not to now. Usage in windows that are rolled up is within 4.4 % of the "
        "true one. Principals that conf excludes (settings excluded.*) and those that fetch as "
        "followers, the brokers, have no row."
    ),
    columns=(
        CLUSTER_ID,
        Column("user", STRING, "name of the user, a principal without User:"),
        Column(
            "quota_type",
            STRING,
            "producer_byte_rate, consumer_byte_rate or request_percentage",
        ),
        Column(
            "advice",
            STRING,
            "set (no quota of users limits it; one of client ids alone, level 7 or 8, can), raise, "
            "wait (a raise is due 24 h after altered_at), or keep",
        ),
        Column(
            "recommended",
            DOUBLE,
            "quota to set, in bytes per second or percent of one thread; for keep the current "
            "quota",
        ),
        Column("quota", DOUBLE, "current quota of users, in the same unit; null: none"),
        Column(
            "quota_level",
            INT,
            "level of the entity that sets the quota: 1 user and client id, 2 user and default "
            "client id, 3 user, 4 default user and client id, 5 default user and default client "
            "id, 6 default user, 7 client id, 8 default client id; null: none is known",
        ),
        Column(
            "percentile_usage",
            DOUBLE,
            "conf's percentile of its usage in the windows of a broker, at the broker where that "
            "is greatest, in the same unit",
        ),
        Column(
            "peak_usage",
            DOUBLE,
            "its greatest usage in a window of a broker, in the same unit",
        ),
        Column("windows", LONG, "windows with usage, counted per broker"),
        Column("windows_in_force", LONG, "those of them in which the current quota applied"),
        Column(
            "throttled_windows",
            LONG,
            "those of windows_in_force in which this kind of quota throttled requests",
        ),
        Column("over_windows", LONG, "windows with more usage than recommended"),
        Column(
            "altered_at",
            TIMESTAMP,
            "when the quota of the user was last altered, by anybody and in either direction, as "
            "records of this pipeline, the request log and snapshots show; a quota that the first "
            "snapshot finds counts as altered then; null: never seen",
        ),
        Column(
            "since",
            TIMESTAMP,
            "start of its first window, or of the minute or hour of it if that is rolled up",
        ),
        Column("until", TIMESTAMP, "start of its last window"),
    ),
    key=("cluster_id", "user", "quota_type"),
    time="until",
    clustering=(
        "until",
        "user",
    ),
)

QUOTA_PROPOSALS = Table(
    name="quota_proposals",
    comment=(
        "One row per user and kind of client quota that conf lets a plan set. The advice of "
        "quota_advice for the users in conf's quotas.advised_users (* is all), where the current "
        "quota is the user's own or there is none, because a new quota of the user would replace "
        "those of its client ids. Advice keep and wait are included so that the lease of a quota "
        "that this pipeline set goes on."
    ),
    columns=(
        CLUSTER_ID,
        Column("entity_name", STRING, "name of the user, a principal without User:"),
        Column("config_key", STRING, "name of the client quota"),
        Column(
            "recommended",
            DOUBLE,
            "quota to set, in bytes per second or percent of one thread; for keep the current "
            "quota",
        ),
        Column("quota", DOUBLE, "current quota of users, in the same unit; null: none"),
        Column(
            "advice",
            STRING,
            "set (no quota of users limits it; one of client ids alone, level 7 or 8, can), raise, "
            "wait (a raise is due 24 h after altered_at), or keep",
        ),
        Column(
            "percentile_usage",
            DOUBLE,
            "conf's percentile of its usage in the windows of a broker, at the broker where that "
            "is greatest, in the same unit",
        ),
        Column("windows_in_force", LONG, "those of them in which the current quota applied"),
        Column(
            "throttled_windows",
            LONG,
            "those of windows_in_force in which this kind of quota throttled requests",
        ),
        Column("since", TIMESTAMP, "start of its first window"),
    ),
    key=("cluster_id", "entity_name", "config_key"),
    time="since",
    clustering=(
        "since",
        "entity_name",
    ),
)

CLIENT_COVERAGE = Table(
    name="client_coverage",
    comment=(
        "One row per client instance that was there in the week before as_of. Which pushes of "
        "that week its subscription requests (KIP-714), and which came. A push is missing if the "
        "next one comes later than 1.5 intervals: counted are whole intervals without a push, "
        "each as long as the subscription named at that time, up to as_of or the end of the "
        "client. Times without metrics in the subscription do not count. Pushes that upkeep "
        "deleted do not count as missing: an instance not seen since then is left out, and an "
        "older one can be vanished but not never_pushed."
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
            "pushes so far (fewer metrics make smaller ones); null: no push is known",
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

PARTITION_WRITE_RATES = Table(
    name="partition_write_rates",
    comment=(
        "One row per partition that clients wrote to in the last ten minutes with replication. "
        "How much is written into each partition, which every replica must take to keep up."
    ),
    columns=(
        CLUSTER_ID,
        Column("topic", STRING, "name of the topic"),
        Column("partition", INT, "number of the partition"),
        Column("event_time", TIMESTAMP, "start of the newest minute with data about replication"),
        Column(
            "written_bytes_per_s",
            DOUBLE,
            "record bytes that clients produced into the partition, per second of the busiest of "
            "the last ten minutes",
        ),
    ),
    key=("cluster_id", "topic", "partition"),
    time="event_time",
    clustering=(
        "event_time",
        "topic",
    ),
)

BROKER_DEGRADATION = Table(
    name="broker_degradation",
    comment=(
        "One row per minute and broker, in the last hour with replication. Whether the clients of "
        "a broker are degraded, which means that a replication throttle is too high. A minute "
        "with 20 or more requests is slow if its p99 is above conf's limit "
        "(replication.produce_p99_ms, replication.fetch_p99_ms) and above "
        "replication.p99_rise_factor times the usual p99. The p99 of PRODUCE is the whole time "
        "from receive to sent; that of a consumer's FETCH leaves out the wait for records."
    ),
    columns=(
        CLUSTER_ID,
        Column("event_time", TIMESTAMP, "start of the minute"),
        Column(
            "broker_id",
            INT,
            "broker that answered the requests or has a replica of the partitions",
        ),
        Column(
            "produce_p99_ms",
            DOUBLE,
            "time within which 99 of 100 PRODUCE requests of the minute were answered, in ms; "
            "null: there were none",
        ),
        Column(
            "usual_produce_p99_ms",
            DOUBLE,
            "median of produce_p99_ms over the minutes of the hour, in ms",
        ),
        Column(
            "fetch_p99_ms",
            DOUBLE,
            "time within which 99 of 100 consumer FETCHes of the minute were answered, without the "
            "wait for records, in ms; null: there were none",
        ),
        Column(
            "usual_fetch_p99_ms",
            DOUBLE,
            "median of fetch_p99_ms over the minutes of the hour, in ms",
        ),
        Column(
            "shrunk_partitions",
            LONG,
            "partitions with a replica on the broker whose ISR shrank in the minute to "
            "min.insync.replicas or below",
        ),
        Column(
            "is_degraded",
            BOOLEAN,
            "a partition shrank, or this minute and the one before it are slow",
        ),
    ),
    key=("cluster_id", "event_time", "broker_id"),
    time="event_time",
    clustering=("event_time",),
)

THROTTLE_CHECKS = Table(
    name="throttle_checks",
    comment=(
        "One row per finding about the replication throttles that are set. What is wrong, or can "
        "be, with the replication throttles of a cluster (KIP-73)."
    ),
    columns=(
        CLUSTER_ID,
        Column(
            "finding",
            STRING,
            "list_without_rate, rate_without_list, static_rate_ignored (these do nothing); "
            "broker_gone, malformed_list (these name no replica); wildcard_list (covers ordinary "
            "catching up too); moved_unlisted (a replica is moved and no list covers it); "
            "rate_below_1_mb (too low for brokers to measure well); response_too_large (see "
            "throttle_sizing); stale_list, stale_rate (nothing that the list, or any list, covers "
            "was moved or behind for conf's replication.stale_throttle_s, 600 by default)",
        ),
        Column("topic", STRING, "topic of the list; null: the finding is not about one"),
        Column("side", STRING, "leader or follower"),
        Column("broker_id", INT, "broker that the finding is about; null: it is not about one"),
        Column("rate", DOUBLE, "rate that is set, in bytes per second; null: none"),
        Column(
            "set_at",
            TIMESTAMP,
            "when the list was set, or the rate where the finding is about the rate; null: before "
            "the request log started",
        ),
        Column("age_s", DOUBLE, "time since set_at, in seconds; null: set_at is not known"),
        Column("set_by", STRING, "principal that set it; null: not known"),
        Column("set_by_client_id", STRING, "its client.id: untrusted text; null: not known"),
        Column(
            "replicas",
            LONG,
            "sides of replications that the finding is about; brokers for response_too_large",
        ),
        Column(
            "malformed_entries",
            STRING,
            "entries of malformed_list that name no replica; null for other findings",
        ),
        Column(
            "response_max_bytes",
            LONG,
            "replica.fetch.response.max.bytes of the brokers, in bytes; Kafka's default if no "
            "snapshot has it",
        ),
        Column(
            "largest_response_max_bytes",
            LONG,
            "largest value of replica.fetch.response.max.bytes that fits, in bytes",
        ),
        Column("bounded_by", STRING, "what limits that value: quota or network"),
        Column("event_time", TIMESTAMP, "last minute with data about replication"),
    ),
    key=("cluster_id", "finding", "topic", "side", "broker_id"),
    time="event_time",
    clustering=(
        "event_time",
        "finding",
    ),
)

THROTTLED_REPLICA_PROPOSALS = Table(
    name="throttled_replica_proposals",
    comment=(
        "One row per list of throttled replicas that should name more replicas. Lists of topics "
        "without replicas that are being moved while a rate for them is set, so that the move is "
        "not limited (KIP-73; see throttle_checks, moved_unlisted). Entries that a list already "
        "has stay."
    ),
    columns=(
        CLUSTER_ID,
        Column("entity_type", STRING, "topic"),
        Column("entity_name", STRING, "name of the topic"),
        Column(
            "config_key",
            STRING,
            "leader.replication.throttled.replicas or follower.replication.throttled.replicas",
        ),
        Column(
            "config_value",
            STRING,
            "the whole desired list: entries partition:broker, comma-separated",
        ),
        Column("prior_value", STRING, "the list now; null: there is none"),
        Column("reason_code", STRING, "moved_unlisted"),
        Column("replicas", LONG, "replicas that are moved and that the list does not name"),
        Column(
            "rate_bytes_per_s",
            DOUBLE,
            "least rate that is set for a broker of these replicas, in bytes per second",
        ),
        Column(
            "written_bytes_per_s",
            DOUBLE,
            "what is written into all that the list would name then, in bytes per second, at the "
            "broker where that is not below the rate; null: it is below the rate everywhere",
        ),
        Column("evidence_table", STRING, "table or view that shows it"),
        Column("evidence_key", STRING, "which of its rows"),
        Column(
            "since",
            TIMESTAMP,
            "since when replicas are moved without the list, at most the last hour",
        ),
        Column("priority", INT, "lower is more urgent"),
        Column(
            "blocked_reason",
            STRING,
            "why a plan must not set it: malformed_list (the list has entries that name no "
            "replica), rate_not_above_writes (the rate is not above written_bytes_per_s, so the "
            "move would never end) or not_managed (conf's replication.manage is false); null: a "
            "plan can",
        ),
        Column("lease_s", LONG, "length of the lease, in seconds"),
        Column(
            "renew_only",
            BOOLEAN,
            "true: a plan only renews what this pipeline set for the same evidence, and changes "
            "nothing",
        ),
    ),
    key=("cluster_id", "entity_name", "config_key"),
    time="since",
    clustering=(
        "since",
        "entity_name",
    ),
)

REPLICATION_DEMAND = Table(
    name="replication_demand",
    comment=(
        "One row per broker and side with replicas that are listed or moved in the last hour with "
        "replication. The numbers that decide the rate of a replication throttle (KIP-73), for "
        "replication_rate_advice."
    ),
    columns=(
        CLUSTER_ID,
        Column("broker_id", INT, "broker that is listed, or whose rate it is"),
        Column("side", STRING, "leader: the broker is read from; follower: it reads"),
        Column(
            "since",
            TIMESTAMP,
            "first minute of the hour in which replicas were listed or moved",
        ),
        Column("event_time", TIMESTAMP, "last minute with data about replication"),
        Column("is_listed", BOOLEAN, "a list names replicas of this side now"),
        Column("is_moving", BOOLEAN, "replicas of this side are moved now"),
        Column("is_used", BOOLEAN, "such replicas are moved or behind now"),
        Column(
            "replicas_behind",
            LONG,
            "replications covered by a list that were out of sync in the last ten minutes",
        ),
        Column(
            "capacity_bytes_per_s",
            DOUBLE,
            "capacity of the broker for all its traffic on this side, in bytes per second; null: "
            "not known",
        ),
        Column(
            "capacity_source",
            STRING,
            "conf (its settings), observed (the most it carried in a minute of the last seven "
            "days) or latency (the least it carried in a minute of the hour in which its clients "
            "were degraded, if that is less); null: not known",
        ),
        Column(
            "other_bytes_per_s",
            DOUBLE,
            "traffic that no list covers, in bytes per second: the busiest of the last ten "
            "minutes, plus what replicas that are being added and leaders to be will add",
        ),
        Column(
            "floor_bytes_per_s",
            DOUBLE,
            "what is written into the listed partitions, in bytes per second, for a leader times "
            "the followers; brokers charge those in sync too",
        ),
        Column("rate", DOUBLE, "rate now, in bytes per second; null: none is set"),
        Column("rate_source", STRING, "dynamic_broker or dynamic_default; null: none is set"),
        Column("rate_set_at", TIMESTAMP, "when the rate was set; null: not known"),
        Column("rate_set_by", STRING, "principal that set it; null: not known"),
        Column("rate_set_by_client_id", STRING, "its client.id: untrusted text; null: not known"),
        Column(
            "rate_age_s",
            DOUBLE,
            "age of the rate at the end of event_time, in seconds; null: it is older than the log",
        ),
        Column(
            "are_clients_healthy",
            BOOLEAN,
            "no minute of the last three since the rate was set is degraded (broker_degradation)",
        ),
        Column(
            "produce_p99_ms",
            DOUBLE,
            "greatest p99 of PRODUCE in those minutes, in ms; null: none",
        ),
        Column("usual_produce_p99_ms", DOUBLE, "usual p99 of PRODUCE, in ms; null: none"),
        Column(
            "fetch_p99_ms",
            DOUBLE,
            "greatest p99 of consumer FETCH in those minutes, in ms; null: none",
        ),
        Column("usual_fetch_p99_ms", DOUBLE, "usual p99 of consumer FETCH, in ms; null: none"),
        Column(
            "shrunk_partitions",
            LONG,
            "most partitions in one of those minutes whose ISR shrank to min.insync.replicas or "
            "below",
        ),
        Column("share", DOUBLE, "part of the free capacity that replication can take, 0 to 1"),
        Column(
            "hysteresis",
            DOUBLE,
            "a rate changes only if the new one differs by more than this part of it, 0 to 1",
        ),
        Column("max_step_factor", DOUBLE, "a rate grows or shrinks at most by this factor at once"),
        Column("cooldown_s", DOUBLE, "a rate stays at least this long, in seconds"),
    ),
    key=("cluster_id", "broker_id", "side"),
    time="event_time",
    clustering=(
        "event_time",
        "broker_id",
    ),
)

REPLICATION_PROPOSALS = Table(
    name="replication_proposals",
    comment=(
        "One row per config of a replication throttle that should change. Which configs of "
        "replication throttles to change (KIP-73): rates, by replication_rate_advice, while "
        "replicas are moved or behind; stale rates and lists, by throttle_checks; and lists "
        "without moved replicas, by throttled_replica_proposals. A plan can set rates only if "
        "conf's replication.manage allows it. Of stale ones it can remove only what this "
        "pipeline's own login or one of replication.cleanup_principals set, entry by entry where "
        "a list also has entries of others. docs/reasons.md words reason_code and blocked_reason."
    ),
    columns=(
        CLUSTER_ID,
        Column("entity_type", STRING, "broker or topic"),
        Column("entity_name", STRING, "node id of the broker, or name of the topic"),
        Column("config_key", STRING, "config of a rate or of a list of throttled replicas"),
        Column(
            "config_value",
            STRING,
            "desired value, a rate in bytes per second or a list; null: the config is to be "
            "removed, or, if blocked_reason is set, no value is right",
        ),
        Column("prior_value", STRING, "value now; null: not set on the entity itself"),
        Column(
            "reason_code",
            STRING,
            "a reason of replication_rate_advice, stale_rate, stale_list or moved_unlisted",
        ),
        Column(
            "other_bytes_per_s",
            DOUBLE,
            "traffic of the broker beside what the throttle limits, in bytes per second; null: the "
            "reason is none of replication_rate_advice",
        ),
        Column(
            "capacity_bytes_per_s",
            DOUBLE,
            "what the broker can carry, in bytes per second; null: not known, or as above",
        ),
        Column(
            "capacity_source",
            STRING,
            "conf, observed or latency (see replication_demand); null: as capacity_bytes_per_s",
        ),
        Column(
            "written_bytes_per_s",
            DOUBLE,
            "what is written into the throttled replicas, in bytes per second; null: not part of "
            "the reason",
        ),
        Column(
            "rate_bytes_per_s",
            DOUBLE,
            "rate that is set now, in bytes per second; null: none, or not part of the reason",
        ),
        Column(
            "set_by",
            STRING,
            "principal that set the rate or named entries of the list; null: not known",
        ),
        Column(
            "matching",
            LONG,
            "replicas that the list does not name, for moved_unlisted; entries that this pipeline "
            "may remove, for stale_list; null for other reasons",
        ),
        Column("total", LONG, "entries of the list, for stale_list; null for other reasons"),
        Column(
            "produce_p99_ms",
            DOUBLE,
            "greatest p99 of PRODUCE in those minutes, in ms; null: none",
        ),
        Column("usual_produce_p99_ms", DOUBLE, "usual p99 of PRODUCE, in ms; null: none"),
        Column(
            "fetch_p99_ms",
            DOUBLE,
            "greatest p99 of consumer FETCH in those minutes, in ms; null: none",
        ),
        Column("usual_fetch_p99_ms", DOUBLE, "usual p99 of consumer FETCH, in ms; null: none"),
        Column(
            "shrunk_partitions",
            LONG,
            "partitions of the broker that came down to their min.insync.replicas of late; null: "
            "clients of the broker are well, or the reason is none of replication_rate_advice",
        ),
        Column("evidence_table", STRING, "table or view that shows it"),
        Column("evidence_key", STRING, "which of its rows"),
        Column("since", TIMESTAMP, "since when the reason exists"),
        Column("priority", INT, "lower is more urgent"),
        Column(
            "blocked_reason",
            STRING,
            "why a plan must not set it, as a code; null: a plan can. For rates: capacity_unknown, "
            "floor_exceeds_capacity, rate_without_list, changed_recently, not_managed. For stale "
            "ones: set_by_other, default_of_all_brokers. For lists without moved replicas: as in "
            "throttled_replica_proposals",
        ),
        Column("lease_s", LONG, "length of the lease, in seconds; null: it has no end"),
        Column(
            "renew_only",
            BOOLEAN,
            "true: a plan only renews what this pipeline set while the replicas are still moved, "
            "and changes nothing; false where a person must decide (replication.manage, a "
            "malformed list, settings of others) and for a rate that no list uses",
        ),
    ),
    key=("cluster_id", "entity_type", "entity_name", "config_key"),
    time="since",
    clustering=(
        "since",
        "entity_type",
    ),
)

REASSIGNMENTS = Table(
    name="reassignments",
    comment=(
        "One row per replica that the last reassignment of a partition requested. Who moved which "
        "replica when (kafka-reassign-partitions), and how far the move is. Rates are those of "
        "the last two minutes with fetches of the replica, in the last week. The estimate uses "
        "only what came after the throttle was changed last."
    ),
    columns=(
        CLUSTER_ID,
        Column("topic", STRING, "name of the topic; its id if no name is known"),
        Column("partition", INT, "number of the partition"),
        Column("replica_id", INT, "broker that is to have a replica, or that is in sync"),
        Column(
            "leader_id",
            INT,
            "leader that the replica fetched from last; null: it was not seen behind",
        ),
        Column(
            "state",
            STRING,
            "done (the leader requested it in the ISR), in_place (it was in sync before), "
            "cancelled, moving, never_converges (it fetches, and what is left does not shrink "
            "because writes are faster), stuck (no fetch for 33 s or more) or waiting (requested, "
            "nothing seen yet)",
        ),
        Column("requested_time", TIMESTAMP, "when the reassignment was requested"),
        Column("requested_by", STRING, "principal that requested it"),
        Column("requested_by_client_id", STRING, "its client.id: untrusted text"),
        Column("joined_time", TIMESTAMP, "when the leader requested it in the ISR; null: not yet"),
        Column(
            "offsets_left",
            LONG,
            "offsets that it was behind the high watermark at its last fetch; null: not known",
        ),
        Column(
            "bytes_left",
            DOUBLE,
            "offsets_left times the mean size of the records that came, in bytes; null: not known",
        ),
        Column("bytes_per_s", DOUBLE, "record bytes that came, per second; null: not known"),
        Column(
            "written_bytes_per_s",
            DOUBLE,
            "record bytes written into the partition, per second: the least that a throttle must "
            "let through for each follower; null: not known",
        ),
        Column(
            "eta_s",
            DOUBLE,
            "time until it is in sync, in seconds, at the pace at which offsets_left shrinks; null "
            "unless state is moving, or not known",
        ),
        Column(
            "eta_error_s",
            DOUBLE,
            "by how much eta_s can be wrong, in seconds: twice the standard error that follows "
            "from how the steps differ; null: not known",
        ),
        Column(
            "last_fetch_time",
            TIMESTAMP,
            "time of its last fetch while behind; null: none was seen",
        ),
    ),
    key=("cluster_id", "topic", "partition", "replica_id"),
    time="requested_time",
    clustering=(
        "requested_time",
        "topic",
    ),
)

RACK_PAIRS = Table(
    name="rack_pairs",
    comment=(
        "One row per flow, rack of the client and rack of the broker, over the last day. Record "
        "bytes between racks, and what they cost at the prices of conf today (see "
        "rack_traffic_by_hour)."
    ),
    columns=(
        CLUSTER_ID,
        Column(
            "flow",
            STRING,
            "produced, consumed, or replicated (read by a follower from the leader)",
        ),
        Column(
            "client_rack",
            STRING,
            "rack of the other side: a consumer's client.rack, the broker.rack of a follower, else "
            "the rack conf's racks give the client's address; null: not known",
        ),
        Column("broker_rack", STRING, "broker.rack of it"),
        Column("requests", LONG, "requests with records"),
        Column("bytes", LONG, "record bytes, as compressed by the producer"),
        Column(
            "cross_rack_bytes",
            LONG,
            "bytes, where client_rack and broker_rack differ; null: one of them is not known",
        ),
        Column(
            "avoidable_bytes",
            LONG,
            "those of cross_rack_bytes that consumers would read in their own rack from the "
            "replica recommended to them (preferred_replicas); null for other flows, or not known",
        ),
        Column(
            "cross_rack_cost",
            DOUBLE,
            "cost of cross_rack_bytes, in currency; null: conf has no price, or bytes are not "
            "known",
        ),
        Column(
            "avoidable_cost",
            DOUBLE,
            "cost of avoidable_bytes, in currency; null: conf has no price, or bytes are not known",
        ),
        Column("currency", STRING, "currency of the prices, as conf names it"),
        Column("since", TIMESTAMP, "first hour with such bytes"),
        Column("until", TIMESTAMP, "last hour with such bytes"),
    ),
    key=("cluster_id", "flow", "client_rack", "broker_rack"),
    time="until",
    clustering=(
        "until",
        "flow",
    ),
)

READ_PROBLEMS = Table(
    name="read_problems",
    comment=(
        "One row per client and topic that could not be read as it should, over the last day. "
        "What goes wrong when consumers read (KIP-392, cases 1 to 4), how often, and what to do. "
        "See fetch_faults, offset_resets, offset_lookups and lagging_reads for the single events."
    ),
    columns=(
        CLUSTER_ID,
        Column("principal", STRING, "authenticated principal as Kafka prints it, e.g. User:alice"),
        Column("client_id", STRING, "client.id as the client gave it: untrusted text"),
        Column("topic", STRING, "name of the topic; its id if no name is known"),
        Column("client_software_name", STRING, "client library; null: no fetch fault shows it"),
        Column(
            "client_software_version",
            STRING,
            "its version, the least as text; null: no fetch fault shows it",
        ),
        Column(
            "advice",
            STRING,
            "the first that fits: align_log_starts (the leader has what a follower deleted), "
            "update_client (it requests a refused offset again and again, returns to the leader "
            "instead of going where it is sent, or is a Java client before 3.4, which stays on a "
            "lagging follower: KAFKA-14379), extend_retention (it reads too late: the leader "
            "deleted the records too), check_offsets (past the end of the leader: offsets of "
            "another topic, or lost records), check_replication (broker_id lags) or "
            "refresh_metadata (the broker it fetches from no longer leads); null: the rest heals "
            "by itself",
        ),
        Column(
            "broker_id",
            INT,
            "broker where most of what the advice is about happened; null: no advice",
        ),
        Column("first_seen", TIMESTAMP, "first minute with a problem"),
        Column("last_seen", TIMESTAMP, "last minute with a problem"),
        Column(
            "uncommitted_answers",
            LONG,
            "case 1: answers for an offset past the high watermark",
        ),
        Column(
            "unavailable_answers",
            LONG,
            "case 2: answers for an offset past the end of the follower that other replicas have",
        ),
        Column(
            "too_small_answers",
            LONG,
            "case 3: answers for an offset before the log start of the replica",
        ),
        Column(
            "answers_leader_has",
            LONG,
            "those of too_small_answers for an offset that the leader has",
        ),
        Column(
            "too_large_answers",
            LONG,
            "case 4: answers for an offset past the end of the leader",
        ),
        Column(
            "unknown_answers",
            LONG,
            "answers for an offset out of range, where the case is not known",
        ),
        Column(
            "redirect_loop_answers",
            LONG,
            "answers that sent a connection to a replica for the third time or more",
        ),
        Column(
            "failed_redirect_answers",
            LONG,
            "errors of a replica that a client was sent to in such a loop",
        ),
        Column(
            "spin_answers",
            LONG,
            "answers to a connection that requested a refused offset for the third time or more",
        ),
        Column(
            "stale_metadata_answers",
            LONG,
            "errors of a broker that does not lead the partition or not know the topic any more",
        ),
        Column("other_error_answers", LONG, "answers with another error"),
        Column(
            "resets",
            LONG,
            "lookups of the earliest or latest offset after an offset was out of range",
        ),
        Column(
            "diverged_answers",
            LONG,
            "answers to epoch checks that name another epoch: the log was truncated there "
            "(KIP-320)",
        ),
        Column(
            "lagging_minutes",
            LONG,
            "minutes on a follower that fell further and further behind",
        ),
        Column("stays_on_lagging_follower", BOOLEAN, "lagging_minutes is above 0"),
    ),
    key=("cluster_id", "principal", "client_id", "topic"),
    time="last_seen",
    clustering=(
        "last_seen",
        "principal",
    ),
)

TOP_TALKERS = Table(
    name="top_talkers",
    comment=(
        "One row per UTC day of the last week, principal and client. Who moves most bytes on a "
        "day, which part crosses racks, and what it costs at the prices of conf today."
    ),
    columns=(
        CLUSTER_ID,
        Column("day", TIMESTAMP, "start of the UTC day"),
        Column("talker_rank", LONG, "rank by bytes on that day; 1 moved most"),
        Column("principal", STRING, "principal, as Kafka prints it"),
        Column("client_id", STRING, "client.id as the client gave it: untrusted text"),
        Column("produced_bytes", LONG, "record bytes produced"),
        Column("consumed_bytes", LONG, "record bytes consumed"),
        Column("share", DOUBLE, "its part of all bytes of the cluster on that day, 0 to 1"),
        Column("cross_rack_bytes", LONG, "bytes that crossed racks"),
        Column(
            "cross_rack_share",
            DOUBLE,
            "cross_rack_bytes / bytes with known racks, 0 to 1; null: there are none",
        ),
        Column("topics", LONG, "topics with a known name"),
        Column(
            "cost",
            DOUBLE,
            "cost of the bytes and of those that crossed racks, in currency; null: conf has no "
            "prices",
        ),
        Column("currency", STRING, "currency of the prices, as conf names it"),
    ),
    key=("cluster_id", "day", "principal", "client_id"),
    time="day",
    clustering=("day",),
)
