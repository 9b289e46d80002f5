"""The exclusive section: one process at a time writes to conf's cluster, and records it.

Its holder has the lock of the warehouse, a journal that stores records, and an admin client. A stop
file ends the section before the next write.
"""

import socket
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from quotaflow.pipelines.config import Conf, expanded
from quotaflow.pipelines.errors import FeedbackError
from quotaflow.pipelines.feedback import delta_lock, journal
from quotaflow.pipelines.feedback.change_writer import ChangeWriter
from quotaflow.pipelines.feedback.ledger import Ledger, Record
from quotaflow.pipelines.feedback.live_configs import LiveConfigs
from quotaflow.pipelines.kafka import admin
from quotaflow.pipelines.kafka.cluster_state import ClusterState, sender
from quotaflow.pipelines.results.answers.refresh import refresh
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.warehouse import row_writer
from quotaflow.pipelines.warehouse.tables import Tables, open_tables
from quotaflow.pipelines.warehouse.warehouse import OpenSession, Warehouse, user
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.control import CONFIG_CHANGES, PLANS
from quotaflow.schemas.tables.quotas import QUOTA_USAGE
from quotaflow.schemas.tables.snapshots import SETTINGS

STOP_FILE = "STOP"
_CLOCK_SLACK = timedelta(minutes=1)
_READ_TABLES = (SETTINGS, QUOTA_USAGE)


@dataclass(frozen=True, slots=True)
class RowAppender:
    """Makes tables of a warehouse and appends rows to them.

    A folder's table needs a Spark session only if it is of an older release.
    """

    open_session: OpenSession
    warehouse: Warehouse

    @classmethod
    def from_conf(cls, conf: Conf, report: Callable[[str], None]) -> "RowAppender":
        """For conf's tables; `report` gets a line if a Spark session starts."""
        short = session.short_lived(conf.spark)
        return cls(session.opener(short, report), Warehouse(conf.warehouse))

    def ensure(self, tables: Iterable[Table]) -> None:
        """Create missing tables, and bring live ones to this schema version.

        Raises JobError if a folder's table cannot be written.
        """
        self.warehouse.ensure(self.open_session, tables)

    def append(self, table: Table, rows: Sequence[dict[str, Any]]) -> None:
        """One commit: all of them or none. Raises as `ensure`."""
        arrow = pa.Table.from_pylist(list(rows), schema=table.arrow)
        row_writer.append(self.open_session, self.warehouse, table, arrow)


@dataclass(frozen=True, slots=True)
class DeltaJournal:
    """The journal in the table config_changes."""

    rows: RowAppender
    run_by: str

    def add(self, records: Sequence[Record]) -> None:
        """Store all of them or none. Raises as `RowAppender.append`."""
        if records:
            rows = [journal.to_row(record, self.run_by) for record in records]
            self.rows.append(CONFIG_CHANGES, rows)


@dataclass(frozen=True, slots=True)
class ExclusiveSection:
    """What the holder of the section works with: the cluster, a writer of changes, our ledger.

    `tables` are opened when the section begins.
    """

    cluster_id: str
    apply: ChangeWriter
    ledger: Ledger
    rows: RowAppender
    tables: Tables


@contextmanager
def open_cluster(conf: Conf) -> Iterator[tuple[str, LiveConfigs]]:
    """The id and the dynamic configs of conf's cluster. Raises KafkaError if the id is another."""
    properties = conf.kafka.properties
    cluster_id = admin.describe(properties, [], conf.kafka.cluster_id).cluster_id
    with admin.client(properties) as client:
        yield cluster_id, LiveConfigs(ClusterState(sender(client)))


@contextmanager
def acquired(
    conf: Conf,
    report: Callable[[str], None],
    stopped: Callable[[], str | None] = lambda: None,
    on_step: Callable[[str], None] = lambda _: None,
) -> Iterator[ExclusiveSection]:
    """Enter the exclusive section, and end open records of earlier runs first.

    `stopped` says why nothing more may be written. `on_step` is called after each step. Raises
    LockedError while another process writes, FeedbackError if nothing may be written, JobError if a
    folder's table cannot be written.
    """
    stop = stop_file_reason(conf)
    if stop is not None:
        raise FeedbackError(stop)
    with Warehouse(conf.warehouse).lock(), open_cluster(conf) as (cluster_id, configs):
        rows = RowAppender.from_conf(conf, report)
        opened = partial(open_tables, conf, rows.open_session)
        is_made = opened().is_made
        # A restore reads these, and must work on tables that an upgrade has not migrated yet.
        read = [table for table in _READ_TABLES if is_made(table.name)]
        rows.ensure([CONFIG_CHANGES, PLANS, *read])
        run_id, since = uuid.uuid4().hex, datetime.now(UTC)
        with _only(conf, rows, cluster_id, run_id, since):
            # Only now, under the lock: an earlier reading could lack another run's records.
            tables = opened()
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
                on_step=on_step,
            )
            if apply.finish(for_cluster(ledger, cluster_id)):
                tables = opened()
                ledger = journal.read_ledger(tables)
            yield ExclusiveSection(cluster_id, apply, for_cluster(ledger, cluster_id), rows, tables)
        # The next plan must see what was written here.
        refresh(conf.warehouse, rows.open_session, datetime.now(UTC), report)


def next_record_time(newest: datetime | None, now: datetime) -> datetime:
    """The time for a new record: after all earlier records, even if clocks differ a little.

    The order of runs cannot be known from records of the same time.
    """
    return now if newest is None else max(now, newest + timedelta(microseconds=1))


def _only(
    conf: Conf, rows: RowAppender, cluster_id: str, run_id: str, since: datetime
) -> AbstractContextManager[None]:
    """The lock of a catalog; a folder has the warehouse's own."""
    if not conf.warehouse.catalog_schema:
        return nullcontext()
    holder = f"{whoami()} {run_id}"
    return delta_lock.acquired(rows.open_session(), rows.warehouse, cluster_id, holder, since)


def _stopped_by_lock(conf: Conf, since: datetime) -> str | None:
    is_timed = conf.warehouse.catalog_schema is not None
    return delta_lock.expiry_reason(since, datetime.now(UTC)) if is_timed else None


def for_cluster(ledger: Ledger, cluster_id: str) -> Ledger:
    """The part of a ledger that is about one cluster."""
    return replace(
        ledger,
        owned={
            key: owned for key, owned in ledger.owned.items() if key[0].cluster_id == cluster_id
        },
        last_writes={
            key: record
            for key, record in ledger.last_writes.items()
            if key[0].cluster_id == cluster_id
        },
        open_records=tuple(
            record for record in ledger.open_records if record.entity.cluster_id == cluster_id
        ),
    )


def stop_file(conf: Conf) -> Path:
    """The file that stops every write to the cluster while it exists."""
    if conf.plan.stop_file is not None:
        return expanded(conf.plan.stop_file)
    warehouse = conf.warehouse
    folder = warehouse.checkpoint_folder if warehouse.catalog_schema else warehouse.folder
    return folder / STOP_FILE


def stop_file_reason(conf: Conf) -> str | None:
    """Why nothing may be written now; None if there is no stop file."""
    path = stop_file(conf)
    return f"{path} is there, nothing is written: remove it to go on" if path.exists() else None


def check_clock(ledger: Ledger, now: datetime) -> None:
    """Raise FeedbackError if the clock went back: leases would never end."""
    if ledger.newest_at is not None and ledger.newest_at > now + _CLOCK_SLACK:
        raise FeedbackError(
            f"this machine's clock says {now:%Y-%m-%d %H:%M:%S} UTC, and the newest record of "
            f"config_changes is of {ledger.newest_at:%Y-%m-%d %H:%M:%S}: set the clock"
        )


def whoami() -> str:
    """User and host of this process, for readers of the records."""
    return f"{user()}@{socket.gethostname()}"
