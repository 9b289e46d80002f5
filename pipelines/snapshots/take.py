"""`quotaflow snapshot`: reads the state of the cluster, and writes what changed since the last."""

from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from time import monotonic

import pyarrow as pa

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import KafkaError
from quotaflow.pipelines.kafka import admin, rights
from quotaflow.pipelines.kafka.cluster_state import ClusterState, sender
from quotaflow.pipelines.results import row_alerts
from quotaflow.pipelines.results.answers.refresh import refresh
from quotaflow.pipelines.snapshots import client_quotas, client_subscriptions, sections, settings
from quotaflow.pipelines.snapshots.observations import ObservedRows
from quotaflow.pipelines.snapshots.sections import ClusterObserver
from quotaflow.pipelines.snapshots.snapshot import JOB, Snapshot
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.streaming.sinks import Count
from quotaflow.pipelines.terminal import logs
from quotaflow.pipelines.warehouse.readers import open_reader
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.warehouse import OpenSession, Warehouse
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import (
    CLIENT_QUOTAS,
    CLIENT_SUBSCRIPTIONS,
    CONFIG_CHANGES,
    CONFIGS,
    GROUP_OFFSETS,
    PARTITION_OFFSETS,
    PIPELINE_PROGRESS,
    REQUESTS,
    SETTINGS,
    TELEMETRY_SUBSCRIPTIONS,
    TOPICS,
)

_READS = (TELEMETRY_SUBSCRIPTIONS, REQUESTS, PIPELINE_PROGRESS)
_PLANS_READ = (CONFIG_CHANGES,)
"""A table that `apply` fills, and that the first plan reads before it."""
_OFFSETS = (GROUP_OFFSETS, PARTITION_OFFSETS)
"""Rows of these tables have the time at which a snapshot begins to read them.

Rates and lags are computed by it.
"""


def take(
    conf: Conf,
    now: datetime,
    report: Callable[[str], None],
    names: Collection[str] = (),
    *,
    with_answers: bool = True,
) -> int:
    """Read the cluster, write what changed in the named tables or in all, and report each.

    Without `with_answers`, it leaves answers and alerts on rows to a later run. Returns the number
    of rows written. A refusal of a broker is reported and counted, and leaves its rows as they are.
    Raises KafkaError if the cluster cannot be reached or refuses all.
    """
    started = monotonic()
    row_alerts.check(conf.alerts)
    warehouse = Warehouse(conf.warehouse)
    with warehouse.lock():
        properties = conf.kafka.login
        cluster = admin.describe(properties, [], conf.kafka.cluster_id)
        # In a folder only a table of an older release opens it.
        open_session = session.opener(session.short_lived(conf.spark), report)
        chosen = [table for table in sections.SNAPSHOT_TABLES if not names or table.name in names]
        read = (TOPICS, CONFIGS, *_READS, *_PLANS_READ)
        needed = {table.name for table in (*chosen, *read)}
        warehouse.ensure(open_session, [t for name, t in TABLES.items() if name in needed])
        opened = partial(open_reader, conf, open_session)
        logs.of_cluster(cluster.cluster_id)
        snapshot = Snapshot(warehouse, opened, open_session, cluster.cluster_id, now)
        with admin.client(properties) as client:
            state = ClusterState(sender(client))
            topics_before = partial(current_topics, snapshot)
            pseudonyms = conf.privacy.pseudonyms()
            observer = ClusterObserver(state, topics_before, settings.of_conf(conf), pseudonyms)
            rows = write(
                snapshot, observer, chosen, report, lambda: timedelta(seconds=monotonic() - started)
            )
        if with_answers:
            _bring_up_to_date(conf, open_session, report)
        return rows


def _bring_up_to_date(conf: Conf, open_session: OpenSession, report: Callable[[str], None]) -> None:
    """Answers, then alerts on rows."""
    refresh(conf.warehouse, open_session, datetime.now(UTC), report)
    row_alerts.watch(
        conf.alerts,
        Warehouse(conf.warehouse),
        open_session,
        cluster_id=conf.kafka.cluster_id,
        now=datetime.now(UTC),
        report=report,
    )


def write(
    snapshot: Snapshot,
    observer: ClusterObserver,
    chosen: Collection[Table],
    report: Callable[[str], None],
    elapsed: Callable[[], timedelta] = timedelta,
) -> int:
    """Write what changed in these tables. Returns the number of rows.

    `elapsed` is how long the snapshot has taken so far. Offsets have the time at which reading them
    begins, and all else has the time of the snapshot.
    """
    counts: list[Count] = []
    refusals: list[str] = []
    of_offsets: Snapshot | None = None
    for table in chosen:
        if table in _OFFSETS and of_offsets is None:
            of_offsets = replace(snapshot, now=snapshot.now + elapsed())
        seen = observer.observed(table)
        refusals += [gap.reason for gap in seen.unanswered[:1] if seen.is_unanswered]
        written = _written(of_offsets if of_offsets and table in _OFFSETS else snapshot, seen)
        for count in written:
            if count.outcome != "in" and (count.rows or count.reason is None):
                report(_line(count))
        counts += written
    _count(snapshot, of_offsets, counts)
    of_cluster = [table for table in chosen if table != SETTINGS]
    if of_cluster and len(refusals) == len(of_cluster):
        reasons = ", ".join(sorted(set(refusals)))
        needs = rights.hint(JOB, reasons)
        raise KafkaError(f"the cluster answered nothing ({reasons}){needs}")
    return sum(count.rows for count in counts if count.outcome == "out")


def _count(snapshot: Snapshot, of_offsets: Snapshot | None, counts: Collection[Count]) -> None:
    """Append the counts, each with the time of its table."""
    names = {table.name for table in _OFFSETS if of_offsets}
    for each, is_of_offsets in ((snapshot, False), (of_offsets, True)):
        chosen = [count for count in counts if (count.target in names) == is_of_offsets]
        if each and any(count.rows or count.is_nothing_there for count in chosen):
            each.batch.report(each.open_session, chosen, each.cluster_id, each.now)


def _written(snapshot: Snapshot, seen: ObservedRows) -> list[Count]:
    if seen.table == CLIENT_SUBSCRIPTIONS:
        return client_subscriptions.replace(snapshot, seen)
    if seen.table == CLIENT_QUOTAS:
        return snapshot.append_changes(seen, partial(_with_setter, snapshot))
    return snapshot.append_changes(seen)


def current_topics(snapshot: Snapshot) -> set[str]:
    """Names of the current topics, by earlier snapshots."""
    return set(snapshot.current_rows(TOPICS)["topic"].to_pylist())


def _with_setter(snapshot: Snapshot, changed: pa.Table) -> pa.Table:
    tables = snapshot.open_reader()
    of_quotas = f"job = {literal(JOB)} AND target = {literal(CLIENT_QUOTAS.name)}"
    (before,) = tables.rows(
        f"SELECT max(event_time) AS event_time FROM {PIPELINE_PROGRESS.name} "
        f"WHERE {of_quotas} AND {snapshot.is_of_cluster} AND outcome <> 'left_out'"
    )
    sql = client_quotas.alter_requests(snapshot.is_of_cluster, before["event_time"])
    return client_quotas.with_setter(changed, tables.read(sql, client_quotas.READ))


def _line(count: Count) -> str:
    what = "rows of" if count.outcome == "out" else f"left out ({count.reason}) of"
    needs = rights.hint(JOB, count.reason or "")
    return f"snapshot: {count.rows} {what} {count.target}{needs}"
