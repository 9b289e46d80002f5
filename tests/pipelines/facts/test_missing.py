"""A backfill adds the missing records of a topic, once, and leaves the rest to the live query."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from quotaflow.pipelines import config
from quotaflow.pipelines.facts import ingest
from quotaflow.pipelines.facts.backfill_batch import BackfillBatch, already_read
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ...pushes import pushing

FILLED = ("requests", "telemetry_pushes", "telemetry_subscriptions", "quarantine")


@pytest.mark.spark
@pytest.mark.faults
def test_only_what_is_not_there_is_added_and_a_second_run_adds_nothing(
    spark: SparkSession,
    tmp_path: Path,
    topic: Callable[..., DataFrame],
    golden: Path,
    push_lines: list[dict[str, Any]],
) -> None:
    warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path)))
    made = (*FILLED, "pipeline_progress")
    warehouse.ensure(lambda: spark, [TABLES[name] for name in made])
    files = [golden / "lines" / f"{api}.jsonl" for api in ("push_telemetry", "produce")]
    answers = golden / "lines" / "get_telemetry_subscriptions.jsonl"
    lines = [line for file in (*files, answers) for line in file.read_bytes().splitlines()[:4]]
    lines += [b"hello", pushing(push_lines[0], b"\xff\xff")]
    log, records = ingest.of_request_log(config.Conf(), "cluster"), topic(lines)

    def offsets() -> dict[str, list[int]]:
        stored = {name: warehouse.read(spark, name).select("source_offset") for name in FILLED}
        return {name: sorted(row[0] for row in rows.collect()) for name, rows in stored.items()}

    log.write(records, Batch(warehouse, "ingest", "q", 0))
    whole = offsets()
    for name in FILLED:
        spark.sql(f"DELETE FROM {warehouse.target(name)} WHERE source_offset % 2 = 0")
    assert offsets() != whole
    batch = BackfillBatch(warehouse, "backfill", "backfill", 1)
    log.write(already_read(records, {0: 100}), batch)
    assert offsets() == whole
    lacked = {name: sum(offset % 2 == 0 for offset in whole[name]) for name in FILLED}
    assert batch.added == lacked
    assert batch.present == {name: len(whole[name]) - lacked[name] for name in FILLED}

    again = BackfillBatch(warehouse, "backfill", "backfill", 2)
    log.write(already_read(records, {0: 100}), again)
    assert offsets() == whole
    assert set(again.added.values()) == {0}
    progress = warehouse.read(spark, "pipeline_progress").where("batch_id = 2")
    outcomes = {(row["outcome"], row["target"]): row["row_count"] for row in progress.collect()}
    assert outcomes == {("in", None): len(lines)} | {
        ("left_out", name): len(whole[name]) for name in FILLED
    }


@pytest.mark.spark
def test_what_the_live_query_has_not_read_is_its_own(topic: Callable[..., DataFrame]) -> None:
    records = topic([b"a", b"b", b"c"]).union(topic([b"d"], partition=1))
    rows = already_read(records, {0: 2}).collect()
    assert [(row["partition"], row["offset"]) for row in rows] == [(0, 0), (0, 1)]
