"""DuckDB connections: the one place that opens them, with settings without which rows are wrong."""

from typing import Any

import duckdb

_EXACT = (
    # For all cursors: what SET alone changes ends with its connection, and a cursor starts with the
    # machine's zone again. By statement, because connect has no icu loaded yet and refuses it.
    "SET GLOBAL TimeZone = 'UTC'",
    # Parquet files leave NaN out of the bounds of doubles. By these DuckDB 2.0 removes conditions
    # that NaN does not meet.
    "SET GLOBAL disabled_optimizers = 'statistics_propagation'",
)
_ALONE = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
}
"""A query loads no code, and reads no variable of Python."""


def connect(**settings: Any) -> duckdb.DuckDBPyConnection:
    """A database in memory whose cursors all take times in UTC, on a machine of any zone."""
    connection = duckdb.connect(config={**_ALONE, **settings})
    for statement in _EXACT:
        connection.execute(statement)
    return connection
