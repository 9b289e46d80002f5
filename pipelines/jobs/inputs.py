"""The tables that each table is computed from, by the jobs and answers of this release."""

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import PIPELINE_PROGRESS


def of_tables(conf: Conf) -> dict[str, set[str]]:
    """The direct inputs of each computed table."""
    reads: dict[str, set[str]] = {}
    for job in JOBS.values():
        for result in job.results(conf) if job.results else ():
            lookups = {context.table.name for context in result.lookups}
            reads.setdefault(result.table.name, set()).update({result.facts.name}, lookups)
        for table in () if job.results else job.fills:
            reads.setdefault(table.name, set()).update({job.reads} & TABLES.keys())
    reads |= {answer.name: set(answer.inputs) for answer in ANSWERS}
    # It counts rows of other tables, and is not computed from them.
    del reads[PIPELINE_PROGRESS.name]
    return reads
