"""The exclusive section: one process at a time writes to conf's cluster, and records it.

Its holder has the lock of the warehouse, a journal that stores records and leases, and an admin
client. A stop file ends the section before the next write. A section without tables restores by
the leases of the cluster alone.
"""

import fcntl
import socket
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa

from quotaflow.pipelines.config import WarehouseSection
from quotaflow.pipelines.errors import FeedbackError, LockedError
from quotaflow.pipelines.feedback.configs.change import APPLY, RESTORE
from quotaflow.pipelines.feedback.configs.live_configs import LiveConfigs
from quotaflow.pipelines.feedback.ledger import deployment, journal, lease_topic
from quotaflow.pipelines.feedback.ledger.leases import Item, LeaseBook, read_book
from quotaflow.pipelines.feedback.ledger.ledger import Key, Ledger, Record
from quotaflow.pipelines.feedback.ledger.signed_journal import (
    LeaseTopic,
    SignedJournal,
    open_journal,
)
from quotaflow.pipelines.feedback.ledger.signing import Signer
from quotaflow.pipelines.feedback.ledger.trust import TrustedLedger, judge
from quotaflow.pipelines.feedback.writing import delta_lock, stop_file
from quotaflow.pipelines.feedback.writing.change_writer import ChangeWriter
from quotaflow.pipelines.feedback.writing.write_conf import WriteConf
from quotaflow.pipelines.kafka import admin
from quotaflow.pipelines.kafka.cluster_state import ClusterState, sender
from quotaflow.pipelines.results.answers.refresh import refresh
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.terminal import values
from quotaflow.pipelines.warehouse import row_writer
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.readers import reader_of
from quotaflow.pipelines.warehouse.warehouse import OpenSession, Warehouse, user
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import CONFIG_CHANGES, PLANS, SETTINGS
from quotaflow.udfs.counted import counted

_LOCK = ".feedback.lock"
_CLOCK_SLACK = timedelta(minutes=1)
_READ_TABLES = (SETTINGS, TABLES["quota_usage"])


@dataclass(frozen=True, slots=True)
class RowAppender:
    """Makes tables of a warehouse and appends rows to them.

    A folder's table needs a Spark session only if it is of an older release.
    """

    open_session: OpenSession
    warehouse: Warehouse

    @classmethod
    def from_conf(cls, conf: WriteConf, report: Callable[[str], None]) -> "RowAppender":
        """For conf's tables; `report` gets a line if a Spark session starts."""
        short = session.short_lived(conf.spark)
        return cls(session.opener(short, report), Warehouse(conf.warehouse))

    def tables(self) -> Reader:
        """All tables as they are now."""
        return reader_of(self.warehouse, self.open_session)

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

    `tables` are opened when the section begins. `trust` has the ledger, and what is left out of it.
    """

    cluster_id: str
    apply: ChangeWriter
    trust: TrustedLedger
    rows: RowAppender
    tables: Reader
    leases: SignedJournal

    @property
    def ledger(self) -> Ledger:
        """What we wrote to this cluster, as far as it is believed."""
        return self.trust.ledger

    def ledger_now(self, tables: Reader) -> Ledger:
        """The ledger by these tables, with what the section has written."""
        records = journal.read_records(tables)
        return judge(records, self.leases.signer, self.leases.book, self.cluster_id).ledger


@dataclass(frozen=True, slots=True)
class LeaseSection:
    """A section without tables: what the leases of a deployment say, and a writer of changes."""

    apply: ChangeWriter
    trust: TrustedLedger


@contextmanager
def open_cluster(conf: WriteConf) -> Iterator[tuple[str, LiveConfigs]]:
    """The id and the dynamic configs of conf's cluster. Raises KafkaError if the id is another."""
    properties = conf.kafka.login
    cluster_id = admin.describe(properties, [], conf.kafka.cluster_id).cluster_id
    with admin.client(properties) as client:
        yield cluster_id, LiveConfigs(ClusterState(conf.guarded(sender(client))))


@contextmanager
def open_leases(conf: WriteConf) -> Iterator[LeaseTopic]:
    """The topic of leases of conf's cluster."""
    with lease_topic.opened(conf.kafka, conf.feedback.lease_topic) as topic:
        yield topic


@contextmanager
def acquired(
    conf: WriteConf,
    report: Callable[[str], None],
    stopped: Callable[[], str | None] = lambda: None,
    on_step: Callable[[str], None] = lambda _: None,
    *,
    purpose: str = APPLY,
) -> Iterator[ExclusiveSection]:
    """Enter the exclusive section, and end open records of earlier runs first.

    `stopped` says why nothing more may be written. `on_step` is called after each step. Raises
    LockedError while another process writes, FeedbackError if nothing may be written, JobError if a
    folder's table cannot be written. With the purpose APPLY, all that makes the ledger doubtful is
    an error too.
    """
    conf.check()
    with (
        sole_writer(conf.warehouse),
        warehouse_section(conf, report, stopped, on_step, purpose) as section,
    ):
        yield section


@contextmanager
def warehouse_section(
    conf: WriteConf,
    report: Callable[[str], None],
    stopped: Callable[[], str | None],
    on_step: Callable[[str], None],
    purpose: str,
) -> Iterator[ExclusiveSection]:
    """The same for a sole writer."""
    rows = RowAppender.from_conf(conf, report)
    with (
        rows.warehouse.lock(),
        open_cluster(conf) as (cluster_id, configs),
        open_leases(conf) as topic,
    ):
        is_made = rows.tables().is_made
        # A restore reads these, and must work on tables that an upgrade has not migrated yet.
        read = [table for table in _READ_TABLES if is_made(table.name)]
        rows.ensure([CONFIG_CHANGES, PLANS, *read])
        run_id, since = uuid.uuid4().hex, datetime.now(UTC)
        with _only(rows, cluster_id, run_id, since):
            # Only now, under the lock: an earlier reading could lack another run's records.
            records, items = journal.read_records(rows.tables()), topic.read()
            signer = _signer(conf, cluster_id, purpose, items)
            stored = DeltaJournal(rows, whoami())
            signed = open_journal(records, items, signer, cluster_id, topic, tables=stored)
            tables = rows.tables()
            trust = judge(journal.read_records(tables), signer, signed.book, cluster_id)
            apply = ChangeWriter(
                configs,
                signed,
                run_id,
                clock=partial(_record_time, trust.ledger.newest_at),
                stop_reason=partial(_stop_reason, conf, stopped, since),
                on_step=on_step,
                leased_elsewhere=leased_elsewhere(signed.book),
            )
            if purpose == APPLY:
                _report_refused(trust, signed.book, report)
                _check_new_writes(trust, signed.book, topic, datetime.now(UTC))
            if apply.finish(trust.ledger):
                tables = rows.tables()
                trust = judge(journal.read_records(tables), signer, signed.book, cluster_id)
            yield ExclusiveSection(cluster_id, apply, trust, rows, tables, signed)
        # The next plan must see what was written here.
        refresh(conf.warehouse, rows.open_session, datetime.now(UTC), report)


def _signer(conf: WriteConf, cluster_id: str, purpose: str, items: Sequence[Item]) -> Signer:
    """What signs the records. A restore makes no key: nothing new is leased."""
    if purpose == RESTORE:
        return deployment.signer(conf.feedback, conf.warehouse)
    return deployment.writing_signer(conf.feedback, conf.warehouse, cluster_id, items)


def _report_refused(trust: TrustedLedger, book: LeaseBook, report: Callable[[str], None]) -> None:
    for why in trust.problems:
        report(values.visible(f"refused: {why}"))
    if book.ignored:
        records = counted(book.ignored, "record")
        report(f"ignored: {records} in the topic of leases that no quotaflow wrote")


def _record_time(newest_at: datetime | None) -> datetime:
    return next_record_time(newest_at, datetime.now(UTC))


def _stop_reason(conf: WriteConf, stopped: Callable[[], str | None], since: datetime) -> str | None:
    return stopped() or stop_file.reason(conf.stop_file) or _stopped_by_lock(conf.warehouse, since)


@contextmanager
def without_tables(
    conf: WriteConf,
    signer: Signer,
    stop_reason: Callable[[], str | None] = lambda: None,
    on_step: Callable[[str], None] = lambda _: None,
) -> Iterator[LeaseSection]:
    """A section that needs the cluster alone: no lock, no tables, no disk.

    The leases keep its records, and the next section with tables stores them.
    """
    conf.check_permission()
    with open_cluster(conf) as (cluster_id, configs), open_leases(conf) as topic:
        if isinstance(topic, lease_topic.MissingTopic):
            raise lease_topic.missing(topic.command)
        signed = open_journal([], topic.read(), signer, cluster_id, topic)
        apply = ChangeWriter(
            configs,
            signed,
            run_id=uuid.uuid4().hex,
            clock=lambda: datetime.now(UTC),
            stop_reason=stop_reason,
            on_step=on_step,
        )
        apply.finish(signed.book.ledger)
        yield LeaseSection(apply, judge([], signer, signed.book, cluster_id))


def read_trust(conf: WriteConf, tables: Reader, cluster_id: str) -> TrustedLedger:
    """What of the tables and of the topic is believed now. Nothing is written."""
    signer = deployment.signer(conf.feedback, conf.warehouse)
    with open_leases(conf) as topic:
        book = read_book(topic.read(), signer, cluster_id)
    return judge(journal.read_records(tables), signer, book, cluster_id)


def leased_elsewhere(book: LeaseBook) -> dict[Key, str]:
    """The configs that another deployment has a lease of, and why we leave them alone."""
    return {
        key: f"deployment {other.deployment or 'without a name'} has a lease of it"
        + ("" if other.lease is not None else ", which no key of ours verifies")
        for key, other in book.others.items()
        if other.lease is None or not other.lease.is_over
    }


@contextmanager
def sole_writer(warehouse: WarehouseSection) -> Iterator[None]:
    """Be the only process that writes to the cluster from these tables, except for a catalog's.

    Raises LockedError. Giving back must work without the folder, so there a lock is no condition.
    """
    path = warehouse.state_folder / _LOCK
    try:
        file = None if warehouse.catalog_schema else path.open("a", encoding="utf-8")
    except OSError:
        file = None
    if file is None:
        yield
        return
    with file:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LockedError(
                f"another process writes configs from {path.parent}: wait for it, or restore by "
                "the cluster alone with quotaflow restore --panic"
            ) from None
        yield


def _check_new_writes(
    trust: TrustedLedger, book: LeaseBook, topic: LeaseTopic, now: datetime
) -> None:
    """Raise FeedbackError if the ledger is not sure enough to write anything new."""
    if isinstance(topic, lease_topic.MissingTopic):
        raise lease_topic.missing(topic.command)
    check_clock(trust.ledger, now)
    owned = [*trust.others.owned, *trust.unleased.owned, *trust.unstored]
    owned += [record.key for record in trust.others.open_records]
    if owned or book.problems:
        configs = counted(len(set(owned)), "config") if owned else "; ".join(book.problems)
        raise FeedbackError(
            f"it is not sure what is to be restored ({configs}), so nothing new is written: "
            "quotaflow adopt shows what it takes over, and --yes does it"
        )


def next_record_time(newest: datetime | None, now: datetime) -> datetime:
    """The time for a new record: after all earlier records, even if clocks differ a little.

    Views order records of several runs by their times. A newest record of a wrong clock is left
    out.
    """
    if newest is None or newest > now + _CLOCK_SLACK:
        return now
    return max(now, newest + timedelta(microseconds=1))


def _only(
    rows: RowAppender, cluster_id: str, run_id: str, since: datetime
) -> AbstractContextManager[None]:
    """The lock of a catalog; a folder has the warehouse's own."""
    if not rows.warehouse.conf.catalog_schema:
        return nullcontext()
    holder = f"{whoami()} {run_id}"
    return delta_lock.acquired(rows.open_session(), rows.warehouse, cluster_id, holder, since)


def _stopped_by_lock(warehouse: WarehouseSection, since: datetime) -> str | None:
    is_timed = warehouse.catalog_schema is not None
    return delta_lock.expiry_reason(since, datetime.now(UTC)) if is_timed else None


def check_clock(ledger: Ledger, now: datetime) -> None:
    """Raise FeedbackError if the clock went back since a lease began: it would never end.

    Only new writes are refused: restoring needs no clock.
    """
    times = [owned.since for owned in ledger.owned.values()]
    newest = max([*times, *(record.event_time for record in ledger.open_records)], default=now)
    if newest > now + _CLOCK_SLACK:
        raise FeedbackError(
            f"this machine's clock says {now:%Y-%m-%d %H:%M:%S} UTC, and the newest lease is of "
            f"{newest:%Y-%m-%d %H:%M:%S}: set the clock, or, if it was wrong then, restore all "
            "with quotaflow restore --all --yes"
        )


def whoami() -> str:
    """User and host of this process, for readers of the records."""
    return f"{user()}@{socket.gethostname()}"
