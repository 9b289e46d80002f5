"""A year of rows and of each week's work, in minutes: what it leaves stays bounded.

Each week upkeep runs, answers are computed, leases begin and end, and events are sent. At a drawn
week the tables of an older release are upgraded. The simulated clock is that of the rows and of
this work. Files are made older by the time that passes, so that what the age of a file decides is
decided as in a year. A year of Spark's batches takes hours: a test of its own shows that Spark's
number of batches bounds the files of a checkpoint. `-s` prints figures by quarter.
"""

import os
import random
import resource
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from quotaflow.pipelines.config import Conf, UpkeepSection
from quotaflow.pipelines.config.alerts import AlertsSection
from quotaflow.pipelines.config.receivers import Receiver
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.feedback.ledger import journal
from quotaflow.pipelines.feedback.ledger.ledger import DONE, Record
from quotaflow.pipelines.feedback.writing.exclusive_section import DeltaJournal, RowAppender
from quotaflow.pipelines.maintenance.upkeep import run_upkeep
from quotaflow.pipelines.monitoring import notifier, senders, sent_log
from quotaflow.pipelines.results.answers.refresh import refresh
from quotaflow.pipelines.streaming import sinks
from quotaflow.pipelines.warehouse import row_writer
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.row_writer import AppId
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas import migrations
from quotaflow.schemas.migrations import SCHEMA_VERSION, Step
from quotaflow.schemas.tables.catalog import TABLES

from ...rows import Row, request, row
from ..feedback.fake_configs import Clock, ListJournal
from ..feedback.lease_site import Site
from . import recorded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.faults, pytest.mark.timeout(3_600)]

WEEKS, DAYS, ROWS = 52, 7, 50
KEPT_DAYS = {
    "requests": 30,
    "traffic": 90,
    "quota_usage": 90,
    "pipeline_progress": 90,
    "metric_alert_events": 60,
    "config_changes": 60,
}
FILLED = tuple(name for name in KEPT_DAYS if name != "config_changes")
QUARTER = 13
_GIVEN: dict[str, Row] = {
    "quota_usage": {
        "usage": 1.0,
        "broker_id": 2,
        "quota_type": "producer_byte_rate",
        "enforcement": "stock",
    },
}
_WEEK = timedelta(days=7)
_BATCHES_KEPT = "spark.sql.streaming.minBatchesToRetain"
_OLD_NAME, _NEW_NAME, _ADDED = "rack_kind", "rack_source", "cross_rack_bytes"
NEW = TABLES["traffic"]
OLD = replace(
    NEW,
    columns=tuple(
        replace(column, name=_OLD_NAME) if column.name == _NEW_NAME else column
        for column in NEW.columns
        if column.name != _ADDED
    ),
)
"""A table as an older release made it: a column has another name, and one is missing."""


@dataclass(frozen=True, slots=True)
class Size:
    """What a warehouse has on disk, and the most memory that the process had."""

    rows: int
    data_files: int
    log_files: int
    megabytes: float
    memory_mb: int
    sent_events: int
    lease_records: int


@dataclass
class StoredJournal(ListJournal):
    """The records of a run, which are rows of `config_changes` too."""

    table: DeltaJournal = field(kw_only=True)

    def add(self, records: Sequence[Record]) -> None:
        super().add(records)
        self.table.add(records)


def no_session() -> NoReturn:
    raise AssertionError("a folder needs no session")


def size(warehouse: Warehouse, events: int, leases: int) -> Size:
    """The size of all tables and of all state."""
    folder = warehouse.conf.folder
    files = [path for path in folder.rglob("*") if path.is_file()]
    in_log = [path for path in files if "_delta_log" in path.parts]
    data = [path for path in files if path.suffix == ".parquet" and path not in set(in_log)]
    return Size(
        sum(DeltaTable(folder / name).count() for name in KEPT_DAYS),
        len(data),
        len(in_log),
        round(sum(path.stat().st_size for path in files) / 1e6, 1),
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        events,
        leases,
    )


def made_older(folder: Path, by: timedelta) -> None:
    """Let all files be so much older."""
    for path in folder.rglob("*"):
        if path.is_file():
            changed = path.stat().st_mtime - by.total_seconds()
            os.utime(path, (changed, changed))


def filled(warehouse: Warehouse, day: datetime, number: int) -> None:
    """Append a batch of a day to each table."""
    start = day - datetime(2026, 11, 21, 12, tzinfo=UTC)
    given = _GIVEN | {
        "pipeline_progress": {"job": "year", "query_id": "q", "batch_id": number},
        "metric_alert_events": {"state": "opened", "first_breach": day, "attributes": {}},
    }
    others = {_OLD_NAME: "conf", _NEW_NAME: "conf"}
    for name in FILLED:
        seconds = [start.total_seconds() + 60 * n for n in range(ROWS)]
        made = [
            request(each, "PRODUCE", record_time=day)
            if name == "requests"
            else row(name, each, given.get(name, {})) | others | {"alert_id": f"{number} {each}"}
            for each in seconds
        ]
        content = pa.Table.from_pylist(made, schema=TABLES[name].arrow)
        app = AppId("year", number, f"year {number}")
        row_writer.append(no_session, warehouse, TABLES[name], content, app)


def forget_removed(warehouse: Warehouse) -> None:
    """Name no removed file in a log: else it is there for a week of the true clock."""
    for name in filter(warehouse.place.is_made, TABLES):
        warehouse.set_property(
            no_session, name, "delta.deletedFileRetentionDuration", "interval 0 seconds"
        )


def leased(site: Site, table: DeltaJournal, day: datetime) -> int:
    """Let leases begin and end; returns how many records the compacted topic has."""
    site.clock.now = day
    site.tables = StoredJournal(journal.read_records(table.rows.tables()), table=table)
    assert set(site.apply(2)) == {DONE}
    site.clock.now += timedelta(hours=1)
    assert len(site.restore(everything=False)) == 2
    assert site.trust().problems == ()
    latest = dict(site.topic.items)
    site.topic.items = [(key, value) for key, value in latest.items() if value is not None]
    return len(site.topic.items)


def notified(conf: Conf, day: datetime) -> int:
    """Send what is to be sent; returns how many events the log remembers."""
    (delivery,) = notifier.deliver(conf, day)
    assert delivery.sent
    assert delivery.pending == 0
    log = sent_log.open_log(conf)
    return len(log.times) + len(log.openings)


def upgraded(conf: Conf, day: datetime) -> None:
    """Bring the tables of an older release up to date: all rows of it keep their values."""
    migrations.STEPS = (Step(SCHEMA_VERSION + 1, OLD.name, renames=((_OLD_NAME, _NEW_NAME),)),)
    migrations.SCHEMA_VERSION = SCHEMA_VERSION + 1
    TABLES[OLD.name] = NEW
    counted = f"SELECT count(*) AS n, count({_NEW_NAME}) AS named FROM {OLD.name}"
    with pytest.raises(ConfigError, match="`quotaflow upkeep`"):
        FolderReader(Warehouse(conf.warehouse)).rows(counted)
    run_upkeep(conf, [], day, lambda _: None)
    (counts,) = FolderReader(Warehouse(conf.warehouse)).rows(counted)
    assert counts["n"] == counts["named"] > 0


def a_year(conf: Conf, weeks: int, upgrade: int) -> list[Size]:
    """The sizes after each quarter; the release is newer from the week `upgrade` on."""
    warehouse = Warehouse(conf.warehouse)
    day, sizes = datetime.now(UTC) - weeks * _WEEK, list[Size]()
    site = Site(clock=Clock(day))
    table = DeltaJournal(RowAppender(no_session, warehouse), "year")
    for week in range(weeks):
        if week == upgrade:
            upgraded(conf, day)
        for number in range(DAYS):
            filled(warehouse, day, DAYS * week + number)
            day += timedelta(days=1)
        made_older(warehouse.conf.folder, _WEEK)
        run_upkeep(conf, [], day, lambda _: None)
        leases = leased(site, table, day)
        refresh(conf.warehouse, no_session, day, pytest.fail)
        events = notified(conf, day)
        if week == 0:
            forget_removed(warehouse)
        if week % QUARTER == QUARTER - 1:
            sizes.append(size(warehouse, events, leases))
            sys.stdout.write(f"{week + 1} weeks: {sizes[-1]}\n")
    return sizes


@pytest.mark.usefixtures("spark")
def test_a_year_leaves_what_a_quarter_leaves(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgrade = random.randrange(1, WEEKS)
    sys.stdout.write(f"the upgrade is before week {upgrade + 1}\n")
    monkeypatch.setitem(TABLES, OLD.name, OLD)
    monkeypatch.setattr(migrations, "STEPS", ())
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", SCHEMA_VERSION)
    monkeypatch.setattr(senders, "sender", lambda *_: lambda _: None)
    warehouse.ensure(no_session, [TABLES[name] for name in KEPT_DAYS])
    conf = Conf(
        warehouse=warehouse.conf,
        upkeep=UpkeepSection(retention_days=KEPT_DAYS).model_copy(update={"vacuum_after_h": 0}),
        alerts=AlertsSection(receivers=[Receiver(name="hook", url="env:HOOK")]),
    )
    second, *later = a_year(conf, WEEKS, upgrade)[1:]
    for each in later:
        bound = {name: 1.2 * value for name, value in asdict(second).items()}
        assert {n: v for n, v in asdict(each).items() if v > bound[n]} == {}


@pytest.mark.spark
def test_batches_bound_the_files_of_a_checkpoint(
    spark: "SparkSession", warehouse: Warehouse, tmp_path: Path
) -> None:
    batches, kept, sizes = 12, 5, []
    spark.conf.set(_BATCHES_KEPT, kept)
    for _ in range(3):
        recorded.write(tmp_path / "topic", [[(n, b"x")] for n in range(batches)])
        frame = recorded.read(spark, tmp_path / "topic")
        query = sinks.start(frame, "year", warehouse, lambda *_: None, sinks.ONCE)
        query.awaitTermination()
        written = warehouse.checkpoint("year").glob("[co]*s/*")
        sizes.append(sum(path.name.isdigit() for path in written))
    spark.conf.unset(_BATCHES_KEPT)
    assert sizes == [2 * (kept + 1)] * 3, "files of offsets and of commits"
