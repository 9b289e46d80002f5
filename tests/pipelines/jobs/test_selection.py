"""In which order jobs run once: each after those that fill what it reads."""

from graphlib import TopologicalSorter

import hypothesis.strategies as st
from hypothesis import given

from quotaflow.pipelines.jobs import selection
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.schemas.tables.declared import PIPELINE_PROGRESS


@given(st.sets(st.sampled_from(sorted(JOBS))))
def test_a_job_begins_when_all_are_done_that_fill_what_it_reads(names: set[str]) -> None:
    chosen = [job for job in JOBS.values() if job.name in names]
    order = TopologicalSorter(selection.dependencies(chosen))
    order.prepare()
    done = set[str]()
    while order.is_active():
        ready = order.get_ready()
        for name in ready:
            read = {JOBS[name].reads, *(table.name for table in JOBS[name].looks_up)}
            fillers = {
                job.name
                for job in chosen
                if read & {table.name for table in job.fills} and job.name != name
            }
            assert fillers <= done
        done.update(ready)
        order.done(*ready)
    assert done == names


def test_jobs_that_do_not_depend_on_each_other_run_at_the_same_time() -> None:
    order = TopologicalSorter(selection.dependencies(list(JOBS.values())))
    order.prepare()
    stages = []
    while order.is_active():
        stages.append(set(order.get_ready()))
        order.done(*stages[-1])
    assert stages == [
        {"ingest_request_log", "ingest_receiver", "ingest_otlp"},
        {"client_metrics", "fetches", "request_results"},
        {"fetch_results", "active_producer_results", "metric_alerts", "forward_metrics"},
    ]


def test_no_job_reads_the_counts_that_all_jobs_fill() -> None:
    for job in JOBS.values():
        assert PIPELINE_PROGRESS.name not in {job.reads, *(table.name for table in job.looks_up)}
