"""Reads how the cluster is before and after a run of plans, for the halt."""

from datetime import datetime, timedelta
from functools import partial
from typing import Any

from quotaflow.pipelines.feedback import halt
from quotaflow.pipelines.feedback.change import Halt, Trial
from quotaflow.pipelines.feedback.ledger import Ledger
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.tables import Tables
from quotaflow.schemas.configs import USER
from quotaflow.udfs.rules.cluster_health import Window, worse

BEFORE, NOW = timedelta(minutes=30), timedelta(minutes=15)
"""How long before a run, and up to now, the cluster is looked at: it may be well again since."""

MINUTES = """
    SELECT count(DISTINCT event_time) AS minutes,
        count(DISTINCT CASE WHEN is_degraded THEN event_time END) AS degraded_minutes
    FROM broker_degradation
    WHERE cluster_id = {0} AND event_time >= {1} AND event_time < {2}
"""
ERRORS = """
    SELECT principal, sum(weight) AS requests,
        sum(CASE WHEN error_code <> 0 THEN weight ELSE 0 END) AS errors
    FROM requests
    WHERE cluster_id = {0} AND event_time >= {1} AND event_time < {2} AND principal IS NOT NULL
    GROUP BY principal
"""
OUT_OF_SYNC = """
    SELECT count(*) AS replicas
    FROM replica_history
    WHERE cluster_id = {0} AND NOT is_in_sync AND valid_from < {1}
        AND (valid_to IS NULL OR valid_to >= {1})
"""


def halted(
    tables: Tables,
    ledger: Ledger,
    cluster_id: str | None,
    now: datetime,
    *,
    period: timedelta,
    results_at: datetime | None,
) -> Halt | None:
    """The halt of this cluster, or of the only one that the ledger has; None: there is none.

    `period` is how long a run is watched, `results_at` the newest time of results.
    """
    written = {record.entity.cluster_id for record in ledger.applied}
    clusters = {cluster_id} if cluster_id else written | ledger.halts.keys()
    for each in sorted(clusters):
        trial = halt.trial(ledger, each, now, period)
        why = _worse(tables, each, trial, results_at or now) if trial else None
        if trial is not None and why is not None:
            return Halt(halt.reason(trial, why), trial)
    return None


def _worse(tables: Tables, cluster_id: str, trial: Trial, until: datetime) -> str | None:
    since = max(trial.ended_at, until - NOW)
    # A default changes all users, and none of them may have more errors.
    users = [e for e in trial.entities if e.entity_type == USER and not e.is_default]
    changed = {f"User:{user.entity_name}" for user in users}
    seen = partial(_window, tables, literal(cluster_id), changed)
    before = seen(trial.started_at - BEFORE, trial.started_at)
    return worse(before, seen(since, until + timedelta(microseconds=1)))


def _window(
    tables: Tables, cluster: str, changed: set[str], since: datetime, until: datetime
) -> Window:
    times = (cluster, literal(since), literal(until))
    minutes = _rows(tables, "broker_degradation", MINUTES.format(*times))
    errors = _rows(tables, "requests", ERRORS.format(*times))
    out_of_sync = _rows(tables, "replicas", OUT_OF_SYNC.format(cluster, literal(until)))
    return Window(
        minutes=minutes[0]["minutes"] if minutes else 0,
        degraded_minutes=minutes[0]["degraded_minutes"] if minutes else 0,
        errors={
            row["principal"]: (float(row["requests"]), float(row["errors"]))
            for row in errors
            if row["principal"] not in changed
        },
        under_replicated=out_of_sync[0]["replicas"] if out_of_sync else None,
    )


def _rows(tables: Tables, table: str, sql: str) -> list[dict[str, Any]]:
    return tables.rows(sql) if tables.is_made(table) else []
