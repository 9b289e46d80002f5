"""Values as SQL literals that Spark and DataFusion both read."""

from datetime import UTC, datetime


def literal(value: str | float | datetime | None) -> str:
    """Text, whatever is in it, a number, a time or none, as a query may hold it."""
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return f"timestamp '{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}'"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)
