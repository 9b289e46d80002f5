"""`why_groups_lag`: the rule of lag_cause.py over what its text finds of each group and topic."""

from dataclasses import fields
from typing import Any

import pyarrow as pa

from quotaflow.pipelines.results.answers.answer import Derivation
from quotaflow.pipelines.results.answers.evidence import code_of, fields_of
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.rules import lag_cause
from quotaflow.udfs.rules.lag_cause import Cause
from quotaflow.udfs.rules.lag_evidence import Evidence

_TABLE = TABLES["why_groups_lag"].arrow
_OF_GROUP = (
    *("cluster_id", "group_id", "group_type", "topic", "known_at"),
    *("lag", "lag_s", "since", "retention_left_s", "caught_up_in_s"),
)
"""What the text says of the group and topic, beside the evidence."""
_RATES = ("records_in_per_s", "records_out_per_s", "trend")
_SIGNALS = tuple(field.name for field in fields(Evidence))


SCHEMA = pa.schema(
    [
        *(_TABLE.field(name) for name in _OF_GROUP),
        *fields_of(Evidence),
    ]
)
"""What the text gives: one row per group and topic."""


def derived(rows: pa.Table) -> pa.Table:
    """One row per cause of each group and topic."""
    ranked = [
        _row(row, evidence, cause, rank)
        for row in rows.to_pylist()
        for evidence in [Evidence(**{name: row[name] for name in _SIGNALS})]
        for rank, cause in enumerate(lag_cause.causes(evidence), start=1)
    ]
    return pa.Table.from_pylist(ranked, schema=_TABLE)


def _row(row: dict[str, Any], evidence: Evidence, cause: Cause, rank: int) -> dict[str, Any]:
    signals = [{"signal": name, "value": float(getattr(evidence, name))} for name in cause.signals]
    return {name: row[name] for name in (*_OF_GROUP, *_RATES)} | {
        "rank": rank,
        "cause": cause.name,
        "confidence": cause.confidence,
        "detail": cause.detail,
        "evidence": signals,
    }


DERIVATION = Derivation(SCHEMA, derived, code_of("lag_cause", "lag_evidence", "ramp"))
