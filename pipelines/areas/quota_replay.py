"""Replays new producer ids under a quota: which sources would have waited, and how long."""

import difflib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.config.results import MAX_IDS_PER_S, MIN_IDS_PER_S
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.terminal import texts
from quotaflow.pipelines.warehouse.engine_errors import engine_errors
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.readers import open_reader
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.udfs.counted import counted
from quotaflow.udfs.rules.principal_name import named
from quotaflow.udfs.rules.what_if import ReplayOutcome, ReplayQuota, replay

# A principal's ids on one broker share a token bucket; a burst that fits it is not throttled.
_ARRIVALS = """
WITH counted AS (
    SELECT *, count(*) OVER (PARTITION BY cluster_id, broker_id, principal) AS ids
    FROM producer_id_allocations
    WHERE {where}
)
SELECT
    cluster_id, broker_id, principal, source, unix_millis(allocated_at) AS at_ms
FROM counted
WHERE ids > {burst}
ORDER BY cluster_id, principal, broker_id, source, at_ms
"""
_PRINCIPALS = "SELECT DISTINCT principal FROM producer_id_allocations WHERE principal IS NOT NULL"
_NO_IDS = "no new producer ids of"
_BUCKET = itemgetter("cluster_id", "principal", "broker_id")


@dataclass(frozen=True, slots=True)
class ThrottledSource:
    """What the quota would have done to one source of new ids of a principal on a broker."""

    cluster_id: str
    principal: str
    broker_id: int
    source: str
    outcome: ReplayOutcome

    def row(self) -> dict[str, Any]:
        """The source as a row of the command's output."""
        about = {name: getattr(self, name) for name in ("cluster_id", "principal", "broker_id")}
        return about | {"source": self.source} | asdict(self.outcome)


# A narrow terminal drops the last columns first.
COLUMNS = [
    *("principal", "broker_id", "source", "allocated_ids", "throttled_ids", "throttle_time_ms"),
    *("is_innocent", "longest_throttle_ms", "late_ms", "cluster_id"),
]


def throttled_sources(
    conf: Conf, ids_per_s: float, principal: str | None, since: datetime | None
) -> list[ThrottledSource]:
    """All sources that would have waited, the longest wait first."""
    if not MIN_IDS_PER_S <= ids_per_s <= MAX_IDS_PER_S:
        raise ConfigError(
            f"--producer-ids-rate is {ids_per_s:g}, and must be between {MIN_IDS_PER_S} and "
            f"{MAX_IDS_PER_S} per second"
        )
    reader = open_reader(conf)
    where = ["principal IS NOT NULL"]
    if principal is not None:
        names = checked_principals(reader, principal, _PRINCIPALS, _NO_IDS)
        where.append(f"principal IN ({', '.join(map(literal, names))})")
    if since is not None:
        where.append(f"allocated_at >= {literal(since)}")
    quota = ReplayQuota(ids_per_s, conf.producer_ids.num_windows, conf.producer_ids.window_ms)
    sources = _throttled(_arrivals(reader, " AND ".join(where), quota), quota)
    return sorted(sources, key=lambda row: (-row.outcome.throttle_time_ms, row.source))


def checked_principals(reader: Reader, name: str, sql: str, missing: str) -> tuple[str, ...]:
    """Those that a name means, of the principals that a query answers; else `missing` is raised."""
    principals = [row["principal"] for row in reader.rows(sql)]
    matches = named(name, principals)
    if matches:
        return matches
    near = difflib.get_close_matches(name, principals, n=1, cutoff=0.3)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise ConfigError(f"{missing} {name}{hint}")


def summaries(sources: list[ThrottledSource]) -> Iterator[str]:
    """A line for each principal: what would have waited, and which sources were innocent."""
    by_principal = attrgetter("cluster_id", "principal")
    for (_, principal), group in groupby(sorted(sources, key=by_principal), key=by_principal):
        rows = list(group)
        ids = sum(row.outcome.throttled_ids for row in rows)
        waited_s = sum(row.outcome.throttle_time_ms for row in rows) / 1_000
        throttled = {row.source for row in rows}
        innocent = throttled - {row.source for row in rows if not row.outcome.is_innocent}
        yield (
            f"{principal}: {counted(ids, 'allocated id')} would have waited "
            f"{texts.fixed(waited_s, 1)} s in all, "
            f"of {counted(len(throttled), 'source')}, {len(innocent)} of which would not have "
            "been throttled alone"
        )


def _arrivals(reader: Reader, where: str, quota: ReplayQuota) -> Iterator[dict[str, Any]]:
    sql = _ARRIVALS.format(where=where, burst=quota.token_bucket().burst)
    with engine_errors(sql):
        for batch in reader.query(sql):
            yield from batch.to_pylist()


def _throttled(rows: Iterator[dict[str, Any]], quota: ReplayQuota) -> Iterator[ThrottledSource]:
    for (cluster_id, principal, broker_id), group in groupby(rows, key=_BUCKET):
        outcomes = replay(_by_source(group), quota)
        for source, outcome in outcomes.items():
            if outcome.throttled_ids:
                yield ThrottledSource(cluster_id, principal, broker_id, source, outcome)


def _by_source(rows: Iterator[dict[str, Any]]) -> Mapping[str, list[int]]:
    arrivals = defaultdict[str, list[int]](list)
    for row in rows:
        arrivals[row["source"]].append(row["at_ms"])
    return arrivals
