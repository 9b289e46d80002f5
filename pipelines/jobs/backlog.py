"""Rows of tables that queries have not read yet, and that upkeep must not remove."""

from dataclasses import dataclass
from datetime import UTC, datetime

from quotaflow.pipelines.compute import result_state
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.streaming import checkpoints, identity
from quotaflow.pipelines.warehouse.warehouse import OpenSession, Warehouse


@dataclass(frozen=True, slots=True)
class Backlog:
    """A query that is behind on a table: the first `version` it has not read, and its time.

    `read` is the newest version that it has read completely; None while it reads the version it
    started with. `since` is None if the table's log no longer has that version.
    """

    job: str
    version: int
    since: datetime | None
    read: int | None


def backlogs(open_session: OpenSession, warehouse: Warehouse, table: str) -> list[Backlog]:
    """The queries that are behind on a table. A query that never started will read it as it is."""
    readers = [job.name for job in JOBS.values() if job.reads == table]
    checkpoint_of = {name: warehouse.checkpoint(name) for name in readers}
    checkpoint_of = {
        name: folder for name, folder in checkpoint_of.items() if identity.is_started(folder)
    }
    if not checkpoint_of:
        return []
    version_times = _version_times(open_session, warehouse, table)
    behind = []
    for name, folder in checkpoint_of.items():
        done = checkpoints.committed(folder)
        at = done.delta if done else None
        version = at.version if at else 0
        is_whole = at is not None and at.is_whole and version > 0
        if version <= max(version_times) or not is_whole:
            since = version_times.get(min(version, max(version_times)))
            behind.append(Backlog(name, version, since, version - 1 if is_whole else None))
    return behind


def _version_times(
    open_session: OpenSession, warehouse: Warehouse, table: str
) -> dict[int, datetime]:
    """When each version in the table's log was committed."""
    if warehouse.conf.catalog_schema:
        from pyspark.sql import functions as F  # noqa: PLC0415  tables of a folder need no Spark

        history = open_session().sql(f"DESCRIBE HISTORY {warehouse.target(table)}")
        rows = history.select("version", F.unix_millis("timestamp").alias("at_ms")).collect()
        times_ms = {row["version"]: row["at_ms"] for row in rows}
    else:
        commits = warehouse.place.open(table).history()
        times_ms = {each["version"]: each["timestamp"] for each in commits}
    return {number: datetime.fromtimestamp(ms / 1e3, UTC) for number, ms in times_ms.items()}


def not_computed(warehouse: Warehouse, table: str, before: datetime) -> list[str]:
    """Results whose rule failed, so that they still need facts of this table before a time."""
    return [
        f"{name} of {job.name} is not up to date since {state.dirty_since:%Y-%m-%d %H:%M}"
        for job in JOBS.values()
        if job.reads == table
        for name, state in result_state.load(warehouse.checkpoint(job.name)).items()
        if state.dirty_since and state.dirty_since < before
    ]
