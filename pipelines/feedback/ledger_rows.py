"""Records of the ledger as rows of the table config_changes, and back."""

from dataclasses import fields
from datetime import UTC
from typing import Any

from quotaflow.pipelines.feedback.change import RENEW
from quotaflow.pipelines.feedback.desired import Entity
from quotaflow.pipelines.feedback.ledger import Record
from quotaflow.pipelines.section import LONGEST_LEASE_S

_ENTITY = ("cluster_id", "entity_type", "entity_name", "entity_client_id")
_FIELDS = tuple(field.name for field in fields(Record) if field.name != "entity")
_TIMES = ("event_time", "expires_at")
# A lease may be renewed for years, and what it holds is told by the write that began it. Renewals
# older than twice the longest lease renew nothing any more.
SELECT = f"""
    SELECT {", ".join((*_ENTITY, *_FIELDS))} FROM config_changes
    WHERE operation <> '{RENEW}'
        OR event_time > now() - INTERVAL '{2 * LONGEST_LEASE_S // 86_400} days'
"""


def row(record: Record, run_by: str) -> dict[str, Any]:
    """A row of config_changes; `run_by` is who ran the command."""
    of = record.entity
    entity = (of.cluster_id, of.entity_type, of.entity_name, of.client_id)
    told = {name: getattr(record, name) for name in _FIELDS}
    return dict(zip(_ENTITY, entity, strict=True)) | told | {"run_by": run_by}


def record(row: dict[str, Any]) -> Record:
    """A record as it was."""
    entity = Entity(*(row[name] for name in _ENTITY))
    told = {name: row[name] for name in _FIELDS}
    times = {name: told[name] and told[name].astimezone(UTC) for name in _TIMES}
    return Record(entity=entity, **(told | times))
