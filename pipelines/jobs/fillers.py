"""The command that fills a table, for errors, reports and lists of tables."""

from quotaflow.schemas.tables.catalog import ANSWERS, RESULTS
from quotaflow.schemas.tables.declared import (
    ANSWER_STATE,
    CONFIG_CHANGES,
    FEEDBACK_LOCKS,
    PLANS,
    QUALITY_RESULTS,
    QUERY_PROGRESS,
)

_OTHERS = {
    PLANS.name: "plan --save",
    CONFIG_CHANGES.name: "apply --yes",
    FEEDBACK_LOCKS.name: "apply --yes",
    QUALITY_RESULTS.name: "check",
    QUERY_PROGRESS.name: "run --once",
    ANSWER_STATE.name: "run --once",
}
"""The commands that fill what neither a job nor a snapshot has as its output."""
_BY_JOB = {
    "ingest_request_log": """
        requests telemetry_pushes telemetry_subscriptions quarantine pipeline_progress
    """,
    "client_metrics": "client_metrics",
    "fetches": "fetches fetch_sessions",
}
"""The first job that fills each table of facts, as the registry has it: to import that takes as
long as a plan does, for it imports pyspark."""
_OF_FACTS = {
    "requests": "request_results",
    "fetches": "fetch_results",
    "client_metrics": "metric_alerts",
}
"""The job of the results of these facts."""
_JOBS = {
    **{table: job for job, tables in _BY_JOB.items() for table in tables.split()},
    **{name: _OF_FACTS[head.facts] for name, head in RESULTS.items() if name == head.fills},
}


def filler(table: str) -> str:
    """The command that fills a table, as it follows `quotaflow`."""
    if table in _OTHERS:
        return _OTHERS[table]
    if table in ANSWERS:
        return "run --once"
    return f"run {_JOBS[table]} --once" if table in _JOBS else "snapshot"


def hint(table: str) -> str:
    """What to do about a declared table that does not exist yet, as the end of an error."""
    if table in ANSWERS:
        command = "`quotaflow run --once`, then `quotaflow snapshot` fill what it is computed from"
        return f"{command}; or name another place with --set warehouse.path=FOLDER"
    # `plan` reads config_changes before anything is applied. So `snapshot` makes it, not `apply`.
    is_ledger = table == CONFIG_CHANGES.name
    command = (
        "`quotaflow snapshot` makes it" if is_ledger else f"`quotaflow {filler(table)}` fills it"
    )
    return f"{command}; or name another place with --set warehouse.path=FOLDER"
