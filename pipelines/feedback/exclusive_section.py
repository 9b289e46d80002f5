"""A turn at writing to the cluster: one at a time, pinned to the cluster conf means, recorded.

Whoever holds it has the warehouse's lock, a session that keeps records in Delta, and an admin
client. A stop file ends it before the next write.
"""

import socket
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from quotaflow.pipelines.config import Conf, expanded
from quotaflow.pipelines.errors import FeedbackError
from quotaflow.pipelines.feedback import delta_lock, journal
from quotaflow.pipelines.feedback.change_writer import ChangeWriter
from quotaflow.pipelines.feedback.ledger import Ledger, Record
from quotaflow.pipelines.feedback.live_configs import LiveConfigs
from quotaflow.pipelines.kafka import admin
from quotaflow.pipelines.kafka.cluster_state import ClusterState, sender
from quotaflow.pipelines.spark import frames
from quotaflow.pipelines.warehouse.tables import Tables, open_tables
from quotaflow.pipelines.warehouse.warehouse import Warehouse, user
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.control import CONFIG_CHANGES, PLANS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STOP_FILE = "STOP"
_CLOCK_SLACK = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class RowAppender:
    """Appends rows to tables of a warehouse through Spark."""

    spark: "SparkSession"
    warehouse: Warehouse

    def append(self, table: Table, rows: Sequence[dict[str, Any]]) -> None:
        """One commit: all of them or none."""
        frame = frames.from_arrow(self.spark, pa.Table.from_pylist(list(rows), schema=table.arrow))
        self.warehouse.write(frame.write.format("delta").mode("append"), table.name)


@dataclass(frozen=True, slots=True)
class DeltaJournal:
    """Keeps records in the table config_changes."""

    rows: RowAppender
    run_by: str

    def add(self, records: Sequence[Record]) -> None:
        """Keep them, all or none."""
        if records:
            rows = [journal.to_row(record, self.run_by) for record in records]
            self.rows.append(CONFIG_CHANGES, rows)


@dataclass(frozen=True, slots=True)
class ExclusiveSection:
    """What its holder has: the cluster's id, a writer of changes, what we own there.

    `tables` are as they are when the section begins.
    """

    cluster_id: str
    apply: ChangeWriter
    ledger: Ledger
    rows: RowAppender
    tables: Tables


@contextmanager
def open_cluster(conf: Conf) -> Iterator[tuple[str, LiveConfigs]]:
    """The id and the dynamic configs of conf's cluster. Raises KafkaError where it is another."""
    properties = conf.kafka.properties
    cluster_id = admin.describe(properties, [], conf.kafka.cluster_id).cluster_id
    with admin.client(properties) as client:
        yield cluster_id, LiveConfigs(ClusterState(sender(client)))


@contextmanager
def acquired(
    conf: Conf,
    report: Callable[[str], None],
    stopped: Callable[[], str | None] = lambda: None,
    passed: Callable[[str], None] = lambda _: None,
) -> Iterator[ExclusiveSection]:
    """Be the only one who writes to the cluster; what earlier runs left open is ended first.

    Raises LockedError while somebody else writes, FeedbackError where nothing may be written.
    """
    from quotaflow.pipelines.spark import session  # noqa: PLC0415  needs pyspark

    stop = stop_file_reason(conf)
    if stop is not None:
        raise FeedbackError(stop)
    warehouse = Warehouse(conf.warehouse)
    with warehouse.lock(), open_cluster(conf) as (cluster_id, configs):
        spark = session.get(session.short_lived(conf.spark), report)
        warehouse.ensure(spark, [CONFIG_CHANGES, PLANS])
        rows, run_id, since = RowAppender(spark, warehouse), uuid.uuid4().hex, datetime.now(UTC)
        with _only(conf, rows, cluster_id, run_id, since):
            # Only now, under the lock: an earlier reading could lack another run's records.
            tables = open_tables(conf)
            ledger = journal.read_ledger(tables)
            check_clock(ledger, datetime.now(UTC))
            apply = ChangeWriter(
                configs,
                DeltaJournal(rows, whoami()),
                run_id=run_id,
                clock=lambda: next_record_time(ledger.newest_at, datetime.now(UTC)),
                stop_reason=lambda: (
                    stopped() or stop_file_reason(conf) or _stopped_by_lock(conf, since)
                ),
                on_step=passed,
            )
            if apply.finish(for_cluster(ledger, cluster_id)):
                tables = open_tables(conf)
                ledger = journal.read_ledger(tables)
            yield ExclusiveSection(cluster_id, apply, for_cluster(ledger, cluster_id), rows, tables)


def next_record_time(newest: datetime | None, now: datetime) -> datetime:
    """When what is recorded now was: after all that was before, also where clocks differ a little.

    Of records of one time nobody could tell which run's came last.
    """
    return now if newest is None else max(now, newest + timedelta(microseconds=1))


def _only(
    conf: Conf, rows: RowAppender, cluster_id: str, run_id: str, since: datetime
) -> AbstractContextManager[None]:
    """What the warehouse's own lock does for a folder."""
    if not conf.warehouse.catalog_schema:
        return nullcontext()
    holder = f"{whoami()} {run_id}"
    return delta_lock.acquired(rows.spark, rows.warehouse, cluster_id, holder, since)


def _stopped_by_lock(conf: Conf, since: datetime) -> str | None:
    is_timed = conf.warehouse.catalog_schema is not None
    return delta_lock.expiry_reason(since, datetime.now(UTC)) if is_timed else None


def for_cluster(ledger: Ledger, cluster_id: str) -> Ledger:
    """The part of a ledger that is of one cluster."""
    return replace(
        ledger,
        owned={key: of for key, of in ledger.owned.items() if key[0].cluster_id == cluster_id},
        last_writes={
            key: of for key, of in ledger.last_writes.items() if key[0].cluster_id == cluster_id
        },
        open_records=tuple(of for of in ledger.open_records if of.entity.cluster_id == cluster_id),
    )


def stop_file(conf: Conf) -> Path:
    """The file that stops every write to the cluster while it exists."""
    if conf.plan.stop_file is not None:
        return expanded(conf.plan.stop_file)
    of = conf.warehouse
    return (of.checkpoint_folder if of.catalog_schema else of.folder) / STOP_FILE


def stop_file_reason(conf: Conf) -> str | None:
    """Why nothing may be written now; None where it may."""
    path = stop_file(conf)
    return f"{path} is there, nothing is written: remove it to go on" if path.exists() else None


def check_clock(ledger: Ledger, now: datetime) -> None:
    """Raise FeedbackError where the clock went back: leases would never end."""
    if ledger.newest_at is not None and ledger.newest_at > now + _CLOCK_SLACK:
        raise FeedbackError(
            f"this machine's clock says {now:%Y-%m-%d %H:%M:%S} UTC, and the newest record of "
            f"config_changes is of {ledger.newest_at:%Y-%m-%d %H:%M:%S}: mend the clock"
        )


def whoami() -> str:
    """User and host of this process, for who reads the records."""
    return f"{user()}@{socket.gethostname()}"
