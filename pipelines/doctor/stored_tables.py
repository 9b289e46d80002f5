"""Checks what is stored: warehouse, lock, tables against this version, leases."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path

from quotaflow.pipelines.areas.finding import client_text
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.doctor.finding import BAD, OK, WARNING, Finding, from_check, from_error
from quotaflow.pipelines.errors import NeverMadeError, QueryError, QuotaflowError
from quotaflow.pipelines.monitoring import health
from quotaflow.pipelines.terminal import texts
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.readers import open_reader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas import ddl
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.counted import counted

_LATE = timedelta(minutes=30)
_UNKNOWN_RACKS = """
SELECT DISTINCT principal, client_id, client_rack, nearest_racks FROM (
    SELECT principal, client_id, client_rack, nearest_racks FROM replica_advice
    WHERE advice = 'unknown_rack'
    UNION ALL
    SELECT principal, client_id, client_rack, nearest_racks FROM producer_racks
    WHERE nearest_racks IS NOT NULL
) ORDER BY principal, client_id, client_rack LIMIT 20
"""


def findings(conf: Conf, now: datetime) -> Iterator[Finding]:
    """Whether tables can be written and match this version, and which leases are over."""
    warehouse = Warehouse(conf.warehouse)
    if not warehouse.conf.catalog_schema:
        yield _writable(warehouse.conf.state_folder)
        holder = warehouse.holder()
        yield Finding("lock", OK, f"held by {holder}" if holder else "nobody writes now")
    try:
        yield from _of_tables(conf, open_reader(conf), now)
    except QuotaflowError as error:
        yield from_error("tables", error)


def _of_tables(conf: Conf, reader: Reader, now: datetime) -> Iterator[Finding]:
    made = [name for name in TABLES if reader.is_made(name)]
    place = conf.warehouse.catalog_schema or conf.warehouse.location
    if not made:
        remedy = "fill them with `quotaflow run --once`"
        yield Finding("tables", WARNING, f"none in {place}", remedy)
    elif conf.warehouse.catalog_schema:
        # To count their rows may take a SQL warehouse minutes.
        yield Finding("tables", OK, f"{counted(len(made), 'table')} in {place}")
    else:
        yield from_check("tables", lambda: _counted(reader, made))
    if made:
        yield _columns(reader, made)
        yield from _racks(reader)
    yield from _feedback(conf, reader, now)


def _writable(folder: Path) -> Finding:
    existing = health.existing_folder(folder)
    if existing.is_dir() and os.access(existing, os.W_OK | os.X_OK):
        return Finding("warehouse", OK, f"{folder} can be written")
    remedy = "make it writable, or name another with warehouse.path"
    return Finding("warehouse", BAD, f"{existing} cannot be written", remedy)


def _counted(reader: Reader, made: list[str]) -> str:
    rows = {name: extent.rows or 0 for name, extent in reader.extents(made).items()}
    return ", ".join(f"{name} {counted(n, 'row')}" for name, n in rows.items())


def _columns(reader: Reader, made: list[str]) -> Finding:
    """Columns of existing tables compared with those that this version declares."""
    outdated, wrong = list[str](), list[str]()
    with ThreadPoolExecutor(reader.threads, "types") as pool:
        live = dict(zip(made, pool.map(reader.types, made), strict=True))
    for name in made:
        try:
            if ddl.difference(TABLES[name], name, live[name]):
                outdated.append(name)
        except ddl.IncompatibleTableError as error:
            wrong.append(str(error).partition(":")[0])
    if wrong:
        remedy = "`quotaflow rebuild TABLE`, or use another warehouse"
        return Finding("columns", BAD, "; ".join(wrong), remedy)
    if outdated:
        seen = f"{', '.join(outdated)} of an older version: columns are missing"
        return Finding("columns", OK, seen, "the next `quotaflow run` adds them")
    return Finding("columns", OK, f"those of this version, in {counted(len(made), 'table')}")


def _racks(reader: Reader) -> Iterator[Finding]:
    """Clients of the last day that name a rack which no broker has."""
    try:
        rows = reader.rows(_UNKNOWN_RACKS)
    except (NeverMadeError, QueryError):
        # A table that lacks a column is a finding of its own.
        return
    if rows:
        named = "; ".join(
            f"{texts.listed(row['client_rack'])} of {client_text(row)}, "
            f"may be {texts.listed(row['nearest_racks'])}"
            for row in rows
        )
        remedy = "set client.rack of these clients to a broker.rack of the cluster"
        yield Finding("client racks", WARNING, f"no broker has rack {named}", remedy)


def _feedback(conf: Conf, tables: Reader, now: datetime) -> Iterator[Finding]:
    """Leases that are over and not restored, and the stop file."""
    from quotaflow.pipelines.feedback.ledger import journal  # noqa: PLC0415
    from quotaflow.pipelines.feedback.planning import restore_plan  # noqa: PLC0415
    from quotaflow.pipelines.feedback.writing import stop_file  # noqa: PLC0415

    file = stop_file.path(conf.plan, conf.warehouse)
    stopped = stop_file.reason(file)
    if not conf.feedback.may_write:
        yield Finding("writes", OK, "feedback.may_write is false: none is made from here")
    elif stopped is None:
        yield Finding("stop file", OK, f"{file} is not there")
    else:
        yield Finding("stop file", WARNING, stopped, "remove it to apply and restore again")
    ledger = journal.read_ledger(tables)
    over = restore_plan.expired(ledger, now - _LATE)
    seen = f"{counted(len(ledger.owned), 'config')} owned, {len(over)} overdue"
    if ledger.open_records:
        seen += f", {counted(len(ledger.open_records), 'change')} without a known end"
    is_well = not over and not ledger.open_records
    remedy = "" if is_well else "run `quotaflow restore --yes`, and on a schedule"
    yield Finding("leases", OK if is_well else WARNING, seen, remedy)
