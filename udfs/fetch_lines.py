"""FETCH lines and the sessions before them, in the order in which sessions are followed.

A line belongs to the session that it starts, else to the one that it names. If it starts one and so
ends another, it belongs to both: it comes twice. In a folder DuckDB sorts the rows, in a catalog
Spark.
"""

import pyarrow as pa

from quotaflow.schemas.table import LONG, STRING
from quotaflow.schemas.tables.declared import FETCH_SESSIONS, FETCHES, REQUESTS
from quotaflow.udfs.rules.fetch_session import MAX_EPOCH

KEY = ("cluster_id", "broker_id", "session")
SESSION, FETCH, END = "session", "fetch", "end"
"""What a row is: a session before the lines, a line, or a repeated line that ended a session."""

FILLED = {
    "session_state",
    "session_partitions",
    "session_max_bytes",
    "session_partition_max_bytes",
    "response_bytes",
    "partitions",
    "starved",
}
"""Columns of `fetches` that follow from sessions."""
PASSED = [name for name in FETCHES.column_names if name not in FILLED]
"""Columns of a line that pass through."""
OF_SESSION = [f for f in FETCH_SESSIONS.arrow if f.name not in FETCHES.column_names]
"""Columns that only a session has."""
ROWS = pa.schema(
    [
        *(FETCHES.arrow.field(name) for name in PASSED),
        *(
            REQUESTS.arrow.field(name)
            for name in ("response_session_id", "forgotten", "partitions")
        ),
        *OF_SESSION,
        pa.field("session", LONG),
        pa.field("kind", STRING),
    ]
)
OF_LINE = [name for name in ROWS.names if name in REQUESTS.column_names]

# SQL of Spark and of DuckDB.
_IS_FULL = "coalesce(session_epoch, -1) <= 0"
_NAMED = "coalesce(session_id, 0)"
_STARTED = f"CASE WHEN {_IS_FULL} THEN coalesce(response_session_id, 0) ELSE 0 END"
ENDS_ANOTHER = f"({_STARTED}) <> 0 AND {_NAMED} NOT IN (0, {_STARTED})"
OWN_SESSION = (
    f"CASE WHEN kind = '{END}' THEN {_NAMED} ELSE coalesce(nullif({_STARTED}, 0), {_NAMED}) END"
)
# Lines of one session and millisecond are ordered by epoch; its end is last.
_EPOCH = f"""CASE
WHEN kind = '{END}' OR ({_IS_FULL} AND session = {_NAMED}) THEN {MAX_EPOCH + 1}
ELSE session_epoch
END"""
ORDER = (
    *KEY,
    f"kind <> '{SESSION}'",
    "event_time",
    _EPOCH,
    "source_partition",
    "source_offset",
    "source_line",
)
ALONE = "CASE WHEN session = 0 THEN source_offset END"
"""Fetches without a session do not depend on others: they need not meet in one task."""


def query(task: int, tasks: int) -> str:
    """DuckDB's SQL for the ROWS of one of several tasks, from `requests` and `fetch_sessions`."""
    of_task = f"hash({', '.join(KEY)}, {ALONE}) % {tasks} = {task}"
    order = ", ".join(f"{each} NULLS FIRST" for each in ORDER)
    return f"""SELECT {", ".join(ROWS.names)} FROM (
SELECT *, {OWN_SESSION} AS session FROM (
SELECT {", ".join(OF_LINE)},
unnest(CASE WHEN {ENDS_ANOTHER} THEN ['{FETCH}', '{END}'] ELSE ['{FETCH}'] END) AS kind
FROM requests WHERE api = 'FETCH')
UNION ALL BY NAME
SELECT *, '{SESSION}' AS kind, session_id AS session FROM fetch_sessions
) WHERE {of_task} ORDER BY {order}"""
