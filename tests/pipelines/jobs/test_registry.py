"""The registry of jobs has every result, and takes from each what it reads, fills and looks up."""

import pytest

from quotaflow.pipelines.compute.result import Result
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.jobs.job import Job
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.schemas.tables import catalog
from quotaflow.schemas.tables.declared import PIPELINE_PROGRESS

RESULTS = {name: job.results(Conf()) for name, job in JOBS.items() if job.results}


def test_every_result_is_in_one_job() -> None:
    listed = [result.rule.name for job in RESULTS.values() for result in job]
    assert sorted(listed) == sorted(catalog.RESULTS)


@pytest.mark.parametrize("name", RESULTS)
def test_a_job_of_results_reads_and_fills_and_looks_up_what_they_declare(name: str) -> None:
    job: Job = JOBS[name]
    declared: tuple[Result, ...] = RESULTS[name]
    assert {result.facts.name for result in declared} == {job.reads}
    assert {table.name for table in job.fills} == {
        PIPELINE_PROGRESS.name,
        *(result.table.name for result in declared),
    }
    assert {table.name for table in job.looks_up} == {
        lookup.table.name for result in declared for lookup in result.lookups
    }


def test_no_table_of_a_run_is_written_by_delta_rs_and_by_spark() -> None:
    """On a plain file system one of them could overwrite the other one's commit."""
    by_delta_rs = {result.table.name for job in RESULTS.values() for result in job}
    others = [job for name, job in JOBS.items() if name not in RESULTS]
    by_spark = {table.name for job in others for table in job.fills} - {PIPELINE_PROGRESS.name}
    assert by_delta_rs
    assert by_spark
    assert not by_delta_rs & by_spark
    assert PIPELINE_PROGRESS.name not in by_delta_rs
