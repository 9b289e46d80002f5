"""What answers, `why` and `report` cost over a catalog: statements, CPU seconds and seconds.

`python bench/catalog.py [--warehouse FOLDER] [--name NAME]`, after `make demo`: over its tables in
the catalog of a local Spark session. CPU seconds of this process and its JVM. The first refresh
computes all answers, the next one none. Each of `why` and `report` is asked twice, by a new reader.
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cpu import cpu_s
from rich.console import Console
from rich.table import Table

from quotaflow.pipelines import config
from quotaflow.pipelines.areas import clusters
from quotaflow.pipelines.areas.about import Period
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.areas.why import why
from quotaflow.pipelines.report.report import report
from quotaflow.pipelines.results.answers.refresh import refresh
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.warehouse.catalog_reader import CatalogReader
from quotaflow.pipelines.warehouse.spark_reader import SparkEngine
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import ANSWERS, EVENTS, TABLES

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

SCHEMA = "spark_catalog.bench"
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)


@dataclass(frozen=True)
class Counted:
    """An engine that counts its statements."""

    engine: SparkEngine
    statements: list[str]

    def run(self, statement: str) -> "pa.Table":
        """All rows of a statement."""
        self.statements.append(statement)
        return self.engine.run(statement)

    def stop(self) -> None:
        """End statements that other threads run."""
        self.engine.stop()


def prepare(demo: Path, folder: Path, spark: "SparkSession") -> None:
    """The demo's tables in a schema, without answers."""
    spark.sql(f"CREATE SCHEMA {SCHEMA} LOCATION '{folder / 'schema'}'")
    for name in TABLES.keys() - ANSWERS.keys() - {"answer_state"}:
        if (demo / name / "_delta_log").is_dir():
            shutil.copytree(demo / name, folder / name)
            spark.sql(f"CREATE TABLE {SCHEMA}.{name} USING DELTA LOCATION '{folder / name}'")


def add_minute(spark: "SparkSession") -> None:
    """The last minute of facts and results once more, a minute later."""
    from pyspark.sql import functions as F  # noqa: PLC0415  after the session's own check

    for name in sorted(EVENTS):
        target, at = f"{SCHEMA}.{name}", F.col(TABLES[name].time)
        if not spark.catalog.tableExists(target):
            continue
        rows = spark.read.table(target)
        newest = rows.agg(F.max(at)).collect()[0][0]
        if newest is None:
            continue
        later = rows.where(at >= newest - MINUTE).withColumn(TABLES[name].time, at + MINUTE)
        if "event_date" in rows.columns:
            later = later.withColumn("event_date", F.to_date(TABLES[name].time))
        later.write.format("delta").mode("append").saveAsTable(target)


def measured(work: str, ask: Callable[[CatalogReader], object], reader: CatalogReader) -> list[str]:
    """A row of the table: what was done, and what it cost."""
    before_s, start = cpu_s(), time.perf_counter()
    done = ask(reader)
    wall_s = time.perf_counter() - start
    assert isinstance(reader.engine, Counted)
    number = len(done) if isinstance(done, list) else len(reader.engine.statements)
    return [work, str(number), f"{cpu_s() - before_s:.1f}", f"{wall_s:.1f}"]


def main() -> None:
    """Print a table of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--warehouse", type=Path, default=config.home() / "warehouse")
    parser.add_argument("--name", default="dave")
    chosen = parser.parse_args()
    table = Table("work", "answers or statements", "CPU s", "wall s")
    with tempfile.TemporaryDirectory() as name:
        conf = config.Conf(
            warehouse=config.WarehouseSection(catalog_schema=SCHEMA, checkpoints=f"{name}/c")
        )
        spark, warehouse = session.get(session.short_lived(conf.spark)), Warehouse(conf.warehouse)
        prepare(chosen.warehouse, Path(name), spark)

        def reader() -> CatalogReader:
            engine = SparkEngine(lambda: spark, conf.warehouse.query_timeout_s)
            return CatalogReader(warehouse, Counted(engine, []))

        def answers(_: CatalogReader) -> list[str]:
            return refresh(conf.warehouse, lambda: spark, datetime.now(UTC), print)

        def page(tables: CatalogReader) -> str:
            now = datetime.now(UTC)
            cluster, until = clusters.newest_event(tables, None, None, now)
            return report(Scope(tables, cluster, until - DAY, until, now, conf))

        about = partial(why, name=chosen.name, conf=conf, cluster_id=None)
        five = Period(None, timedelta(minutes=5))
        works: dict[str, Callable[[CatalogReader], object]] = {
            "answers": answers,
            "why": lambda tables: about(tables, period=five),
            "report": page,
        }
        for work, ask in works.items():
            table.add_row(*measured(f"{work}, first", ask, reader()))
            table.add_row(*measured(f"{work}, again", ask, reader()))
            if ask is answers:
                add_minute(spark)
                table.add_row(*measured("answers after one more minute", ask, reader()))
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
