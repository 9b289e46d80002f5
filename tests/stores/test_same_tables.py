"""The jobs over captured lines: an object store gets the tables that a folder gets."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from quotaflow.pipelines import config
from quotaflow.pipelines.config import Conf, WarehouseSection
from quotaflow.pipelines.facts import ingest
from quotaflow.pipelines.jobs import runner
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.maintenance.rebuild import RebuildRequest, rebuild
from quotaflow.pipelines.maintenance.upkeep import run_upkeep
from quotaflow.pipelines.monitoring import health
from quotaflow.pipelines.quality.check import CheckRequest, check
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse import spark_reader
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from .object_server import ObjectServer

# The first run builds a server.
pytestmark = [pytest.mark.faults, pytest.mark.spark, pytest.mark.timeout(3_600)]

RECORDS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>"
)
READING = [name for name, job in JOBS.items() if job.topic is None and not job.off_by(Conf())]
RUNS = ("query_progress", "quality_results", "answer_state")
"""Tables about runs, whose rows differ from one run to the next."""
COLUMNS = {"pipeline_progress": "job, target, outcome, reason, row_count"}


def frames(spark: SparkSession, golden: Path) -> Iterator[DataFrame]:
    """Captured lines as two batches of records, written an hour before now."""
    files = sorted((golden / "lines").glob("*.jsonl"))
    lines = [line for file in files for line in file.read_bytes().splitlines()]
    at = datetime.now(UTC) - timedelta(hours=1)
    headers = [("broker_id", b"7")]
    rows = [(None, line, "logs", 0, number, at, headers) for number, line in enumerate(lines)]
    half = len(rows) // 2
    for part in (rows[:half], rows[half:]):
        yield spark.createDataFrame(part, RECORDS)


def conf_of(section: WarehouseSection) -> Conf:
    return Conf.model_validate(
        config.Conf().model_dump(exclude={"warehouse", "kafka"})
        | {"warehouse": section.model_dump(), "kafka": {"cluster_id": "cluster"}}
    )


def filled(spark: SparkSession, conf: Conf, records: list[DataFrame]) -> Warehouse:
    """Tables after two ingest batches, each followed by all jobs that read tables."""
    warehouse = Warehouse(conf.warehouse)
    with warehouse.lock():
        warehouse.ensure(lambda: spark, TABLES.values())
    log = ingest.of_request_log(conf, "cluster")
    for number, batch in enumerate(records):
        log.write(batch, Batch(warehouse, "ingest", "q1", number))
        # A replay of a batch that was written adds nothing.
        log.write(batch, Batch(warehouse, "ingest", "q1", number, replayed=True))
        runner.run(conf, READING, None, silent)
    return warehouse


def content(warehouse: Warehouse, name: str) -> list[str]:
    rows = FolderReader(warehouse).rows(f"SELECT {COLUMNS.get(name, '*')} FROM {name}")
    return sorted(map(repr, rows))


@pytest.fixture(scope="module")
def both(
    spark: SparkSession,
    golden: Path,
    s3: ObjectServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Conf, Conf]:
    """Conf of the same tables in a folder and in a store."""
    folder = tmp_path_factory.mktemp("tables")
    local = conf_of(WarehouseSection(path=str(folder / "warehouse")))
    remote = conf_of(s3.section("same", folder / "checkpoints"))
    records = list(frames(spark, golden))
    for conf in (local, remote):
        filled(spark, conf, records)
    return local, remote


def test_every_table_has_the_same_rows(both: tuple[Conf, Conf]) -> None:
    local, remote = (Warehouse(conf.warehouse) for conf in both)
    compared = [name for name in TABLES if name not in RUNS]
    assert [name for name in compared if content(local, name) != content(remote, name)] == []
    made = {name for name in TABLES if content(remote, name)}
    assert {"requests", "fetches", "client_metrics", "quota_usage", "producer_id_rates"} <= made


def test_health_and_sql_are_the_same(both: tuple[Conf, Conf]) -> None:
    seen = [health.read(conf, datetime.now(UTC)) for conf in both]
    behind = [{job.job: job.behind_s for job in report.jobs} for report in seen]
    assert behind[0] == behind[1]
    sql = "SELECT api, count(*) AS n FROM requests GROUP BY api ORDER BY api"
    answers: list[Any] = [FolderReader(Warehouse(conf.warehouse)).rows(sql) for conf in both]
    answers.append(spark_reader.query(both[1], sql, None).read_all().to_pylist())
    assert answers[0] == answers[1] == answers[2]


def test_upkeep_and_check_leave_the_rows(both: tuple[Conf, Conf]) -> None:
    _, remote = both
    warehouse, now = Warehouse(remote.warehouse), datetime.now(UTC)
    before = {name: content(warehouse, name) for name in ("requests", "traffic")}
    for outcome in run_upkeep(kept_forever(remote), list(before), now, silent):
        assert (outcome.note, outcome.rows_removed) == (None, 0)
    assert warehouse.place.open("requests").get_add_actions(flatten=True).num_rows == 1
    assert check(remote, CheckRequest(["requests"]), now, silent).rows
    assert {name: content(warehouse, name) for name in before} == before


def test_rebuilt_tables_are_the_same(both: tuple[Conf, Conf]) -> None:
    since = datetime(2020, 1, 1, tzinfo=UTC)
    for table in ("traffic", "client_metrics"):
        for conf in both:
            rebuild(conf, RebuildRequest(table, since, None, 10**9), silent)
        rows = [content(Warehouse(conf.warehouse), table) for conf in both]
        assert rows[0] == rows[1] != []


def test_old_rows_are_removed_and_delta_rs_made_every_commit(both: tuple[Conf, Conf]) -> None:
    _, remote = both
    warehouse, name = Warehouse(remote.warehouse), "telemetry_subscriptions"
    far = datetime.now(UTC) + timedelta(days=4_000)
    (outcome,) = run_upkeep(remote, [name], far, silent)
    assert outcome.rows_removed > 0
    assert content(warehouse, name) == []
    engines = {each.get("engineInfo", "") for each in warehouse.place.open(name).history()}
    assert all(engine.startswith("delta-rs") for engine in engines), engines


def kept_forever(conf: Conf) -> Conf:
    """Conf by which upkeep removes no rows: captured lines are old."""
    days: dict[str, int | None] = dict.fromkeys(TABLES)
    upkeep = conf.upkeep.model_copy(update={"retention_days": days})
    return conf.model_copy(update={"upkeep": upkeep})


def silent(_: str) -> None:
    """A report that nobody reads."""
