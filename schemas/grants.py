"""Grants of Unity Catalog that keep the records of writes from jobs that parse hostile input.

One identity reads topics and fills tables. Another plans, applies and restores, and alone may
change the tables that say what was approved and what must be given back. MODIFY on the schema
would pass to all its tables, so it is granted table by table.
"""

from collections.abc import Iterator

from quotaflow.schemas.table import Table
from quotaflow.schemas.tables import answers
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.control import (
    ANSWER_STATE,
    CONFIG_CHANGES,
    FEEDBACK_LOCKS,
    PIPELINE_PROGRESS,
    PLANS,
)

OPERATOR_TABLES = frozenset(table.name for table in (CONFIG_CHANGES, FEEDBACK_LOCKS, PLANS))
"""What only plan, apply and restore write, and the upkeep of these tables."""

SHARED_TABLES = frozenset(
    {
        ANSWER_STATE.name,
        PIPELINE_PROGRESS.name,
        *(
            table.name
            for module in answers.MODULES
            for table in vars(module).values()
            if isinstance(table, Table)
        ),
    }
)
"""What both write: an apply computes the answers again, so that the next plan sees its writes, and
upkeep counts the rows that it removes."""


def statements(catalog: str, schema: str, jobs: str, operator: str) -> Iterator[str]:
    """GRANT statements for two principals, without a semicolon; the tables must exist."""
    place = f"{_name(catalog)}.{_name(schema)}"
    for principal in (jobs, operator):
        yield f"GRANT USE CATALOG ON CATALOG {_name(catalog)} TO {_name(principal)}"
        yield f"GRANT USE SCHEMA, SELECT ON SCHEMA {place} TO {_name(principal)}"
    checkpoints, files = (f"{place}.{_name(volume)}" for volume in ("checkpoints", "files"))
    yield f"GRANT READ VOLUME, WRITE VOLUME ON VOLUME {checkpoints} TO {_name(jobs)}"
    yield f"GRANT READ VOLUME ON VOLUME {checkpoints} TO {_name(operator)}"
    for principal in (jobs, operator):
        yield f"GRANT READ VOLUME ON VOLUME {files} TO {_name(principal)}"
    for table in sorted(TABLES):
        for principal, may_write in ((jobs, jobs_write(table)), (operator, operator_writes(table))):
            if may_write:
                yield f"GRANT MODIFY ON TABLE {place}.{_name(table)} TO {_name(principal)}"


def jobs_write(table: str) -> bool:
    """Whether the identity that reads topics writes this table."""
    return table not in OPERATOR_TABLES


def operator_writes(table: str) -> bool:
    """Whether the identity of plan, apply and restore writes this table."""
    return table in OPERATOR_TABLES | SHARED_TABLES


def _name(text: str) -> str:
    escaped = text.replace("`", "``")
    return f"`{escaped}`"
