"""`client_diagnoses`: the rule of diagnosis.py over what its text finds of each client and time."""

from datetime import datetime
from typing import Any

import pyarrow as pa

from quotaflow.pipelines.results.answers.answer import Derivation
from quotaflow.pipelines.results.answers.evidence import code_of, fields_of
from quotaflow.schemas.table import INT, LONG, STRING, TIMESTAMP
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.rules import diagnosis
from quotaflow.udfs.rules.diagnosis import ClientCause, Suffering

_TABLE = TABLES["client_diagnoses"].arrow
_OF_CLIENT = ("cluster_id", "since", "until", "known_until", "principal", "client_id", "client_ids")
_NAMES = (
    *("quota_user", "quota_client_id", "quota_set_by", "neighbour_principal", "follower_topic"),
    *("changed", "changed_by"),
)
_ERROR = [("error_code", INT), ("error_name", STRING), ("requests", LONG)]
_OTHERS = (
    *(pa.field(name, STRING) for name in _NAMES),
    *(pa.field(name, TIMESTAMP) for name in ("quota_set_at", "changed_at")),
    pa.field("follower_partition", INT),
    pa.field(
        "errors",
        pa.list_(pa.struct([("error_code", INT), ("error_name", STRING), ("requests", LONG)])),
    ),
)
_EVIDENCE = tuple(fields_of(Suffering))
SIGNALS = tuple(field.name for field in _EVIDENCE)
SCHEMA = pa.schema([*(_TABLE.field(name) for name in _OF_CLIENT), *_EVIDENCE, *_OTHERS])
"""What the text gives: one row per client, API, time and symptom."""

_THROTTLE, _FEW_REPLICAS = ".replication.throttled.", "not_enough_replicas"
"""A replica that a throttle slows does not come back in sync: no other cause has to do with it."""
_CHANGE = ("changed", "changed_by", "changed_at")
_FACTS_OF = {
    "quota": ("quota_user", "quota_client_id", "quota_set_by", "quota_set_at"),
    "noisy_neighbour": ("neighbour_principal",),
    "slow_follower": ("follower_topic", "follower_partition"),
}
FACTS = tuple(dict.fromkeys(name for names in _FACTS_OF.values() for name in names))
"""Names that belong to causes, beside their numbers."""


def derived(rows: pa.Table) -> pa.Table:
    """One row per cause of each client, API, time and symptom."""
    ranked = [
        _row(row, suffering, cause, rank)
        for row in rows.to_pylist()
        for suffering in [_suffering(row)]
        for rank, cause in enumerate(diagnosis.causes(suffering), start=1)
    ]
    return pa.Table.from_pylist(ranked, schema=_TABLE)


def _suffering(row: dict[str, Any]) -> Suffering:
    names = ("error_code", "error_name", "requests")
    errors = sorted(tuple(each[name] for name in names) for each in row["errors"] or ())
    return Suffering(**{name: row[name] for name in SIGNALS}, errors=tuple(errors))


def _row(
    row: dict[str, Any], suffering: Suffering, cause: ClientCause, rank: int
) -> dict[str, Any]:
    shown = ("api", "symptom", "requests", "waited_ms", "usual_ms", "peers_ms")
    numbers = [(name, getattr(suffering, name)) for name in cause.signals]
    is_concerned = _THROTTLE not in (row["changed"] or "") or cause.name == _FEW_REPLICAS
    facts = (*_FACTS_OF.get(cause.name, ()), *(_CHANGE if rank == 1 and is_concerned else ()))
    texts = [(name, _text(row[name])) for name in facts]
    return {name: row[name] for name in (*_OF_CLIENT, *shown)} | {
        "budget": [
            {"part": part, "ms": ms} for part, ms in diagnosis.budget(suffering) if ms is not None
        ],
        "rank": rank,
        "cause": cause.name,
        "share": cause.share,
        "confidence": cause.confidence,
        "detail": cause.detail,
        "evidence": [
            {"signal": name, "value": float(value)} for name, value in numbers if value is not None
        ],
        "facts": [{"fact": name, "text": text} for name, text in texts if text is not None],
    }


def _text(value: object) -> str | None:
    if value is None:
        return None
    return f"{value:%Y-%m-%d %H:%M:%S} UTC" if isinstance(value, datetime) else str(value)


DERIVATION = Derivation(SCHEMA, derived, code_of("diagnosis", "ramp"))
