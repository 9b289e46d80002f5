"""All answers: what their heads say, and the pure rules that make rows of those of a text."""

from quotaflow.pipelines.results.answers import client_causes, lag_causes
from quotaflow.pipelines.results.answers.answer import Answer
from quotaflow.schemas.tables import catalog

_DERIVATIONS = {
    "client_diagnoses": client_causes.DERIVATION,
    "why_groups_lag": lag_causes.DERIVATION,
}

ANSWERS = tuple(
    Answer(head.table, head.sql, head.lookbacks, head.expiry, _DERIVATIONS.get(name))
    for name, head in catalog.ANSWERS.items()
)
