"""How `quota_usage` grows with the number of clients, and how much the roll-up saves.

`python bench/rollup.py [--json] [--clients N]...`: an hour of windows of so many clients, ten to a
user, each with two kinds of quota at one broker. They are written as jobs write them, then rolled
up to minutes and to hours, by DuckDB and delta-rs without a JVM. Rows and bytes of the newest
version, CPU seconds of this process, and its peak memory so far.
"""

import argparse
import json
import resource
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import duckdb
import pyarrow as pa
from cpu import cpu_s
from deltalake import DeltaTable
from rich.console import Console
from rich.table import Table

from quotaflow.pipelines import config
from quotaflow.pipelines.maintenance.roll_up import RollUp
from quotaflow.pipelines.warehouse import delta_files, row_writer
from quotaflow.pipelines.warehouse.warehouse import OpenSession, Warehouse
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.control import PIPELINE_PROGRESS

CLIENTS = (100, 1_000, 10_000)
PER_USER = 10
START = datetime(2025, 11, 1, 10, tzinfo=UTC)
WINDOWS = 327
AT_ONCE = 28
"""Windows that one batch brings: about five minutes."""
DAY = timedelta(days=1)
NO_SPARK = cast("OpenSession", None)

# In nine of ten windows a client does something: about as much as ever, seldom ten times as much.
_ROWS = """
WITH drawn AS (
    SELECT
        client, kind, first_s + window_number * 11 AS start_s,
        hash(client, kind, window_number) / 18446744073709551616.0 AS chance,
        hash(window_number, client, kind) / 18446744073709551616.0 AS busy
    FROM range($clients) AS c(client), range(2) AS k(kind), range($low, $high) AS w(window_number),
        (SELECT CAST(ceil($start_s / 11) * 11 AS BIGINT) AS first_s)
)
SELECT
    'cluster' AS cluster_id, CAST(make_timestamp(start_s * 1000000) AS DATE) AS event_date,
    make_timestamp(start_s * 1000000) AS event_time, 1 AS broker_id,
    'User:user-' || client // $per_user AS principal, 'client-' || client AS client_id,
    if(kind = 0, 'producer_byte_rate', 'request_percentage') AS quota_type,
    amount / per AS usage, kind = 1 AS is_estimated, 10 AS request_count, 0 AS throttled_requests,
    0 AS throttle_time_ms, false AS is_quota_changed, 'user-' || client // $per_user
        AS quota_bucket_user, 'client-' || client AS quota_bucket_client_id,
    amount / per AS quota_bucket_usage, false AS is_over, 'stock' AS enforcement, amount,
    11 AS period_s, 1 AS windows, amount / per AS peak_usage
FROM (
    SELECT
        *, if(kind = 0, 11, 110000) AS per, CAST(
            (1 + client % 97) * 10000 * exp(2 * chance) * if(chance > 0.99, 10, 1) AS BIGINT
        ) AS amount
    FROM drawn
    WHERE busy < 0.9
)
"""


def batches(clients: int) -> Iterator[pa.Table]:
    """The windows of an hour as batches of a job bring them."""
    for low in range(0, WINDOWS, AT_ONCE):
        values = {
            "clients": clients,
            "low": low,
            "high": min(low + AT_ONCE, WINDOWS),
            "start_s": START.timestamp(),
            "per_user": PER_USER,
        }
        rows = duckdb.sql(_ROWS, params=values).to_arrow_table()
        for name in TABLES["quota_usage"].column_names:
            if name not in rows.column_names:
                rows = rows.append_column(name, pa.nulls(rows.num_rows))
        yield rows.select(TABLES["quota_usage"].column_names).cast(TABLES["quota_usage"].arrow)


def size(folder: Path) -> dict[str, float]:
    """Rows and bytes of the newest version."""
    live = DeltaTable(folder)
    files = delta_files.of_version(live, folder, "event_time")
    return {
        "rows": sum(file.rows or 0 for file in files),
        "bytes": sum(Path(file.path).stat().st_size for file in files),
        "files": len(files),
    }


def measured(clients: int) -> dict[str, dict[str, float]]:
    """An hour of so many clients: as windows, as minutes and as hours."""
    with tempfile.TemporaryDirectory() as folder:
        conf = config.load(overrides=[f"warehouse.path={folder}"])
        warehouse = Warehouse(conf.warehouse)
        warehouse.ensure(NO_SPARK, [TABLES["quota_usage"], PIPELINE_PROGRESS])
        for rows in batches(clients):
            row_writer.append(NO_SPARK, warehouse, TABLES["quota_usage"], rows)
        sizes = {"windows": size(warehouse.folder("quota_usage"))}
        rolling = RollUp(NO_SPARK, conf, warehouse, lambda _: None)
        for name, days in (("minutes", 2), ("hours", 8)):
            # Days are counted from the newest window.
            newest = rows.slice(0, 1).to_pylist()[0] | {"event_time": START + days * DAY}
            newest |= {"event_date": newest["event_time"].date()}
            last = pa.Table.from_pylist([newest], schema=TABLES["quota_usage"].arrow)
            row_writer.append(NO_SPARK, warehouse, TABLES["quota_usage"], last)
            before = cpu_s()
            rolling.run(rolling.due(datetime.now(UTC)))
            spent = {"cpu_s": cpu_s() - before, "peak_mb": _peak_mb()}
            sizes[name] = size(warehouse.folder("quota_usage")) | spent
        return sizes


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024


def main() -> None:
    """Print rows, bytes and costs by number of clients."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--clients", type=int, action="append")
    arguments = parser.parse_args()
    figures = {clients: measured(clients) for clients in arguments.clients or CLIENTS}
    if arguments.json:
        print(json.dumps(figures))
        return
    shown = Table("clients", "an hour as", "rows", "bytes", "files", "CPU s", "peak MB")
    for clients, sizes in figures.items():
        for name, row in sizes.items():
            costs = [f"{row[key]:.1f}" if key in row else "" for key in ("cpu_s", "peak_mb")]
            counts = [f"{row[key]:,.0f}" for key in ("rows", "bytes", "files")]
            shown.add_row(f"{clients:,}", name, *counts, *costs)
    Console().print(shown)


if __name__ == "__main__":
    main()
