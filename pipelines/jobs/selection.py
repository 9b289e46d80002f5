"""The jobs that a user selects by names of jobs and groups, as arguments of `run`."""

import difflib
from collections.abc import Collection

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.jobs.job import Job
from quotaflow.pipelines.jobs.registry import GROUPS, JOBS


def jobs(names: list[str], conf: Conf) -> list[Job]:
    """The jobs of these names and groups (all without names) that conf does not switch off.

    Raises ConfigError for an unknown name, with the nearest one, and for a job that is named and
    switched off.
    """
    for name in names:
        if name not in JOBS and name not in GROUPS:
            raise ConfigError(
                f"no job {name}{_nearest(name)}; jobs are {', '.join(JOBS)}; "
                f"groups are {', '.join(GROUPS)}"
            )
    selected = {job for name in names for job in GROUPS.get(name, (name,))}
    chosen = [job for job in JOBS.values() if not names or job.name in selected]
    for job in chosen:
        if job.name in names:
            refuse_off(job, conf)
    return [job for job in chosen if not job.off_by(conf)]


def dependencies(chosen: Collection[Job]) -> dict[str, set[str]]:
    """Each job, and those of `chosen` that fill what it reads or looks up."""
    return {
        job.name: {other.name for other in chosen if other is not job and _feeds(other, job)}
        for job in chosen
    }


def _feeds(filling: Job, reading: Job) -> bool:
    read = {reading.reads, *(table.name for table in reading.looks_up)}
    return not read.isdisjoint(table.name for table in filling.fills)


def refuse_off(job: Job, conf: Conf) -> None:
    """Raise ConfigError for a job that conf switches off."""
    if key := job.off_by(conf):
        raise ConfigError(f"{job.name} needs {key}, which conf sets to null")


def _nearest(name: str) -> str:
    fillers = [job.name for job in JOBS.values() if name in {table.name for table in job.fills}]
    if fillers:
        return f" (the table {name} is filled by {' and '.join(fillers)})"
    near = difflib.get_close_matches(name, [*JOBS, *GROUPS], n=1)
    return f" (did you mean {near[0]}?)" if near else ""
