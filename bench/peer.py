"""ClickHouse beside quotaflow: one file of lines into typed columns and Parquet, ten questions.

`python bench/peer.py [--lines N]`. ClickHouse is chdb, which pip installs for this run. It works
in a process of its own on one core. quotaflow fills all tables of facts.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from importlib.util import find_spec
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import load_lines
import results
from cpu import cpu_s

from quotaflow.pipelines import config
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse

LINES, PER_S = 300_000, 10_000
QUESTIONS = (
    "SELECT count(*) FROM requests",
    "SELECT api, count(*), avg(total_time_ms) FROM requests GROUP BY ALL",
    "SELECT principal, count(*) AS n FROM requests GROUP BY ALL ORDER BY n DESC LIMIT 10",
    "SELECT client_id, max(total_time_ms) AS ms FROM requests GROUP BY ALL ORDER BY ms LIMIT 10",
    "SELECT api, median(total_time_ms) FROM requests GROUP BY ALL",
    "SELECT date_trunc('minute', event_time), broker_id, count(*) FROM requests GROUP BY ALL",
    "SELECT count(DISTINCT client_id), count(DISTINCT principal) FROM requests",
    "SELECT client_software_name, count(DISTINCT client_id) FROM requests GROUP BY ALL",
    "SELECT client_id, sum(throttle_time_ms) FROM requests WHERE api = 'FETCH' GROUP BY ALL",
    "SELECT principal, sum({bytes}) FROM requests WHERE api IN ('FETCH', 'PRODUCE') GROUP BY ALL",
)
OF_DUCKDB, OF_CLICKHOUSE = "list_sum([p.bytes for p in partitions])", "bytes"
PARTITIONS = """Array(Tuple(topicId Nullable(String), name Nullable(String), partitions Array(
Tuple(partition Nullable(Int64), fetchOffset Nullable(Int64), partitionMaxBytes Nullable(Int64),
partitionIndex Nullable(Int64), highWatermark Nullable(Int64), lastStableOffset Nullable(Int64),
logStartOffset Nullable(Int64), preferredReadReplica Nullable(Int64), errorCode Nullable(Int64),
recordsSizeInBytes Nullable(Int64)))))"""
PRODUCED = """Array(Tuple(topicId Nullable(String), name Nullable(String), partitionData Array(
Tuple(index Nullable(Int64), recordsSizeInBytes Nullable(Int64)))))"""
LINE = f"""ts Int64, broker Int32, r Tuple(isForwarded Bool, requestHeader Tuple(
requestApiKey Int32, requestApiVersion Int32, correlationId Int64, clientId String,
requestApiKeyName String),
connection String, totalTimeMs Float64, requestQueueTimeMs Float64, localTimeMs Float64,
remoteTimeMs Float64, throttleTimeMs Float64, responseQueueTimeMs Float64, sendTimeMs Float64,
securityProtocol String, principal String, listener String,
clientInformation Tuple(softwareName String, softwareVersion String),
request Tuple(maxWaitMs Nullable(Int64), minBytes Nullable(Int64), maxBytes Nullable(Int64),
sessionId Nullable(Int64), sessionEpoch Nullable(Int64), rackId Nullable(String),
topics {PARTITIONS}, topicData {PRODUCED}),
response Tuple(throttleTimeMs Nullable(Int64), errorCode Nullable(Int64),
sessionId Nullable(Int64), responses {PARTITIONS}))"""
SETTINGS = """SET max_threads = 1, input_format_skip_unknown_fields = 1,
input_format_json_ignore_unknown_keys_in_named_tuple = 1, input_format_null_as_default = 1"""
VIEW = """CREATE VIEW requests AS SELECT r.requestHeader.requestApiKeyName AS api,
r.principal AS principal, r.requestHeader.clientId AS client_id, broker AS broker_id,
r.clientInformation.softwareName AS client_software_name, r.totalTimeMs AS total_time_ms,
r.throttleTimeMs AS throttle_time_ms, fromUnixTimestamp64Milli(ts, 'UTC') AS event_time,
arraySum(n -> ifNull(n, 0), arrayConcat(
    arrayFlatten(r.response.responses.partitions.recordsSizeInBytes),
    arrayFlatten(r.request.topicData.partitionData.recordsSizeInBytes))) AS bytes
FROM file('{parquet}', Parquet)"""
Answers = list[list[Any]]
Measured = Iterator[tuple[str, dict[str, float]]]


def timed(work: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    """What a call costs, and what it returns."""
    before_s, start = cpu_s(), time.perf_counter()
    made = work()
    return {"CPU s": cpu_s() - before_s, "s": time.perf_counter() - start}, made


def clickhouse(file: Path, installed: Path) -> tuple[dict[str, float], dict[str, float], Answers]:
    """What lines and questions cost in ClickHouse, and the answers. In a process of its own."""
    sys.path.append(str(installed))
    from chdb.session import Session  # type: ignore[import-not-found]  # noqa: PLC0415

    session, parquet = Session(), file.with_suffix(".clickhouse.parquet")
    session.query(SETTINGS)
    into = f"INSERT INTO FUNCTION file('{parquet}', Parquet) SELECT * FROM"
    read, _ = timed(lambda: session.query(f"{into} file('{file}', JSONEachRow, '{LINE}')"))
    session.query(VIEW.format(parquet=parquet))
    texts = [each.format(bytes=OF_CLICKHOUSE) for each in QUESTIONS]
    cost, answers = timed(lambda: [str(session.query(text, "TSV")).splitlines() for text in texts])
    return read, cost, answers


def measure(folder: Path, lines: int = LINES) -> Measured:
    """Cost of lines and of questions, ours and ClickHouse's where it can be installed."""
    file, warehouse, at = folder / "lines.jsonl", folder / "warehouse", datetime.now(UTC)
    made = load_lines.lines(results.CLIENTS, int(at.timestamp() * 1_000), PER_S)
    file.write_bytes(b"\n".join(islice(made, lines)))
    results.make(warehouse, at)
    with file.open("rb") as content:
        read, _ = timed(lambda: results.ingest(warehouse, (line.rstrip() for line in content)))
    reader = FolderReader(Warehouse(config.WarehouseSection(path=str(warehouse))))
    texts = [each.format(bytes=OF_DUCKDB) for each in QUESTIONS]
    cost, answers = timed(lambda: [reader.rows(text) for text in texts])
    yield "lines into tables", read | {"us a line": read["CPU s"] / lines * 1e6}
    yield "ten questions", cost
    if not find_spec("chdb"):
        into = ["--quiet", "--no-deps", "--target", str(folder / "chdb")]
        pip = [sys.executable, "-m", "pip", "install", *into, "chdb", "chdb-core"]
        if subprocess.run(pip, check=False).returncode:
            return
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        read, cost, theirs = pool.submit(clickhouse, file, folder / "chdb").result()
    if [len(each) for each in theirs] != [len(each) for each in answers]:
        raise SystemExit(f"other answers: {theirs}, {answers}")
    yield "lines into Parquet: ClickHouse", read | {"us a line": read["CPU s"] / lines * 1e6}
    yield "ten questions: ClickHouse", cost


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=LINES)
    with tempfile.TemporaryDirectory() as folder:
        for name, cost in measure(Path(folder), parser.parse_args().lines):
            print(name, {unit: round(value, 2) for unit, value in cost.items()})


if __name__ == "__main__":
    main()
