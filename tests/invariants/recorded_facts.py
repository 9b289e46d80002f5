"""Facts that the parser, the sessions and the decoder make of captured lines, without a JVM."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from quotaflow.pipelines import config
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs import fetch_lines, fetch_sessions
from quotaflow.udfs.engine.database import opened
from quotaflow.udfs.engine.rule import Files
from quotaflow.udfs.facts import task
from quotaflow.udfs.facts.requests import RequestLog
from quotaflow.udfs.fetch_lines import FETCH
from quotaflow.udfs.fetch_sessions import FOLLOWED, Limits
from quotaflow.udfs.otlp import decode

from ..record_batches import RECORD_TIME, record_batch
from ..rule_rows import Rows

_TABLES = ("requests", "telemetry_pushes", "telemetry_subscriptions", "quarantine")


def recorded_facts(lines: Path, folder: Path, conf: config.Conf) -> dict[str, Rows]:
    """Facts of all files of lines in folders of `lines`, by table.

    `folder` is for files that it needs on its way.
    """
    files = sorted(file for name in ("groups", "lines") for file in (lines / name).glob("*.jsonl"))
    values = [line for file in files for line in file.read_bytes().split(b"\n")]
    log = RequestLog("cluster", conf.ingest.line_options, conf.payloads.limits, None)
    output = list(task.to_rows(log)(iter([record_batch(values)])))
    tables = {name: unpacked(output, name) for name in _TABLES}
    tables["fetches"] = followed(tables["requests"], folder)
    points = decode.decode_pushes(conf.payloads.limits)(
        iter(tables["telemetry_pushes"].to_batches())
    )
    tables["client_metrics"] = pa.Table.from_batches(points, TABLES["client_metrics"].arrow)
    return {name: rows.to_pylist() for name, rows in tables.items()}


def unpacked(output: list[pa.RecordBatch], name: str) -> pa.Table:
    """Rows of one table in what a task of facts returns."""
    packed = [row for batch in output for row in batch.to_pylist() if row["table"] == name]
    streams = [row for row in packed if row["stream"]]
    batch = pa.RecordBatch.from_pylist(streams, schema=task.PACKED).select(["stream"])
    return pa.Table.from_batches(task.unpacked(iter([batch])), TABLES[name].arrow)


def followed(requests: pa.Table, folder: Path) -> pa.Table:
    """Fetches with what follows from their sessions, as a task follows them."""
    files = {}
    for name, rows in {"requests": requests, "fetch_sessions": None}.items():
        path, schema = folder / f"{name}.parquet", TABLES[name].arrow
        pq.write_table(rows or schema.empty_table(), path)
        files[name] = Files((str(path),), schema)
    limits = Limits(3_600_000_000, int(RECORD_TIME.timestamp() * 1e6))
    with opened(files) as database:
        lines = database.query(fetch_lines.query(0, 1), fetch_lines.ROWS)
        followed = pa.Table.from_batches(fetch_sessions.follow_sessions(limits)(lines), FOLLOWED)
    fetches = followed.filter(pa.compute.equal(followed["kind"], FETCH))
    return fetches.select(TABLES["fetches"].column_names).cast(TABLES["fetches"].arrow)
