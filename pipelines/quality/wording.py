"""A check in words: what it expects, the rows that are not so, and what to do about them."""

from quotaflow.pipelines.quality.suites import (
    BETWEEN,
    CRITICAL,
    LENGTHS,
    NOT_NULL,
    ONE_OF,
    ORDER,
    SQL,
    SQL_TEXT,
    Check,
)
from quotaflow.pipelines.warehouse.kept_translations import in_duckdb
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import ANSWERS

_SHOWN_ROWS = 20
_WORDS = {
    NOT_NULL: "{column} is never null",
    BETWEEN: "{column} is {bounds}",
    LENGTHS: "the length of {column} is {bounds}",
    ONE_OF: "{column} is one of: {listed}",
    ORDER: "{column_A} is at least {column_B}",
}
_WAITS = "Plans that need this table wait."
_OF_CLIENTS = (
    "Clients or brokers may send this, so nothing stops. Look at the rows: a client or a shipper "
    "may need repair."
)
_OURS = (
    "Only quotaflow writes this, so it is a fault of quotaflow: report it with the rows. "
    f"{_WAITS} To check only what came since: `quotaflow check --table {{table}} --since 10m`."
)
_COMPUTED = (
    "Compute the rows again: `quotaflow rebuild {table} --from 1d`, then "
    f"`quotaflow check --table {{table}} --since 1d`. If they are the same, report it. {_WAITS}"
)
_ANSWERED = (
    "`quotaflow run --once` computes the whole table again. If the rows are the same, report it. "
    f"{_WAITS}"
)


def expected(check: Check) -> str:
    """What the rows should be like, as a sentence without its full stop."""
    if check.description:
        return check.description
    named = {key: value for key, value in check.kwargs.items() if not isinstance(value, list)}
    listed = ", ".join(map(str, check.kwargs.get("value_set", ())))
    words = _WORDS.get(check.kind, check.name.replace("_", " "))
    return words.format_map(named | {"listed": listed, "bounds": _bounds(check)})


def _bounds(check: Check) -> str:
    low, high = check.kwargs.get("min_value"), check.kwargs.get("max_value")
    if high is None:
        return "never negative" if low == 0 else f"at least {low}"
    return f"from {low} to {high}"


def advice(table: Table, check: Check) -> str:
    """What to do where a check fails, and a query for `quotaflow sql` that shows the rows."""
    return (
        f"{table.name}: {expected(check)}\n  to do: {remedy(table, check)}\n"
        f"  rows: {rows_query(table.name, check)}"
    )


def rows_query(table: str, check: Check) -> str:
    """A query in a line, in DuckDB's dialect, for rows that are not as expected."""
    kwargs = check.kwargs
    if check.kind == SQL:
        query = in_duckdb(str(kwargs[SQL_TEXT]).replace("{batch}", table))
        return " ".join(query.split())
    return f"SELECT * FROM {table} WHERE {_condition(check)} LIMIT {_SHOWN_ROWS}"


def _condition(check: Check) -> str:
    kwargs = check.kwargs
    column = kwargs.get("column")
    if check.kind == NOT_NULL:
        return f"{column} IS NULL"
    if check.kind == ONE_OF:
        return f"{column} NOT IN ({', '.join(map(literal, kwargs['value_set']))})"
    if check.kind == ORDER:
        return f"{kwargs['column_A']} < {kwargs['column_B']}"
    value = f"length({column})" if check.kind == LENGTHS else column
    low, high = kwargs.get("min_value"), kwargs.get("max_value")
    above = "" if high is None else f" OR {value} > {high}"
    return f"{value} < {low}{above}"


def remedy(table: Table, check: Check) -> str:
    """What to do where rows are not as expected; commands are between backticks."""
    if check.remedy:
        return check.remedy
    if check.severity != CRITICAL:
        return _OF_CLIENTS
    if table.partitioning:
        return _COMPUTED.format(table=table.name)
    text = _ANSWERED if table.name in ANSWERS else _OURS
    return text.format(table=table.name)
