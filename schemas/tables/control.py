"""Tables of the pipeline's own working: what it could not read, and what it did."""

from quotaflow.schemas.columns import CLUSTER_ID, SOURCE, SOURCE_LINE
from quotaflow.schemas.levels import ADMIN_API
from quotaflow.schemas.table import BINARY, DOUBLE, INT, LONG, STRING, TIMESTAMP, Column, Table

QUARANTINE = Table(
    name="quarantine",
    question="Unreadable records. What could quotaflow not read, and why?",
    comment="One row per record or payload that could not be read, with the reason",
    columns=(
        CLUSTER_ID,
        Column("event_time", TIMESTAMP, "time of the Kafka record"),
        Column("target", STRING, "table the row was meant for"),
        Column("reason", STRING, "why it could not be read: a code"),
        Column("detail", STRING, "the part that could not be read, bounded"),
        Column("size_bytes", LONG, "size of the record's value"),
        Column("head", BINARY, "the first 4 KiB of the value; null where it may hold credentials"),
        *SOURCE,
        SOURCE_LINE,
    ),
    key=(
        "cluster_id",
        "target",
        "source_topic",
        "source_partition",
        "source_offset",
        "source_line",
    ),
    time="event_time",
    clustering=("event_time", "reason"),
    area="pipeline",
    level=ADMIN_API,
)

PIPELINE_PROGRESS = Table(
    name="pipeline_progress",
    comment="Rows in, out and left out, by query and micro-batch: nothing is dropped silently",
    columns=(
        CLUSTER_ID,
        Column("event_time", TIMESTAMP, "greatest record or event time in it, at most now"),
        Column("job", STRING, "job that ran the batch"),
        Column("query_id", STRING, "id of the streaming query, from its checkpoint"),
        Column("batch_id", LONG, "number of the micro-batch; without one, a time in ms"),
        Column("target", STRING, "table the rows went to; null for rows left out"),
        Column(
            "outcome",
            STRING,
            "in, out, left_out, quarantined, doubtful, late, failed, lost or removed",
        ),
        Column("reason", STRING, "why rows were left out, quarantined, late, lost or not computed"),
        Column("row_count", LONG, "rows"),
    ),
    key=("query_id", "batch_id", "target", "outcome", "reason"),
    time="event_time",
    clustering=("event_time", "job"),
    area="pipeline",
    level=ADMIN_API,
)

_PHASES = (
    ("latest_offset_ms", "finding out what is new"),
    ("get_batch_ms", "taking it from the source"),
    ("query_planning_ms", "planning"),
    ("wal_commit_ms", "noting down in the checkpoint what is to be read"),
    ("add_batch_ms", "the batch itself: reading, computing, writing"),
    ("commit_offsets_ms", "noting down in the checkpoint that it is done"),
)

QUERY_PROGRESS = Table(
    name="query_progress",
    comment=(
        "One row per micro-batch of each query, as Spark reports it, and one where a trigger "
        "found nothing new; written once a minute and at the end of a run"
    ),
    columns=(
        CLUSTER_ID,
        Column(
            "event_time", TIMESTAMP, "start of the batch, or of the trigger that found nothing new"
        ),
        Column("job", STRING, "job whose query it is"),
        Column("query_id", STRING, "id of the streaming query, from its checkpoint"),
        Column("run_id", STRING, "id of this start of the query"),
        Column("batch_id", LONG, "number of the micro-batch; null: nothing new was there"),
        Column("input_rows", LONG, "rows that came in"),
        Column("input_rows_per_s", DOUBLE, "rows that came in, by the time since the last batch"),
        Column("processed_rows_per_s", DOUBLE, "rows that came in, by the time the batch took"),
        Column("duration_ms", LONG, "time the whole batch took"),
        *(Column(name, LONG, f"of that, {what}") for name, what in _PHASES),
        Column("behind_offsets", LONG, "Kafka: records not read yet at the start of the batch"),
        Column("behind_files", LONG, "Delta: files not read yet; null: its source reports none"),
        Column("behind_bytes", LONG, "Delta: bytes not read yet; null: its source reports none"),
        Column("state_rows", LONG, "rows in the state of the query; null: it has no state"),
        Column("state_bytes", LONG, "memory its state takes"),
        Column("late_rows", LONG, "rows its state was given too late"),
    ),
    key=("query_id", "batch_id"),
    time="event_time",
    clustering=("event_time", "job"),
    area="pipeline",
    level=ADMIN_API,
)

_ENTITY = (
    CLUSTER_ID,
    Column(
        "entity_type", STRING, "user, client-id, broker, topic, client-metrics or broker-logger"
    ),
    Column("entity_name", STRING, "its name; null: the default of all of its type"),
    Column("entity_client_id", STRING, "of a user: only its clients of this id; null: all of them"),
    Column("config_key", STRING, "dynamic config or client quota"),
)
_OPERATION = (
    Column(
        "operation",
        STRING,
        "SET, DELETE, APPEND or SUBTRACT; RENEW writes nothing: the lease begins again",
    ),
    Column("operand", STRING, "what is set, appended or subtracted; null for DELETE and RENEW"),
    Column("prior_value", STRING, "the whole config before; null: it was not set"),
    Column("config_value", STRING, "the whole config after; null: it is not set"),
)
_WHY = (
    Column("reason", STRING, "why, in words"),
    Column("evidence_table", STRING, "table or view that shows it"),
    Column("evidence_key", STRING, "which of its rows"),
    Column("observed", DOUBLE, "what was measured, such as how much it offends; null: nothing"),
    Column(
        "direction",
        STRING,
        "tighten (a limit is set or lowered), revert (towards the value before ours), or raise "
        "(of a client quota); null: a first quota, or another config",
    ),
)
_CHANGE_ID = Column("change_id", STRING, "hash of what the change does, and to what")

PLANS = Table(
    name="plans",
    question="Saved plans. Which changes wait for approval?",
    comment=(
        "One row per change of a plan that was frozen, to be read and approved: what "
        "`quotaflow apply PLAN_ID --yes` would write, and nothing else"
    ),
    columns=(
        Column(
            "event_time",
            TIMESTAMP,
            "when it was frozen; it is frozen again once used up or too old",
        ),
        Column("plan_id", STRING, "hash of its changes, reasons, risks and commands"),
        Column("number", INT, "place of the change in its plan, from 0"),
        _CHANGE_ID,
        *_ENTITY,
        *_OPERATION,
        Column(
            "desired_value", STRING, "desired value; config_value may be a step on the way to it"
        ),
        Column("lease_s", LONG, "length of the lease, in s; null: it has no end"),
        *_WHY,
        Column("since", TIMESTAMP, "since when the reason exists"),
        Column("priority", INT, "lower is more urgent"),
        Column("risk", STRING, "side effects that it may have"),
        Column("note", STRING, "what may refuse it, or what follows"),
        Column("command", STRING, "kafka-configs command line that does the same"),
        Column("purpose", STRING, "apply; restore: a halt restores"),
        Column("planned_by", STRING, "user and host of the command that froze it"),
    ),
    key=("plan_id", "number", "event_time"),
    time="event_time",
    clustering=("event_time",),
    area="pipeline",
    level=ADMIN_API,
)

CONFIG_CHANGES = Table(
    name="config_changes",
    question="Changes by quotaflow. What did quotaflow change, and what came of it?",
    comment=(
        "One row per step of each config change this pipeline made: one before it was written, one "
        "after. The next run resolves a change without an end"
    ),
    columns=(
        Column("event_time", TIMESTAMP, "when the step was taken"),
        Column("run_id", STRING, "the command that took it"),
        Column(
            "number", INT, "number of the step in that command; -1: a later run recorded the end"
        ),
        Column("plan_id", STRING, "plan the change is of"),
        _CHANGE_ID,
        Column(
            "purpose",
            STRING,
            "apply; restore: to restore what was written; release: a person allows plans to "
            "change what another login set; halt: plans only restore",
        ),
        Column(
            "step",
            STRING,
            "begun, and then one end: done (read back); undone (never written); refused (by the "
            "broker); moved (no longer what it was planned on); yielded (another program changed "
            "it, so it is not ours). Or released (by a person; or a "
            "halt that is over), or halted (the cluster is worse since a run)",
        ),
        *_ENTITY,
        *_OPERATION,
        Column("expires_at", TIMESTAMP, "when the lease ends; null: it has none"),
        *_WHY,
        Column("detail", STRING, "why it ended so; the broker's words where it refused"),
        Column("run_by", STRING, "user and host of the command"),
        Column(
            "sequence",
            LONG,
            "place of the record among all of its deployment",
        ),
        Column("deployment", STRING, "the deployment that wrote it: conf's feedback.deployment"),
        Column("mac", STRING, "proves that a holder of the signing key wrote the row as it is"),
    ),
    key=("run_id", "change_id", "step", "number"),
    time="event_time",
    clustering=("event_time",),
    area="pipeline",
    level=ADMIN_API,
)

FEEDBACK_LOCKS = Table(
    name="feedback_locks",
    comment=(
        "One row per cluster to which a run writes configs now, where tables are in a catalog: "
        "one run at a time"
    ),
    columns=(
        CLUSTER_ID,
        Column("event_time", TIMESTAMP, "since when"),
        Column("holder", STRING, "user, host and run that hold the lock"),
        Column("until", TIMESTAMP, "when it ends at the latest"),
    ),
    key=("cluster_id",),
    time="event_time",
    clustering=("cluster_id",),
    empty="while nobody writes configs, and where tables are in a folder, which has a lock file",
    area="pipeline",
    level=ADMIN_API,
)

ANSWER_STATE = Table(
    name="answer_state",
    comment=(
        "One row per answer: what its rows were computed from, and why they are not up to date if "
        "the last try failed"
    ),
    columns=(
        Column("cluster_id", STRING, "always *: an answer is computed for all clusters at once"),
        Column("answer", STRING, "table of the answer"),
        Column("event_time", TIMESTAMP, "when it was computed, or last failed with this error"),
        Column("fingerprint", STRING, "hash of its text and of the views that it reads"),
        Column(
            "inputs",
            STRING,
            "JSON: the table's own version, and that of each table it was computed from",
        ),
        Column(
            "expires_at",
            TIMESTAMP,
            "from when on its rows differ though no input changes; null: never",
        ),
        Column(
            "error", STRING, "why it could not be computed, so that old rows stay; null: it was"
        ),
    ),
    key=("answer",),
    time="event_time",
    clustering=("event_time", "answer"),
    area="pipeline",
    level=ADMIN_API,
)
