"""Values as SQL literals that Spark and DataFusion both read."""

import re
from datetime import UTC, datetime

# In a literal Spark takes a backslash for an escape, which could end it, and ${env:NAME} for what
# the environment holds; DataFusion takes both as they are.
_SPECIAL = re.compile(r"([\\$])")


def literal(value: str | float | datetime | None) -> str:
    """Text, whatever is in it, a number, a time or none, as a query may hold it."""
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return f"timestamp '{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}'"
    return _text(value) if isinstance(value, str) else repr(value)


def _text(value: str) -> str:
    parts = _SPECIAL.split(value)
    literals = [f"chr({ord(part)})" if _SPECIAL.match(part) else _quoted(part) for part in parts]
    return literals[0] if len(literals) == 1 else f"concat({', '.join(literals)})"


def _quoted(part: str) -> str:
    return "'" + part.replace("'", "''") + "'"
