"""What a proposal is: an answer whose rows are configs that results propose to change or to keep.

    -- kind: proposal
    -- evidence:
    --   age_s (s): since how long snapshots show this value

The head has the signals of its evidence, each with unit and meaning, in place of columns, key, time
and clustering: these are the same for all proposals, and `desired_configs` is their union.

The text is one SELECT or several, which UNION ALL joins. Each yields the columns that it has a
value for, in any order, and its signals as columns of their names. SIGNAL_unit is a unit that
differs by row, and SIGNAL_name is shown in place of the signal. `SELECT * FROM` takes rows of
another proposal.
"""

import re
from collections.abc import Collection, Mapping

from quotaflow.schemas import derived, head
from quotaflow.schemas.head import Fields, HeadError
from quotaflow.schemas.table import Table, sql_type

KIND = "proposal"
_FIELDS = (*derived.DESCRIBED, "lookbacks", "expiry", "evidence")
_OPTIONAL = (*derived.OPTIONAL, "lookbacks", "expiry")
_SIGNAL = re.compile(r"(\w+) \(([^)]+)\): \S.*")
_WITH = re.compile(r"(.*\n\)\n\n)?(SELECT\b.*)", re.S)
_UNION = "\nUNION ALL\n"
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
  subject STRING: principal, program and address that took most ids, metric of the alert, client
    that waits most for the quota, or principal that set the rate or the entries: untrusted text
  evidence_table STRING: table or view that shows it
  evidence_key STRING: which of its rows
  since TIMESTAMP: since when the reason exists
  priority INT: lower is more urgent
  blocked_reason STRING: why a plan must not ask for it, as a reason code; null: no result
    forbids it
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
    shared = {name: [text] for name, text in _STORED.items()}
    return {**read, **shared, "columns": _COLUMNS.format("; ".join(signals)).splitlines()}


def written_out(sql: str, fields: Fields, table: Table) -> str:
    """A text with all columns of the table, and its signals as one list. Raises HeadError."""
    units = dict(map(_signal, head.entries("evidence", fields["evidence"])))
    match = _WITH.fullmatch(sql)
    if not match:
        raise HeadError("the text does not end in a SELECT at the start of a line")
    selects = (_whole(select, units, table) for select in match[2].split(_UNION))
    return (match[1] or "") + _UNION.join(selects)


def _signal(entry: str) -> tuple[str, str]:
    match = _SIGNAL.fullmatch(entry)
    if not match:
        raise HeadError(f"expected 'signal (unit): meaning', got: {entry}")
    return match[1], match[2]


def _whole(select: str, units: Mapping[str, str], table: Table) -> str:
    if select.startswith("SELECT * "):
        return head.without_star(select, table.column_names)
    yielded = head.items(select.partition("\nFROM ")[0].removeprefix("SELECT"))
    others = {f"{signal}_{what}" for signal in units for what in ("name", "unit")}
    if wrong := [name for name in yielded if name not in {*table.column_names, *units, *others}]:
        raise HeadError(f"{wrong[0]} is no column of a proposal, and no signal of its evidence")
    structs = [
        _struct(signal, unit, yielded) for signal, unit in units.items() if signal in yielded
    ]
    defaults = {"renew_only": "false"}
    if structs:
        defaults["evidence"] = f"array({', '.join(structs)})"
    columns = [
        name
        if name in yielded
        else f"{defaults.get(name, f'CAST(NULL AS {sql_type(kind)})')} AS {name}"
        for name, kind in ((column.name, column.type) for column in table.columns)
    ]
    return f"SELECT {', '.join(columns)}\nFROM (\n{select}\n) AS proposed"


def _struct(signal: str, unit: str, yielded: Collection[str]) -> str:
    name = f"{signal}_name" if f"{signal}_name" in yielded else f"'{signal}'"
    of_row = f"{signal}_unit" if f"{signal}_unit" in yielded else f"'{unit}'"
    return f"struct({name} AS signal, CAST({signal} AS DOUBLE) AS value, {of_row} AS unit)"
