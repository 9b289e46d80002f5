"""`client_diagnoses`: the rule of diagnosis.py over what its text finds of each client and time."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import pyarrow as pa

from quotaflow.pipelines.results.answers.answer import Derivation
from quotaflow.pipelines.results.answers.evidence import code_of, fields_of
from quotaflow.schemas.table import BOOLEAN, INT, LONG, STRING, TIMESTAMP
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.rules import config_change, diagnosis
from quotaflow.udfs.rules.diagnosis import ClientCause, Suffering

_TABLE = TABLES["client_diagnoses"].arrow
_OF_CLIENT = ("cluster_id", "since", "until", "known_until", "principal", "client_id", "client_ids")
_NAMES = (
    *("quota_user", "quota_client_id", "quota_set_by", "neighbour_principal", "follower_topic"),
)
_ERROR = [("error_code", INT), ("error_name", STRING), ("requests", LONG)]
_PART = [("part", STRING), ("bucket", INT), ("requests", LONG)]
_CHANGE = [
    *(("is_own", BOOLEAN), ("at", TIMESTAMP)),
    *((name, STRING) for name in ("by", "what", "config_key")),
]
_OTHERS = (
    *(pa.field(name, STRING) for name in _NAMES),
    pa.field("quota_set_at", TIMESTAMP),
    pa.field("follower_partition", INT),
    pa.field("changes", pa.list_(pa.struct(_CHANGE))),
    pa.field("errors", pa.list_(pa.struct(_ERROR))),
    pa.field("long_parts", pa.list_(pa.struct(_PART))),
)
_EVIDENCE = tuple(fields_of(Suffering))
SIGNALS = tuple(field.name for field in _EVIDENCE)
SCHEMA = pa.schema([*(_TABLE.field(name) for name in _OF_CLIENT), *_EVIDENCE, *_OTHERS])
"""What the text gives: one row per client, API, time and symptom."""

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
    errors = _tuples(row["errors"] or (), _ERROR)
    parts = None if row["long_parts"] is None else _tuples(row["long_parts"], _PART)
    return Suffering(**{name: row[name] for name in SIGNALS}, errors=errors, long_parts=parts)


def _tuples(
    rows: Iterable[dict[str, Any]], fields: Iterable[tuple[str, pa.DataType]]
) -> tuple[Any, ...]:
    """Structs as sorted tuples of their fields."""
    return tuple(sorted(tuple(row[name] for name, _ in fields) for row in rows))


def _row(
    row: dict[str, Any], suffering: Suffering, cause: ClientCause, rank: int
) -> dict[str, Any]:
    shown = ("api", "symptom", "requests", "waited_ms", "usual_ms", "peers_ms")
    numbers = [(name, getattr(suffering, name)) for name in cause.signals]
    texts = [(name, _text(row[name])) for name in _FACTS_OF.get(cause.name, ())]
    texts += [(name, _text(value)) for name, value in _change(row, cause) if rank == 1]
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


def _change(row: dict[str, Any], cause: ClientCause) -> Iterator[tuple[str, object]]:
    """The last change that can be why, one of the client's own topics and quotas before others."""
    changes = [
        (each["is_own"], each["at"], each["what"], each["by"] or "")
        for each in row["changes"] or ()
        if config_change.can_cause(each["config_key"], cause.name, row["api"])
    ]
    if changes:
        _, time, what, principal = max(changes)
        yield from (("changed", what), ("changed_by", principal or None), ("changed_at", time))


def _text(value: object) -> str | None:
    if value is None:
        return None
    return f"{value:%Y-%m-%d %H:%M:%S} UTC" if isinstance(value, datetime) else str(value)


DERIVATION = Derivation(SCHEMA, derived, code_of("diagnosis", "config_change", "ramp"))
