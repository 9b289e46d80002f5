"""Which command fills a table, as errors, reports and lists of tables name it."""

from quotaflow.schemas.tables.control import CONFIG_CHANGES, PLANS

_FEEDBACK = {PLANS.name: "plan --save", CONFIG_CHANGES.name: "apply --yes"}


def filler(table: str) -> str:
    """The command that fills a table, as it follows `quotaflow`."""
    if table in _FEEDBACK:
        return _FEEDBACK[table]
    try:
        from quotaflow.pipelines.jobs.registry import JOBS  # noqa: PLC0415
    except ImportError:  # reading needs no pyspark, and without it no single job is named
        return "run --once"
    fillers = [job.name for job in JOBS.values() if any(t.name == table for t in job.fills)]
    return f"run {fillers[0]} --once" if fillers else "snapshot"


def hint(table: str) -> str:
    """What to do about a declared table that was never made, as the end of an error."""
    # `plan` reads config_changes before anything is applied: to read it, nobody has to apply.
    is_ledger = table == CONFIG_CHANGES.name
    command = (
        "`quotaflow snapshot` makes it" if is_ledger else f"`quotaflow {filler(table)}` fills it"
    )
    return f"{command}; or name another place with --set warehouse.path=FOLDER"
