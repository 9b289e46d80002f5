"""What a proposal is: an answer whose rows are configs that results propose to change or to keep.

    -- kind: proposal
    -- evidence:
    --   age_s (s): since how long snapshots show this value

The head has the signals of its evidence, each with unit and meaning, in place of columns, key, time
and clustering: these are the same for all proposals, and `desired_configs` is their union.
"""

import re

from quotaflow.schemas import derived, head
from quotaflow.schemas.head import Fields, HeadError

KIND = "proposal"
_FIELDS = (*derived.DESCRIBED, "lookbacks", "expiry", "evidence")
_OPTIONAL = (*derived.OPTIONAL, "lookbacks", "expiry")
_SIGNAL = re.compile(r"\w+ \([^)]+\): \S.*")
_STORED = {
    "key": "cluster_id, entity_type, entity_name, entity_client_id, config_key, evidence_key",
    "time": "since",
    "clustering": "since, entity_name",
}
_COLUMNS = """
  cluster_id STRING: id of the cluster
  entity_type STRING: user, ip, broker, topic or client-metrics
  entity_name STRING: name of the user, topic or client-metrics resource, the address, or node id of
    the broker; null: the default of all users
  entity_client_id STRING: client id that narrows a client quota of the user; null: none. Untrusted
    text
  config_key STRING: name of the dynamic config or client quota
  config_value STRING: desired value; null: the config is to be removed, or, if blocked_reason is
    set, no value is right
  prior_value STRING: value in the last snapshot, null: not set; if it equals config_value, nothing
    is left to do
  reason_code STRING: why, as a reason code
  evidence ARRAY<STRUCT<signal: STRING, value: DOUBLE, unit: STRING>>: the numbers that the reason
    rests on; a value is null if it is not known, and a unit if there is none. {}
  reason_detail STRING: cause of the burst, rule of the alert, or source of the capacity
  subject STRING: principal, program and address that took most ids, metric of the alert, or
    principal that set the rate or the entries: untrusted text
  evidence_table STRING: table or view that shows it
  evidence_key STRING: which of its rows
  since TIMESTAMP: since when the reason exists
  priority INT: lower is more urgent
  blocked_reason STRING: why a plan must not ask for it, as a reason code; null: a plan can
  lease_s BIGINT: length of the lease, in seconds; null: conf has it, or it has no end
  renew_only BOOLEAN: true: a plan only renews the lease of what this pipeline set for the same
    evidence, and changes nothing: the value fits, or nothing better is known (blocked_reason has
    the reason)
  usage_p99 DOUBLE: of a user, 99th percentile of its usage in the windows with usage at its busiest
    broker, in the unit of the quota; null: not known
  history_s DOUBLE: of a user, seconds from its first known window to the newest; null: not known
  quota_in_force DOUBLE: value that applied in the last window of its usage, or in the last
    snapshot, own or inherited, in the unit of the config; null: none, or not asked
  offence DOUBLE: what the value must lower. For a limit of a source: its new producer ids per
    second over plan.offence_period_s. For producer.id.expiration.ms: heap in bytes that ids will
    take. For a raise: part of the windows in which the user is throttled, per unit of its usage.
    For a lower rate of replication: how many times the usual p99 clients wait. Null: no effect is
    judged
  least_value DOUBLE: least value of a limit; null: config_value
  direction STRING: raise; null: the row is no raise
"""


def fields(lines: list[str]) -> Fields:
    """The fields of a proposal's head, and those that all proposals share. Raises HeadError."""
    read = head.fields(lines, _FIELDS, _OPTIONAL)
    signals = list(head.entries("evidence", read["evidence"]))
    for signal in signals:
        if not _SIGNAL.fullmatch(signal):
            raise HeadError(f"expected 'signal (unit): meaning', got: {signal}")
    shared = {name: [text] for name, text in _STORED.items()}
    return {**read, **shared, "columns": _COLUMNS.format("; ".join(signals)).splitlines()}
