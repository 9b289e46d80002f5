"""The journal as rows of the table config_changes, and back; and the ledger that they add up to."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC
from typing import Any, Protocol

from quotaflow.pipelines.config.base import LONGEST_LEASE_S
from quotaflow.pipelines.feedback.configs.change import RENEW
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.pipelines.feedback.ledger.ledger import Ledger, Record
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.schemas.tables.declared import CONFIG_CHANGES

_ENTITY = ("cluster_id", "entity_type", "entity_name", "entity_client_id")
_FIELDS = tuple(field.name for field in fields(Record) if field.name != "entity")
_TIMES = ("event_time", "expires_at")
# A lease may be renewed for years, so the write that began it is always read. Renewals older than
# twice the longest lease renew nothing any more.
SELECT = f"""
    SELECT {", ".join((*_ENTITY, *_FIELDS))} FROM config_changes
    WHERE operation <> '{RENEW}'
        OR event_time > now() - INTERVAL '{2 * LONGEST_LEASE_S // 86_400} days'
"""


class Journal(Protocol):
    """Stores records."""

    def add(self, records: Sequence[Record]) -> None:
        """Store all of them or none."""


def read_ledger(tables: Reader) -> Ledger:
    """What we wrote to all clusters, by the journal; empty before the first apply.

    Who may write the table can forge it: what writes to the cluster takes trust.judge instead.
    """
    return Ledger.from_records(read_records(tables))


def read_records(tables: Reader) -> list[Record]:
    """The records that a ledger needs, in any order; none before the first apply."""
    if not tables.is_made(CONFIG_CHANGES.name):
        return []
    return [to_record(row) for row in tables.rows(SELECT)]


def to_row(record: Record, run_by: str) -> dict[str, Any]:
    """A row of config_changes; `run_by` is the user who ran the command."""
    entity = record.entity
    parts = (entity.cluster_id, entity.entity_type, entity.entity_name, entity.client_id)
    columns = {name: getattr(record, name) for name in _FIELDS}
    return dict(zip(_ENTITY, parts, strict=True)) | columns | {"run_by": run_by}


def to_record(row: Mapping[str, Any]) -> Record:
    """The record of a row."""
    entity = ConfigEntity(*(row[name] for name in _ENTITY))
    columns = {name: row[name] for name in _FIELDS}
    times = {name: columns[name] and columns[name].astimezone(UTC) for name in _TIMES}
    return Record(entity=entity, **(columns | times))
