"""Runs jobs as `quotaflow run` does, over a recorded topic, in a process of a test's own.

Such a process is a script of a test, `python -m tests.pipelines.faults.NAME`: there it may change
how jobs fail. The topic is the folder `topic` beside the file of conf.
"""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from quotaflow.pipelines import config
from quotaflow.pipelines.compute.result import Result
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import JobError
from quotaflow.pipelines.jobs import registry, runner
from quotaflow.pipelines.jobs.offset_gaps import JobOffsetGaps
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.terminal import output
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from . import recorded

ROOT = Path(__file__).parents[3]
TIMEOUT_S = 600
_FEW = ("producer_id_rates", "traffic", "quota_usage")
# What tells when and in which start of a query a row was written is not compared.
_PROGRESS = "job, target, outcome, reason, sum(row_count) AS row_count"
_TOTALS = f"SELECT {_PROGRESS} FROM pipeline_progress GROUP BY job, target, outcome, reason"


def outcome(script: str, *arguments: object) -> tuple[int, str]:
    """How the script ended, in a process group of its own, and all it said."""
    with subprocess.Popen(
        [sys.executable, "-m", f"tests.pipelines.faults.{script}", *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=TIMEOUT_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, output


def conf_of(file: Path) -> Conf:
    """The conf in a file; from now on jobs of this process read the recorded topic beside it."""
    recorded.replace_topic(file.parent / "topic")
    runner._check_topics = lambda *_: recorded.CLUSTER
    runner._gaps = _no_gaps
    runner._spark_section = lambda conf, *_, **__: conf.spark
    return config.load(file)


def keep_few_results() -> None:
    """Let this process keep three of the results of requests, each of another kind.

    All of them are kept alike, and take minutes a batch where tests share a machine.
    """

    job = JOBS["request_results"]
    all_results = job.results
    assert all_results is not None

    def few(conf: Conf) -> tuple[Result, ...]:
        return tuple(result for result in all_results(conf) if result.table.name in _FEW)

    JOBS[job.name] = replace(
        registry.result_job(job.name, job.doc, few), fills=job.fills, looks_up=job.looks_up
    )


def error_of(conf: Conf, names: Collection[str]) -> str | None:
    """Run these jobs once; what a run says that fails."""
    try:
        runner.run(conf, list(names), None, output.note)
    except JobError as error:
        return str(error)
    return None


def contents(folder: Path, of_jobs: Collection[str]) -> dict[str, Counter[str]]:
    """All that jobs wrote to a warehouse, every column, as multisets; their counts as totals."""
    reader = FolderReader(Warehouse(config.WarehouseSection(path=str(folder))))
    names = sorted({table.name for job in of_jobs for table in JOBS[job].fills})
    queries = {name: f"SELECT * FROM {name}" for name in names} | {"pipeline_progress": _TOTALS}
    return {name: Counter(map(repr, reader.rows(sql))) for name, sql in queries.items()}


def _no_gaps(*_: object) -> list[JobOffsetGaps]:
    return []
