"""Reads how the cluster is before and after a run of plans, for the halt."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

from quotaflow.pipelines.config import ReplicationSection
from quotaflow.pipelines.feedback.configs.change import Halt, Trial
from quotaflow.pipelines.feedback.ledger.ledger import Ledger
from quotaflow.pipelines.feedback.planning import halt
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.time_ranges import Since
from quotaflow.udfs.rules.cluster_health import LEAST_REQUESTS, Pair, Window, worse

BEFORE, NOW = timedelta(minutes=30), timedelta(minutes=15)
"""How long before a run, and up to now, the cluster is looked at: it may be well again since."""
_HOUR, _HOURS = timedelta(hours=1), 7 * 24
"""The usual spread is that of a pair of such windows at the end of each hour of a week."""
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)

# A minute of a broker is slow by the share of its principals, so that few of them, who may belong
# together, cannot make it so. Of earlier pairs, only the later window is compared.
MINUTES = """
    WITH clients AS (
        SELECT part, is_after, minute, broker_id, api, principal, count(*) AS requests,
            count(CASE WHEN waited_ms > most_ms THEN 1 END) AS late
        FROM (
            SELECT {part} AS part, {is_after} AS is_after, broker_id, api, principal,
                date_trunc('minute', event_time) AS minute,
                CASE WHEN api = 'FETCH' THEN {fetch_ms} ELSE {produce_ms} END AS most_ms,
                CASE
                    WHEN api = 'FETCH' THEN total_time_ms - coalesce(remote_time_ms, 0e0)
                    ELSE total_time_ms
                END AS waited_ms
            FROM requests
            WHERE {is_seen} AND ({part} = 0 OR {is_after}) AND total_time_ms IS NOT NULL
                AND api IN ('PRODUCE', 'FETCH') AND replica_id IS NULL
        ) AS served
        GROUP BY part, is_after, minute, broker_id, api, principal
    ),
    by_broker AS (
        SELECT part, is_after, minute,
            sum(requests) >= {least_requests}
            AND count(CASE WHEN late * 100 > requests THEN 1 END) >= 3
            AND count(CASE WHEN late * 100 > requests THEN 1 END) * 10 >= count(*) AS is_slow
        FROM clients
        GROUP BY part, is_after, minute, broker_id, api
    )
    SELECT part, is_after, count(DISTINCT minute) AS minutes,
        count(DISTINCT CASE WHEN is_slow THEN minute END) AS slow_minutes
    FROM by_broker
    GROUP BY part, is_after
"""
# Principals without errors are one row: there are many, and none of them can have more.
ERRORS = """
    SELECT part, CASE WHEN errors > 0 THEN principal END AS principal, count(*) AS principals,
        max(before_requests) AS before_requests, max(before_errors) AS before_errors,
        max(requests) AS requests, max(errors) AS errors
    FROM (
        SELECT part, principal,
            sum(CASE WHEN is_after THEN 0 ELSE weight END) AS before_requests,
            sum(CASE WHEN is_after OR NOT is_broker_error THEN 0 ELSE weight END) AS before_errors,
            sum(CASE WHEN is_after THEN weight ELSE 0 END) AS requests,
            sum(CASE WHEN is_after AND is_broker_error THEN weight ELSE 0 END) AS errors
        FROM (
            SELECT {part} AS part, {is_after} AS is_after, principal,
                coalesce(weight, 1) AS weight, is_broker_error
            FROM client_answers
            WHERE {is_seen}
        ) AS seen
        GROUP BY part, principal
        HAVING count(CASE WHEN is_after THEN 1 END) >= {least_requests}
            AND count(CASE WHEN is_after THEN NULL ELSE 1 END) >= {least_requests}
    ) AS measured
    GROUP BY part, CASE WHEN errors > 0 THEN principal END
"""
# A replica that a move adds was never in sync: it is no loss.
OUT_OF_SYNC = """
    SELECT part, is_after, count(*) AS replicas,
        count(CASE WHEN NOT is_in_sync AND joined_at < valid_from THEN 1 END) AS out_of_sync
    FROM (
        SELECT valid_from, valid_to, is_in_sync,
            min(CASE WHEN is_in_sync THEN valid_from END)
                OVER (PARTITION BY topic_id, partition, broker_id) AS joined_at
        FROM replica_history
        WHERE cluster_id = {cluster}
    ) AS states
    INNER JOIN (VALUES {moments}) AS moments (part, is_after, moment)
        ON valid_from < moment AND (valid_to IS NULL OR valid_to >= moment)
    GROUP BY part, is_after
"""


def halted(
    tables: Reader,
    ledger: Ledger,
    cluster_id: str | None,
    now: datetime,
    *,
    period: timedelta,
    results_at: datetime | None,
    limits: ReplicationSection,
) -> Halt | None:
    """The halt of this cluster, or of the only one that the ledger has; None: there is none.

    `period` is how long a run is watched, `results_at` the newest time of results. `limits` says
    how long clients may wait for a broker.
    """
    written = {record.entity.cluster_id for record in ledger.applied}
    clusters = {cluster_id} if cluster_id else written | ledger.halts.keys()
    for each in sorted(clusters):
        trial = halt.trial(ledger, each, now, period)
        if trial is None:
            continue
        watch = _Watch(tables, each, trial, results_at or now, limits)
        if why := watch.worse():
            return Halt(halt.reason(trial, why), trial)
    return None


def queries(
    seen: Mapping[str, str],
    moments: Iterable[tuple[int, bool, datetime]],
    cluster_id: str,
    limits: ReplicationSection,
) -> tuple[tuple[str, str], ...]:
    """The table that each query needs, and its SQL; the errors of principals are the last.

    `seen` has SQL about a request: the number of its pair of windows (`part`), whether it is in the
    later one (`is_after`), and whether it is in either (`is_in_range`) and of a client that counts
    (`is_other`). `moments`: when replicas are looked at, for which pair, and for the later window
    or not.
    """
    is_seen = f"cluster_id = {literal(cluster_id)} AND {seen['is_other']} AND {seen['is_in_range']}"
    values = {"is_seen": is_seen, "least_requests": LEAST_REQUESTS, **seen}
    wait = {"produce_ms": limits.produce_p99_ms, "fetch_ms": limits.fetch_p99_ms}
    times = ", ".join(f"({n}, {literal(is_after)}, {literal(at)})" for n, is_after, at in moments)
    return (
        ("requests", MINUTES.format(**values, **wait)),
        ("replicas", OUT_OF_SYNC.format(cluster=literal(cluster_id), moments=times)),
        ("requests", ERRORS.format(**values)),
    )


@dataclass(frozen=True, slots=True)
class _Watch:
    """What tables show of a cluster around a trial, up to a time."""

    tables: Reader
    cluster_id: str
    trial: Trial
    until: datetime
    limits: ReplicationSection

    def worse(self) -> str | None:
        """Why the cluster is worse since the trial; None if it is not."""
        start, since = self.trial.started_at, max(self.trial.ended_at, self.until - NOW)
        until = max(self.until, since) + _MICROSECOND
        seen = {
            "part": "0",
            "is_after": f"event_time >= {literal(since)}",
            "is_in_range": f"(event_time >= {literal(start - BEFORE)} "
            f"AND event_time < {literal(start)} "
            f"OR event_time >= {literal(since)} AND event_time < {literal(until)})",
        }
        pairs = self._pairs(seen, [(0, False, start), (0, True, until)], start - BEFORE)
        before, after = pairs.get(0, (Window(), Window()))
        return worse(before, after, self._earlier(until - since))

    def _earlier(self, length: timedelta) -> Iterator[Pair]:
        """The pairs of the week before the trial, read when the first is asked for."""
        start, hour = self.trial.started_at, _HOUR // _MICROSECOND
        age = f"({(start - _EPOCH) // _MICROSECOND - 1} - unix_micros(event_time))"
        seen = {
            "part": f"CAST(floor({age} / {hour}e0) AS BIGINT)",
            "is_after": f"{age} % {hour} < {length // _MICROSECOND}",
            "is_in_range": f"event_time >= {literal(start - _HOURS * _HOUR)} "
            f"AND event_time < {literal(start)} "
            f"AND {age} % {hour} < {(length + BEFORE) // _MICROSECOND}",
        }
        moments = [(n, True, start - n * _HOUR) for n in range(_HOURS)]
        yield from self._pairs(seen, moments, start - _HOURS * _HOUR).values()

    def _pairs(
        self,
        seen: Mapping[str, str],
        moments: Iterable[tuple[int, bool, datetime]],
        since: datetime,
    ) -> dict[int, Pair]:
        changed = ", ".join(map(literal, sorted(self.trial.principals)))
        is_other = "principal IS NOT NULL" + (
            f" AND principal NOT IN ({changed})" if changed else ""
        )
        *levels, errors = (
            self.tables.rows(sql, Since(since, since)) if self.tables.is_made(table) else []
            for table, sql in queries(
                {"is_other": is_other, **seen}, moments, self.cluster_id, self.limits
            )
        )
        windows: dict[tuple[int, bool], dict[str, Any]] = defaultdict(lambda: {"errors": {}})
        for row in chain.from_iterable(levels):
            windows[row.pop("part"), row.pop("is_after")].update(row)
        for row in errors:
            before, after = windows[row["part"], False], windows[row["part"], True]
            if row["principal"] is None:
                after["well"] = row["principals"]
                continue
            before["errors"][row["principal"]] = row["before_requests"], row["before_errors"]
            after["errors"][row["principal"]] = row["requests"], row["errors"]
        parts = sorted({part for part, _ in windows})
        return {n: (Window(**windows[n, False]), Window(**windows[n, True])) for n in parts}
