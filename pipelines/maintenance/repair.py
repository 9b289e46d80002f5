"""`quotaflow upkeep --repair`: leaves lost files out of tables in a folder, and fills them again.

What cannot be read is set aside under another name. A commit without content takes the place of a
broken one, so that versions keep their numbers for the queries that read the table. An empty file
of the same size takes the place of a lost one, for a query that has not reached it.
"""

import json
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import ConfigError, JobError, QuotaflowError
from quotaflow.pipelines.jobs import backlog
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.maintenance.backfill import backfill, jobs
from quotaflow.pipelines.maintenance.rebuild import RebuildRequest, rebuild
from quotaflow.pipelines.results.answers.refresh import refresh
from quotaflow.pipelines.warehouse import damage, folder_tables
from quotaflow.pipelines.warehouse.damage import BrokenLog
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.place import Place
from quotaflow.pipelines.warehouse.time_ranges import TimeRange
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import RESULTS, TABLES
from quotaflow.udfs.counted import counted

Report = Callable[[str], None]
Times = tuple[datetime, datetime]
Actions = list[dict[str, Any]]
_ASIDE = ".broken"
_DAY_S, _HOUR_S = 24 * 3_600, 3_600
_MOST_DAYS = 90
_TASKS_S = 60
"""Tasks write the files of a commit so long before it, at most."""
_NOTHING: dict[str, Any] = {"commitInfo": {"operation": "REPAIR", "timestamp": 0}}


@dataclass(frozen=True, slots=True)
class Repaired:
    """What was lost of a table: the most rows it can be, and the times by which they come again.

    `unread_by` are the jobs that have read none of them, `partly_read_by` those that read some.
    """

    table: str
    files: int
    rows_lost: int | None
    times: Times | None
    unread_by: frozenset[str] = frozenset()
    partly_read_by: frozenset[str] = frozenset()


def repair(
    conf: Conf, names: Collection[str], report: Report, *, dry: bool = False
) -> list[Repaired]:
    """Leave what is lost out of the named tables, or of all, and fill them again.

    `dry` only reports what is lost. Raises JobError if a table was not repaired or filled again.
    """
    if conf.warehouse.catalog_schema or conf.warehouse.is_store:
        raise ConfigError("--repair is for tables in a folder: a store keeps copies of its files")
    warehouse = Warehouse(conf.warehouse)
    chosen = [name for name in TABLES if not names or name in names]
    done, failed = list[Repaired](), list[str]()
    with warehouse.lock():
        for each in (Repair(warehouse, name, report, dry=dry) for name in chosen):
            try:
                if warehouse.place.is_made(each.table) and (outcome := each.run()):
                    done.append(outcome)
            except QuotaflowError as error:
                report(f"{each.table}: {error}")
                failed.append(f"{each.table} is not repaired: see above")
    if done and not dry:
        commands = {lost.table: _unfilled(conf, lost, report) for lost in done}
        failed += [f"{name} is not filled again: {text}" for name, text in commands.items() if text]
        with warehouse.lock():
            refresh(conf.warehouse, _no_session, datetime.now(UTC), report)
    if failed:
        raise JobError("; ".join(failed))
    return done


@dataclass(frozen=True, slots=True)
class Repair:
    """Repairs the log and the files of one table."""

    warehouse: Warehouse
    table: str
    report: Report
    dry: bool = False

    def run(self) -> Repaired | None:
        """Leave out what cannot be read; None if all can be."""
        if self.table in damage.COMPUTED_WHOLE:
            return self._made_anew()
        parts = list(self._of_log())
        if not self.dry or not parts:
            parts += self._of_files()
        if not parts:
            return None
        counts = [part.rows_lost for part in parts]
        unread = frozenset.intersection(*(part.unread_by for part in parts))
        partly = frozenset().union(*(part.unread_by | part.partly_read_by for part in parts))
        whole = Repaired(
            self.table,
            sum(part.files for part in parts),
            None if None in counts else sum(each or 0 for each in counts),
            _around([part.times for part in parts if part.rows_lost != 0]),
            unread,
            partly - unread,
        )
        would_be = "would be " if self.dry else ""
        self.report(
            f"{self.table}: {counted(whole.files, 'file')} {would_be}left out, with "
            f"{damage.lost(whole.rows_lost, whole.times)}"
        )
        return whole

    @property
    def place(self) -> Place:
        """The folder of the tables."""
        return self.warehouse.place

    @property
    def folder(self) -> Path:
        """The folder of the table."""
        return Path(self.place.path(self.table))

    @property
    def time(self) -> str:
        """The column by which lost rows come again."""
        # Clocks of clients are as they like.
        return "record_time" if self.table == damage.CLIENT_METRICS else TABLES[self.table].time

    def _made_anew(self) -> Repaired | None:
        """Remove a table that is computed whole."""
        is_broken = damage.broken_log(self.place.root, self.table) or damage.broken_files(
            self.place.root, self.table, self.place.open(self.table)
        )
        if not is_broken:
            return None
        self.report(f"{self.table}: {'would be ' if self.dry else ''}computed again as a whole")
        if not self.dry:
            shutil.rmtree(self.folder)
        return Repaired(self.table, 1, None, None)

    def _of_log(self) -> Iterator[Repaired]:
        """Let the log be read again, one broken file of it after the other."""
        while broken := damage.broken_log(self.place.root, self.table):
            if self.dry:
                yield Repaired(self.table, 1, None, None)
                return
            if broken.is_checkpoint:
                self._without_checkpoint(broken)
                yield Repaired(self.table, 1, 0, None)
                continue
            left_out = self._without_commit(broken)
            rows, times = self._unnamed(broken)
            yield Repaired(self.table, len(left_out), rows, times, *self._unread(set(), left_out))

    def _without_checkpoint(self, broken: BrokenLog) -> None:
        """Let readers take the commits before it. Raises JobError if these are not there."""
        log = self.folder / damage.LOG
        if any(not _commit(log, version).exists() for version in range(broken.version + 1)):
            raise JobError(
                f"{broken.path} is {broken.state}, and the commits before it were cleaned: put it "
                f"back from a backup, or make the table again: mv {self.folder} "
                f"{self.folder}{_ASIDE}"
            )
        _set_aside(broken.path)
        (log / "_last_checkpoint").unlink(missing_ok=True)
        folder_tables.drop_checksum(self.place, self.table)

    def _without_commit(self, broken: BrokenLog) -> list[int]:
        """Put commits without content in the place of a broken one.

        Also of those after it if one of them removed files: these may be of the broken one.
        """
        log = self.folder / damage.LOG
        later = range(broken.version + 1, broken.newest + 1)
        texts = [_text(_commit(log, version)) for version in later]
        keeps = not any('"remove"' in text for text in texts)
        left_out = [broken.version] if keeps else [broken.version, *later]
        for version in left_out:
            path = _commit(log, version)
            # Checked before the broken one is moved: it fails if the table was never made.
            actions = self._first_actions(texts) if version == 0 else [_NOTHING]
            if path.exists():
                _set_aside(path)
            path.write_text("\n".join(map(json.dumps, actions)), encoding="utf-8")
        for stale in log.glob("*.crc"):
            if stale.stem.isdecimal() and int(stale.stem) >= broken.version:
                stale.unlink()
        return left_out

    def _first_actions(self, later: Collection[str]) -> Actions:
        """What the first commit of a table declares, with the id that the table has."""
        with tempfile.TemporaryDirectory() as scratch:
            folder_tables.create(Place(scratch), TABLES[self.table])
            log = Path(scratch, self.table, damage.LOG)
            declared = [
                each for path in sorted(log.glob("*.json")) for each in _actions(_text(path))
            ]
        named = [action for text in later for action in _actions(text)]
        (protocol,) = [action for action in declared if "protocol" in action][-1:]
        (metadata,) = [action for action in [*declared, *named] if "metaData" in action][-1:]
        return [_NOTHING, protocol, metadata]

    def _unnamed(self, broken: BrokenLog) -> tuple[int | None, Times | None]:
        """The rows of files of about that time that no commit names: those of the broken one."""
        log = self.folder / damage.LOG
        named = "".join(_text(path) for path in log.glob("*.json"))
        live = self.place.open(self.table)
        named += repr(live.file_uris())
        since = _changed(_commit(log, broken.version - 1)) if broken.version else 0.0
        rows, times = 0, list[Times | None]()
        for path in self.folder.rglob("*.parquet"):
            if path.is_relative_to(log) or path.name in named or _changed(path) < since - _TASKS_S:
                continue
            try:
                footer = pq.read_metadata(path)
            except (OSError, pa.ArrowException):
                return None, None
            rows += footer.num_rows
            bounds = list(_times(footer, self.time))
            times.append((min(bounds), max(bounds)) if bounds else None)
        return rows, _around(times)

    def _of_files(self) -> Iterator[Repaired]:
        """Remove lost data files from the log."""
        live = self.place.open(self.table)
        broken = damage.broken_files(self.place.root, self.table, live, self.time)
        if broken is None:
            return
        names = {Path(file.path).name for file, _ in broken.files}
        unread = self._unread(names, ())
        if not self.dry:
            for file, state in broken.files:
                if state != "missing":
                    _set_aside(Path(file.path))
            with folder_tables.as_job_error(self.table):
                folder_tables.drop_checksum(self.place, self.table)
                live.repair()
            for file, _ in broken.files:
                _put_empty(Path(file.path), file.size_bytes, TABLES[self.table].arrow)
        yield Repaired(self.table, len(broken.files), broken.rows, broken.times, *unread)

    def _unread(
        self, names: Collection[str], versions: Collection[int]
    ) -> tuple[frozenset[str], frozenset[str]]:
        """The jobs that have read none of these files or versions, and those that read some."""
        unread, partly = set[str](), set[str]()
        for each in backlog.backlogs(_no_session, self.warehouse, self.table):
            first = each.version if each.read is not None else 0
            late = [text for _, text in self.place.commits(self.table, first)]
            are_late = [version >= first for version in versions]
            are_late += [any(name in text for text in late) for name in names]
            if all(are_late):
                unread.add(each.job)
            elif any(are_late):
                partly.add(each.job)
        return frozenset(unread), frozenset(partly)


def _unfilled(conf: Conf, each: Repaired, report: Report) -> str | None:
    """Fill a table again as far as that can be done, and report what else is to do.

    Returns the commands that fill it if that failed: another repair has nothing to repair.
    """
    table = each.table
    if each.rows_lost == 0 or table in damage.COMPUTED_WHOLE:
        return None
    if table not in RESULTS.keys() | damage.FROM_TOPICS | {damage.CLIENT_METRICS}:
        snapshot = "the next quotaflow snapshot writes what the cluster has now"
        is_snapshot = "is_removed" in TABLES[table].column_names
        report(f"{table}: {snapshot if is_snapshot else 'only a backup has these rows'}")
        return None
    times = _times_to_fill(conf, each)
    try:
        if table in damage.FROM_TOPICS:
            _fill_from_topics(conf, each, times, report)
        else:
            rebuild(conf, RebuildRequest(table, times.start, times.end, _DAY_S), report)
    except QuotaflowError as error:
        report(f"{table}: {error}")
        return _commands(conf, table, times)
    return None


def _times_to_fill(conf: Conf, each: Repaired) -> TimeRange:
    """The times of lost rows, and as far around them as records come late."""
    now = datetime.now(UTC)
    days = timedelta(days=conf.upkeep.days(each.table) or _MOST_DAYS)
    first, last = each.times or (now - days, now)
    before = after = timedelta(seconds=conf.results.max_lateness_s)
    if each.table in RESULTS:
        before = timedelta(0)
    elif each.table in damage.FROM_TOPICS:
        after = max(after, _lag(conf, each.table))
    return TimeRange(first - before, min(last + after, now))


def _commands(conf: Conf, table: str, times: TimeRange) -> str:
    """What fills a table again by hand, to whole seconds."""
    until = (times.end or datetime.now(UTC)) + timedelta(seconds=1)
    ends = f"--from {times.start:%Y-%m-%dT%H:%M:%SZ} --until {until:%Y-%m-%dT%H:%M:%SZ}"
    if table not in damage.FROM_TOPICS:
        return f"quotaflow rebuild {table} {ends}"
    return " && ".join(f"quotaflow backfill {job} {ends}" for job in _fillers(conf, table))


def _fillers(conf: Conf, table: str) -> list[str]:
    return [job for job in jobs(conf) if TABLES[table] in JOBS[job].fills]


def _lag(conf: Conf, table: str) -> timedelta:
    """How long after their events the records of the rows that are left came, at most."""
    sql = f"SELECT max(epoch_us(record_time) - epoch_us(event_time)) AS lag_us FROM {table}"
    try:
        (row,) = FolderReader(Warehouse(conf.warehouse)).rows(sql)
    except QuotaflowError:
        return timedelta(days=1)
    return timedelta(days=1) if row["lag_us"] is None else timedelta(microseconds=row["lag_us"])


def _fill_from_topics(conf: Conf, each: Repaired, times: TimeRange, report: Report) -> None:
    """Read the records again; to queries that have read the lost rows they are no new rows."""
    # A row twice is worse than one that is missing, and said.
    some = any(JOBS[job].appends for job in each.partly_read_by)
    is_new = not some and any(JOBS[job].appends for job in each.unread_by)
    fillers = _fillers(conf, each.table)
    added = [backfill(conf, job, times, _HOUR_S, report, is_new=is_new) for job in fillers]
    came = sum(rows.get(each.table, 0) for rows in added)
    if each.rows_lost is not None and came < each.rows_lost:
        report(
            f"{each.table}: {came} of {counted(each.rows_lost, 'row')} came again; for records of "
            "another time: quotaflow backfill --from TIME"
        )
    for job in sorted(each.unread_by | each.partly_read_by) if not is_new else ():
        report(f"{job} has not read all of these rows: quotaflow rebuild each of its results")


def _commit(log: Path, version: int) -> Path:
    return log / f"{version:020d}.json"


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _actions(text: str) -> Actions:
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _changed(path: Path) -> float:
    return path.stat().st_mtime if path.exists() else 0.0


def _set_aside(path: Path) -> None:
    """Rename a file or a folder, and remove what Spark has about its content."""
    path.rename(path.with_name(path.name + _ASIDE))
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def _around(times: Collection[Times | None]) -> Times | None:
    """The first and the last of these times; None if one of them is not recorded."""
    recorded = [each for each in times if each]
    whole = recorded and len(recorded) == len(times)
    return (min(recorded)[0], max(each[1] for each in recorded)) if whole else None


def _times(footer: pq.FileMetaData, time: str) -> Iterator[datetime]:
    """The bounds of a column of times in a Parquet file, if its writer recorded them."""
    for group in map(footer.row_group, range(footer.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            bounds = column.statistics
            if column.path_in_schema == time and bounds is not None and bounds.has_min_max:
                yield from (each.replace(tzinfo=UTC) for each in (bounds.min, bounds.max))


def _put_empty(path: Path, size: int, schema: pa.Schema) -> None:
    """Write a Parquet file of this size without rows: readers take the size from the log."""
    sink = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), sink, store_schema=False)
    content = sink.getvalue().to_pybytes()
    path.write_bytes(content[:4] + bytes(max(size - len(content), 0)) + content[4:])


def _no_session() -> NoReturn:
    raise AssertionError("a folder needs no session")
