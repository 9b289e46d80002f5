"""Answers about replication: moves of replicas and their throttles."""

from quotaflow.schemas.columns import CLUSTER_ID
from quotaflow.schemas.table import BOOLEAN, DOUBLE, INT, LONG, STRING, TIMESTAMP, Column, Table

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
        "One row per minute and broker, in the last hour with replication. Whether clients wait "
        "for a broker, which means that a replication throttle is too high, and how many "
        "partitions came down to min.insync.replicas, which it may be too low for. A p99 of 20 or "
        "more requests is high if it is above conf's limit (replication.produce_p99_ms, "
        "replication.fetch_p99_ms) and above replication.p99_rise_factor times the usual one. "
        "The p99 of PRODUCE is the whole time from receive to sent; that of a consumer's FETCH "
        "leaves out the wait for records."
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
            "is_slow",
            BOOLEAN,
            "clients wait: p99s of this minute and of the one before it are high; null: no client "
            "sent requests in the minute",
        ),
    ),
    key=("cluster_id", "event_time", "broker_id"),
    time="event_time",
    clustering=("event_time",),
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
            "conf has none",
        ),
        Column(
            "capacity_source",
            STRING,
            "conf (its settings) or latency (the least it carried in a minute of the hour in which "
            "its clients waited, if that is less than conf's); null: conf has none",
        ),
        Column(
            "carried_at_most_bytes_per_s",
            DOUBLE,
            "the most it carried on this side in a minute of the last seven days, in bytes per "
            "second: its capacity is no less, and may be far more; null: no minute is known",
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
            "no minute of the last three since the rate was set is slow (broker_degradation); "
            "null: none has requests of clients",
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
            "offsets that it is yet to read before it is in sync, as of its last fetch; 0 if it is "
            "done or in_place; null: cancelled, or not known",
        ),
        Column(
            "bytes_left",
            DOUBLE,
            "offsets_left times the mean size of the records that came, in bytes; null: cancelled, "
            "or not known",
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
