"""The scope of a report: one cluster, and a time range."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import ConfigError, NeverMadeError, nearest
from quotaflow.pipelines.jobs.fillers import filler
from quotaflow.pipelines.report import texts
from quotaflow.pipelines.report.section import Row
from quotaflow.pipelines.warehouse.python_times import rows_of
from quotaflow.pipelines.warehouse.reader import Reader, engine_errors
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.schemas import levels
from quotaflow.schemas.levels import ADMIN_API, IN_WORDS, SAMPLED_LOG, TELEMETRY, WHOLE_LOG
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.schemas.tables.telemetry import TELEMETRY_PUSHES
from quotaflow.udfs.counted import counted

MAX_POINTS = 120
"""A line of a chart has at most this many points; a longer time gets longer steps."""

_PART = re.compile(r"\{(\w+)\}")
_STEPS_S = (1, 5, 10, 30, 60, 300, 900, 1_800, 3_600, 10_800, 21_600, 43_200, 86_400)
# A snapshot may be newer than the clients' events, which a report is about. The first release
# counted runs that only read tables for a cluster named unknown.
_CLUSTERS = """
SELECT
    cluster_id,
    coalesce(max(CASE WHEN job <> 'snapshot' THEN event_time END), max(event_time)) AS newest
FROM pipeline_progress
WHERE cluster_id IS NOT NULL AND cluster_id <> 'unknown'
GROUP BY cluster_id
ORDER BY newest DESC
"""
_WEIGHTED = """
SELECT 1 FROM requests
WHERE cluster_id = {cluster} AND event_time >= {since} AND weight > 1 LIMIT 1
"""
_EXTENT = """
SELECT min({time}) AS first, max({time}) AS last FROM {table}
WHERE cluster_id = {{cluster}} AND {time} >= {{since}}
"""


@dataclass(frozen=True, slots=True)
class Scope:
    """A cluster's tables from `since`; `until` is the time of the cluster's newest event.

    `conf` has the policy of plans.
    """

    reader: Reader
    cluster_id: str
    since: datetime
    until: datetime
    now: datetime
    conf: Conf

    def rows(self, sql: str, **parts: str) -> list[Row]:
        """The rows of a query in which {cluster} and {since} are replaced by this report's.

        `parts` replace their names in the same pass, so that no literal in them is read again. A
        time out of Python's range, which a client's clock may send, becomes None.
        """
        every = {"cluster": literal(self.cluster_id), "since": literal(self.since)} | parts
        query = _PART.sub(lambda part: every.get(part[1], part[0]), sql)
        with engine_errors(query):
            return rows_of(self.reader.query(query).read_all())

    def rows_if_made(self, sql: str) -> list[Row]:
        """The same; none if a table that the query needs was never made."""
        try:
            return self.rows(sql)
        except NeverMadeError:
            return []

    def extent(self, table: str) -> tuple[datetime | None, datetime | None]:
        """The first and last time of a table's rows; None if there are none."""
        time = TABLES[table].time
        (row,) = self.rows(_EXTENT.format(time=time, table=table))
        return row["first"], row["last"]

    def step_s(self, table: str, min_s: int = 1) -> int:
        """The length of a step on a time axis, so that a line has at most MAX_POINTS points."""
        first, last = self.extent(table)
        long_s = 0 if first is None or last is None else (last - first) / timedelta(seconds=1)
        steps = (step for step in _STEPS_S if step >= min_s and long_s / step <= MAX_POINTS)
        return next(steps, round(long_s / MAX_POINTS) + 1)

    def steps(self, table: str, sql: str, min_s: int = 1) -> tuple[int, list[Row]]:
        """The length of a step in seconds, and the answer to a query in which {step} is that.

        Steps that this report's time cuts are left out: their numbers would be too low.
        """
        step_s = self.step_s(table, min_s)
        return step_s, self.whole(self.rows(sql.replace("{step}", str(step_s))), step_s)

    def whole(self, rows: list[Row], step_s: int) -> list[Row]:
        """The rows of steps that this report's time does not cut."""
        first, last = self.since.timestamp(), self.until.timestamp() - step_s
        return [row for row in rows if first <= row["second"] <= last]

    def nothing(self, table: str) -> str:
        """Why a table has no rows in this report, and the command that would add some."""
        if self.reader.is_made(table):
            time = TABLES[table].time
            sql = f"SELECT max({time}) AS last FROM {table} WHERE cluster_id = {{cluster}}"
            last = self.rows(sql)[0]["last"]
            if last is not None:
                return f"{table} has no rows since {texts.moment(self.since)} UTC, where this " + (
                    f"report begins; its newest is of {texts.moment(last)}: name it with --since."
                )
        level = levels.of_table(table)
        needs = "" if level == ADMIN_API else f" from {IN_WORDS[level]}"
        return f"{table} has no rows of this cluster: `quotaflow {filler(table)}` fills it{needs}."

    @property
    def level(self) -> str:
        """The highest level of which these tables have rows of the cluster in this time."""
        if self.has_log:
            return SAMPLED_LOG if self.rows(_WEIGHTED) else WHOLE_LOG
        return TELEMETRY if self._has_rows(TELEMETRY_PUSHES.name) else ADMIN_API

    @property
    def has_log(self) -> bool:
        """Whether a request log says what happened in this time: else no row means nothing."""
        return self._has_rows(REQUESTS.name)

    def _has_rows(self, table: str) -> bool:
        return self.reader.is_made(table) and self.extent(table)[1] is not None


def clusters(reader: Reader) -> Mapping[str, datetime]:
    """The clusters of a warehouse, each with the time of its newest event.

    Raises NeverMadeError if the warehouse has no table at all.
    """
    try:
        return {row["cluster_id"]: row["newest"] for row in reader.rows(_CLUSTERS)}
    except NeverMadeError:
        if any(map(reader.is_made, TABLES)):
            return {}
        raise


def choose_cluster(cluster_ids: Mapping[str, datetime], cluster_id: str | None) -> str:
    """The given cluster, or the only one; empty if the tables have none yet.

    Raises ConfigError for an unknown cluster, and if there are several and none was given.
    """
    if cluster_id is not None:
        if cluster_id not in cluster_ids:
            raise ConfigError(f"no cluster {cluster_id}{nearest(cluster_id, list(cluster_ids))}")
        return cluster_id
    if len(cluster_ids) > 1:
        raise ConfigError(
            f"the tables have {counted(len(cluster_ids), 'cluster')}: choose one with --cluster: "
            + (", ".join(cluster_ids))
        )
    return next(iter(cluster_ids), "")
