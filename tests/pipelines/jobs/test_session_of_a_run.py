"""Which JVM a run has: one that ends soon has one compiler, unless it has much to read."""

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.jobs import offset_gaps, runner
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.spark.session import ONE_COMPILER
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...cases import cases

(OPTIONS,) = ONE_COMPILER
OWN = {OPTIONS: "-XX:+UseParallelGC"}


@cases(
    ("is_once", "records", "own", "expected"),
    ("a scheduled run", True, 20_000, {}, ONE_COMPILER),
    ("a backlog", True, runner._FEW_RECORDS + 1, {}, {}),
    ("a run that goes on", False, 20_000, {}, {}),
    ("options of conf", True, 20_000, OWN, OWN),
)
def test_a_run_that_ends_soon_has_one_compiler(
    monkeypatch: pytest.MonkeyPatch,
    is_once: bool,
    records: int,
    own: dict[str, str],
    expected: dict[str, str],
) -> None:
    monkeypatch.setattr(offset_gaps, "unread", lambda *_: records)
    conf = config.Conf(spark=config.SparkSection(conf=own))
    jobs = [JOBS["ingest_request_log"]]
    section = runner._spark_section(conf, jobs, Warehouse(conf.warehouse), is_once=is_once)
    assert section.conf == expected
