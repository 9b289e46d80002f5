"""The command that fills a table, for errors, reports and lists of tables."""

from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.schemas.tables.control import (
    ANSWER_STATE,
    CONFIG_CHANGES,
    FEEDBACK_LOCKS,
    PLANS,
    QUERY_PROGRESS,
)
from quotaflow.schemas.tables.quality import QUALITY_RESULTS

_OTHERS = {
    PLANS.name: "plan --save",
    CONFIG_CHANGES.name: "apply --yes",
    FEEDBACK_LOCKS.name: "apply --yes",
    QUALITY_RESULTS.name: "check",
    QUERY_PROGRESS.name: "run --once",
    ANSWER_STATE.name: "run --once",
}
"""The commands that fill what neither a job nor a snapshot has as its output."""
_ANSWERS = frozenset(answer.name for answer in ANSWERS)


def filler(table: str) -> str:
    """The command that fills a table, as it follows `quotaflow`."""
    if table in _OTHERS:
        return _OTHERS[table]
    if table in _ANSWERS:
        return "run --once"
    try:
        from quotaflow.pipelines.jobs.registry import JOBS  # noqa: PLC0415
    except ImportError:  # without pyspark, tables can be read, but the registry cannot be imported
        return "run --once"
    fillers = [job.name for job in JOBS.values() if any(t.name == table for t in job.fills)]
    return f"run {fillers[0]} --once" if fillers else "snapshot"


def hint(table: str) -> str:
    """What to do about a declared table that does not exist yet, as the end of an error."""
    if table in _ANSWERS:
        command = "`quotaflow run --once`, then `quotaflow snapshot` fill what it is computed from"
        return f"{command}; or name another place with --set warehouse.path=FOLDER"
    # `plan` reads config_changes before anything is applied. So `snapshot` makes it, not `apply`.
    is_ledger = table == CONFIG_CHANGES.name
    command = (
        "`quotaflow snapshot` makes it" if is_ledger else f"`quotaflow {filler(table)}` fills it"
    )
    return f"{command}; or name another place with --set warehouse.path=FOLDER"
