"""Tables of facts, snapshots and our own work: each is declared by the file of its name here.

    comment: One row per change of a broker, when a snapshot saw it
    area: cluster
    level: admin_api
    key: cluster_id, broker_id, event_time
    time: event_time
    clustering: event_time, broker_id
    columns:
      from requests: cluster_id
      host STRING: host of the listener that answered

The form is that of the heads of results (`schemas/derived.py`). `from` takes columns of a table
that is declared above it here. Lines that begin with # say why.

A row of a snapshot is current until the next one of its identity, which is its key without
event_time, and a row with `is_removed` ends it. `client_subscriptions` alone has no changes.
"""

from importlib.resources import files

from quotaflow.schemas import derived
from quotaflow.schemas.table import Table

TABLES: dict[str, Table] = {}
"""All tables of this module, by name, in the order that lists show."""


def _table(name: str) -> Table:
    text = files("quotaflow.schemas.tables").joinpath(f"{name}.table").read_text(encoding="utf-8")
    described = {each.name: {c.name: c for c in each.columns} for each in TABLES.values()}
    TABLES[name] = derived.declared(name, text, described)
    return TABLES[name]


REQUESTS = _table("requests")
TELEMETRY_PUSHES = _table("telemetry_pushes")
TELEMETRY_SUBSCRIPTIONS = _table("telemetry_subscriptions")
CLIENT_METRICS = _table("client_metrics")
FETCHES = _table("fetches")
FETCH_SESSIONS = _table("fetch_sessions")
FACTS = tuple(TABLES)
"""The names of facts, but for quarantine."""

BROKERS = _table("brokers")
TOPICS = _table("topics")
REPLICAS = _table("replicas")
REPLICA_SIZES = _table("replica_sizes")
MOVING_REPLICAS = _table("moving_replicas")
GROUPS = _table("groups")
GROUP_ASSIGNMENTS = _table("group_assignments")
GROUP_OFFSETS = _table("group_offsets")
PARTITION_OFFSETS = _table("partition_offsets")
CONFIGS = _table("configs")
CLIENT_QUOTAS = _table("client_quotas")
ACTIVE_PRODUCERS = _table("active_producers")
TRANSACTIONAL_IDS = _table("transactional_ids")
CLIENT_SUBSCRIPTIONS = _table("client_subscriptions")
SETTINGS = _table("settings")

QUARANTINE = _table("quarantine")
PIPELINE_PROGRESS = _table("pipeline_progress")
QUERY_PROGRESS = _table("query_progress")
PLANS = _table("plans")
CONFIG_CHANGES = _table("config_changes")
FEEDBACK_LOCKS = _table("feedback_locks")
ANSWER_STATE = _table("answer_state")
QUALITY_RESULTS = _table("quality_results")
