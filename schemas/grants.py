"""Grants of Unity Catalog that keep the records of writes from jobs that parse hostile input.

One identity reads topics and fills tables. Another plans, applies and restores, and alone may
change the tables that say what was approved and what must be restored. MODIFY on the schema
would pass to all its tables, so it is granted table by table.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from quotaflow.schemas.tables.catalog import ANSWERS, TABLES
from quotaflow.schemas.tables.declared import (
    ANSWER_STATE,
    CONFIG_CHANGES,
    FEEDBACK_LOCKS,
    PIPELINE_PROGRESS,
    PLANS,
)

OPERATOR_TABLES = frozenset(table.name for table in (CONFIG_CHANGES, FEEDBACK_LOCKS, PLANS))
"""What only plan, apply and restore write, and the upkeep of these tables."""

SHARED_TABLES = frozenset({ANSWER_STATE.name, PIPELINE_PROGRESS.name, *ANSWERS})
"""What both write: an apply computes the answers again, so that the next plan sees its writes, and
upkeep counts the rows that it removes."""


@dataclass(frozen=True, slots=True)
class Place:
    """A schema of a catalog."""

    catalog: str
    schema: str

    def __str__(self) -> str:
        return f"{_name(self.catalog)}.{_name(self.schema)}"


def statements(place: Place, ledger: Place, jobs: str, operator: str) -> Iterator[str]:
    """GRANT statements for two principals, without a semicolon; the tables must exist.

    `ledger` has the tables of the operator.
    """
    for principal in (jobs, operator):
        for catalog in dict.fromkeys((place.catalog, ledger.catalog)):
            yield f"GRANT USE CATALOG ON CATALOG {_name(catalog)} TO {_name(principal)}"
        for each in dict.fromkeys((place, ledger)):
            yield f"GRANT USE SCHEMA, SELECT ON SCHEMA {each} TO {_name(principal)}"
    if ledger != place:
        yield f"GRANT CREATE TABLE ON SCHEMA {ledger} TO {_name(operator)}"
    checkpoints, files = (f"{place}.{_name(volume)}" for volume in ("checkpoints", "files"))
    yield f"GRANT READ VOLUME, WRITE VOLUME ON VOLUME {checkpoints} TO {_name(jobs)}"
    yield f"GRANT READ VOLUME ON VOLUME {checkpoints} TO {_name(operator)}"
    for principal in (jobs, operator):
        yield f"GRANT READ VOLUME ON VOLUME {files} TO {_name(principal)}"
    for table in sorted(TABLES):
        named = f"{ledger if table in OPERATOR_TABLES else place}.{_name(table)}"
        for principal, may_write in ((jobs, jobs_write(table)), (operator, operator_writes(table))):
            if may_write:
                yield f"GRANT MODIFY ON TABLE {named} TO {_name(principal)}"


def jobs_write(table: str) -> bool:
    """Whether the identity that reads topics writes this table."""
    return table not in OPERATOR_TABLES


def operator_writes(table: str) -> bool:
    """Whether the identity of plan, apply and restore writes this table."""
    return table in OPERATOR_TABLES | SHARED_TABLES


def _name(text: str) -> str:
    escaped = text.replace("`", "``")
    return f"`{escaped}`"
