"""Members of groups, what they commit, and what becomes of them, by the request log."""

import pyarrow as pa

from quotaflow.schemas.columns import (
    CLIENT,
    CLUSTER_ID,
    EVENT_DATE,
    MINUTE,
    NAMED_TOPIC,
    NAMED_TOPIC_ID,
    PARTITION,
    SOURCE,
)
from quotaflow.schemas.table import BOOLEAN, INT, LONG, STRING, TIMESTAMP, Column, Table

GROUP_ID = Column("group_id", STRING, "id of the group as its client gave it: untrusted text")
GROUP_TYPE = Column(
    "group_type",
    STRING,
    "classic, consumer (KIP-848), share (KIP-932) or streams (KIP-1071), as the requests show it; "
    "null: commits alone, which do not",
)
MEMBER_ID = Column(
    "member_id",
    STRING,
    "id of the member; null: a client without one, such as a commit by hand or of a consumer that "
    "assigns partitions itself",
)
GROUP_EPOCH = Column(
    "group_epoch",
    INT,
    "classic: generation of the group; else epoch of the member, which follows the group's; null: "
    "no answer names it",
)
COORDINATOR_ID = Column("coordinator_id", INT, "broker that answered: the group's coordinator")

ASSIGNED_PARTITION = pa.struct(
    [pa.field("topic", STRING), pa.field("topic_id", STRING), pa.field("partition", INT)]
)

_INSTANCE = Column(
    "group_instance_id", STRING, "group.instance.id of a static member; null: none was named"
)
_ASSIGNOR = Column(
    "assignor",
    STRING,
    "classic: protocol that the group chose, such as range; consumer: assignor that the member "
    "asks for; null: none was named",
)
_TOPICS = Column(
    "subscribed_topics",
    pa.list_(STRING),
    "topics of the newest request that names some, sorted; of Streams its source topics; null: "
    "none does, or its bytes cannot be read",
)

GROUP_MEMBERS = Table(
    name="group_members",
    comment=(
        "Members of groups and clients that commit for one, one row per minute, member and client, "
        "from the bodies of requests. Other columns than counts are those of the newest request "
        "that has them. Without bodies (ingest.without_body) a row has no member_id"
    ),
    columns=(
        CLUSTER_ID,
        EVENT_DATE,
        MINUTE,
        GROUP_ID,
        MEMBER_ID,
        *CLIENT[:2],
        GROUP_TYPE,
        _INSTANCE,
        CLIENT[4],
        Column(
            "rack_id",
            STRING,
            "client.rack of the member, by its heartbeat or its subscription; null: none named",
        ),
        *CLIENT[2:4],
        COORDINATOR_ID,
        Column("joins", LONG, "JOIN_GROUP requests, and heartbeats that join"),
        Column("syncs", LONG, "SYNC_GROUP requests"),
        Column("heartbeats", LONG, "heartbeats of any type, without those that join or leave"),
        Column("leaves", LONG, "LEAVE_GROUP requests, and heartbeats that leave"),
        Column("commits", LONG, "OFFSET_COMMIT and TXN_OFFSET_COMMIT requests"),
        Column(
            "errors",
            LONG,
            "requests that failed: by the error of the answer, or of any partition of a commit; "
            "without MEMBER_ID_REQUIRED, which gives a new member its id",
        ),
        Column(
            "rebalancing_answers",
            LONG,
            "of these, REBALANCE_IN_PROGRESS (27): join the group again",
        ),
        Column(
            "fenced_answers",
            LONG,
            "of these, the broker no longer takes the member for one: ILLEGAL_GENERATION (22), "
            "UNKNOWN_MEMBER_ID (25), FENCED_INSTANCE_ID (82), FENCED_MEMBER_EPOCH (110), "
            "UNRELEASED_INSTANCE_ID (111), STALE_MEMBER_EPOCH (113)",
        ),
        Column("throttle_time_ms", LONG, "sum of the throttle times in its answers"),
        GROUP_EPOCH,
        Column("session_timeout_ms", INT, "classic: session.timeout.ms; null: no join names it"),
        Column(
            "max_poll_interval_ms",
            INT,
            "rebalance timeout, which is max.poll.interval.ms in clients; null: none was named",
        ),
        Column(
            "heartbeat_interval_ms",
            INT,
            "interval that the broker asked for; null: classic, whose clients choose it",
        ),
        _ASSIGNOR,
        _TOPICS,
        Column(
            "subscribed_regex",
            STRING,
            "consumer: pattern of topics that it subscribes to; null: none was named",
        ),
        Column(
            "assigned_partitions",
            pa.list_(ASSIGNED_PARTITION),
            "partitions that the newest answer with an assignment gives it, sorted, each with the "
            "name or the id of its topic; empty: none; null: no answer names them, or its bytes "
            "cannot be read",
        ),
        Column(
            "unreadable_protocols",
            LONG,
            "subscriptions and assignments whose bytes are not Kafka's consumer protocol: of Kafka "
            "Connect, broken, or hidden by the privacy key",
        ),
        Column("process_id", STRING, "streams: id of the process; null: none was named"),
        Column(
            "active_tasks",
            pa.list_(STRING),
            "streams: active tasks that the newest answer assigns, as subtopology_partition, "
            "sorted; null: no answer names them",
        ),
        Column("standby_tasks", pa.list_(STRING), "streams: the same of standby tasks"),
        Column("warmup_tasks", pa.list_(STRING), "streams: the same of warm-up tasks"),
        Column("last_request_time", TIMESTAMP, "when the broker completed its last request"),
    ),
    key=("cluster_id", "event_time", "group_id", "member_id", "principal", "client_id"),
    time="event_time",
    partitioning=("event_date",),
    area="groups",
)

GROUP_COMMITS = Table(
    name="group_commits",
    comment=(
        "Offsets that clients committed for groups, one row per minute, group, partition and "
        "client. A row without a partition counts requests whose body was not kept. A commit of a "
        "transaction is valid once the transaction is committed"
    ),
    columns=(
        CLUSTER_ID,
        EVENT_DATE,
        MINUTE,
        GROUP_ID,
        NAMED_TOPIC_ID,
        NAMED_TOPIC,
        PARTITION,
        *CLIENT[:2],
        Column("commits", LONG, "commits that the broker took, or whose answer is lost"),
        Column("failed_commits", LONG, "commits that the broker refused"),
        Column("error_code", INT, "error code of the newest refused commit; null: none was"),
        Column("first_offset", LONG, "offset of the first commit taken; null: none was"),
        Column("last_offset", LONG, "offset of the last commit taken; null: none was"),
        Column("max_offset", LONG, "greatest offset of the commits taken; null: none was"),
        Column("last_commit_time", TIMESTAMP, "when the broker took the last one; null: none"),
        Column("member_id", STRING, "member that committed last; null: none named itself"),
        Column("is_transactional", BOOLEAN, "some are of transactions (TXN_OFFSET_COMMIT)"),
        Column("went_back", BOOLEAN, "some commit taken is below an earlier one of the minute"),
    ),
    key=(
        *("cluster_id", "event_time", "group_id", "topic_id", "topic", "partition"),
        *("principal", "client_id"),
    ),
    time="event_time",
    partitioning=("event_date",),
    area="groups",
)

GROUP_MEMBER_EVENTS = Table(
    name="group_member_events",
    comment=(
        "What became of members of groups, one row per event, from the bodies of requests. Refused "
        "requests are one row per minute, member, client, API and error"
    ),
    columns=(
        CLUSTER_ID,
        EVENT_DATE,
        Column("event_time", TIMESTAMP, "when the broker completed the request"),
        GROUP_ID,
        GROUP_TYPE,
        MEMBER_ID,
        _INSTANCE,
        *CLIENT[:2],
        CLIENT[4],
        COORDINATOR_ID,
        Column("api", STRING, "API of the request"),
        Column(
            "event",
            STRING,
            "joined (a new member: it got its id, or joined at epoch 0); rejoined (JOIN_GROUP with "
            "an id was answered with a generation; so does a new member that just got its id); "
            "generation_started (the leader's answer to that: all members are there); synced (it "
            "got its assignment of group_epoch, or reached that epoch); assignment_changed (an "
            "answer assigns partitions or tasks); subscription_changed (a heartbeat of a member "
            "names topics: they changed, or it repeats them after an error); left; "
            "left_temporarily (a static member that is to come back); fenced (refused by its "
            "generation, epoch or instance); expired_notice (UNKNOWN_MEMBER_ID: the broker removed "
            "it)",
        ),
        GROUP_EPOCH,
        Column("reason", STRING, "what the client gave as its reason (KIP-800): untrusted text"),
        Column("error_code", INT, "error code of the answer, 0 none"),
        Column(
            "received_time",
            TIMESTAMP,
            "when the broker received the request, by the time it took: a join waits for the "
            "others; null: the line has no time",
        ),
        Column("requests", LONG, "requests of the row, 1 except for refused ones"),
        _ASSIGNOR,
        Column(
            "members",
            INT,
            "generation_started: members of the generation; null: other events",
        ),
        _TOPICS,
        Column(
            "partitions",
            INT,
            "assignment_changed: number of partitions or tasks assigned; null: other events, or "
            "bytes that cannot be read",
        ),
        Column("position", INT, "place of the event in its request"),
        *SOURCE[:3],
        Column("source_line", INT, "number of the line in its record; null: the record is one"),
    ),
    key=(
        *("cluster_id", "source_topic", "source_partition", "source_offset", "source_line"),
        "position",
    ),
    time="event_time",
    partitioning=("event_date",),
    area="groups",
)

SHARE_FETCHES = Table(
    name="share_fetches",
    comment=(
        "What members of share groups acquire and acknowledge (KIP-932), one row per minute, "
        "member, client, broker and partition. A row without a partition counts whole requests: "
        "those of other rows do not add to it. Bytes are in no row, because brokers log none of "
        "SHARE_FETCH. Without bodies (ingest.without_body) rows have requests and throttles only. "
        "Counts of records are null if what a client names is more than a number can be"
    ),
    columns=(
        CLUSTER_ID,
        EVENT_DATE,
        MINUTE,
        GROUP_ID,
        Column("member_id", STRING, "id of the member; null: the body was not kept"),
        NAMED_TOPIC_ID,
        NAMED_TOPIC,
        Column("partition", INT, "number of the partition; null: the row counts whole requests"),
        Column("broker_id", INT, "broker that answered: the leader of the partition"),
        *CLIENT[:2],
        Column("fetches", LONG, "whole requests: SHARE_FETCH. 0 in rows of a partition"),
        Column("acknowledges", LONG, "whole requests: SHARE_ACKNOWLEDGE"),
        Column("throttled_requests", LONG, "of these, those that were throttled"),
        Column("throttle_time_ms", LONG, "sum of their throttle times"),
        Column("max_throttle_time_ms", LONG, "longest of them; null: the row is of a partition"),
        Column("acquired_records", LONG, "records that answers gave to the member"),
        Column("acquired_ranges", LONG, "ranges of offsets in which they came"),
        Column(
            "redelivered_records", LONG, "those of them that had been delivered before (count > 1)"
        ),
        Column(
            "max_delivery_count", INT, "greatest delivery count of acquired records; null: none was"
        ),
        Column("accepted_records", LONG, "records acknowledged as processed"),
        Column("released_records", LONG, "records released, to be delivered again"),
        Column("rejected_records", LONG, "records refused, not to be delivered again"),
        Column("renewed_records", LONG, "records whose lock the member prolonged (KIP-1222)"),
        Column("gap_records", LONG, "offsets acknowledged as having no record"),
        Column(
            "lock_timeouts",
            LONG,
            "records that the member had acquired, did not release, and that were delivered again "
            "after its lock had run out, in the minute of that delivery. At least: a record that "
            "nobody got again is not seen",
        ),
        Column(
            "throttled_redeliveries",
            LONG,
            "inferred: those of redelivered_records whose delivery before was for a throttled "
            "answer of the group. Brokers acquire records for it, leave them out and keep them "
            "locked, so no client has seen that delivery, and it counts",
        ),
        Column(
            "unexplained_redeliveries",
            LONG,
            "those of redelivered_records of which no line shows why: their delivery before is "
            "more than ten minutes back or in no line, or they came again before the lock had run "
            "out",
        ),
        Column("errors", LONG, "requests, or partitions of answers, that failed"),
        Column(
            "acknowledge_errors",
            LONG,
            "acknowledgements of the partition that the broker refused, such as "
            "INVALID_RECORD_STATE (121) once the lock has run out",
        ),
        Column("error_code", INT, "error code of the newest failure of either; null: none failed"),
        Column(
            "max_bytes", LONG, "greatest limit requested for an answer; null: a row of a partition"
        ),
        Column(
            "quota_bytes",
            LONG,
            "the most that consumer_byte_rate lets an answer have, if that is less: quota x the "
            "broker's windows but one; null: no quota is known, or a row of a partition",
        ),
        Column(
            "lock_timeout_ms",
            INT,
            "how long acquired records are locked (group.share.record.lock.duration.ms); null: no "
            "answer names it, or a row of a partition",
        ),
    ),
    key=(
        *("cluster_id", "event_time", "group_id", "member_id", "topic_id", "topic", "partition"),
        *("broker_id", "principal", "client_id"),
    ),
    time="event_time",
    partitioning=("event_date",),
    empty="while no share group works",
    area="groups",
)
