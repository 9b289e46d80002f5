"""Values as SQL literals that Spark and DuckDB read alike."""

import re
from datetime import UTC, datetime

# In a literal, Spark reads a backslash as an escape, which can end the literal, and replaces
# ${env:NAME} by the environment variable. DuckDB does neither.
_SPECIAL = re.compile(r"([\\$])")
_LIKE = str.maketrans({"*": "%", "%": "!%", "_": "!_", "!": "!!"})


def literal(value: str | float | datetime | None) -> str:
    """Any text, a number, a time or None as a SQL literal."""
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return f"timestamp '{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}'"
    return _text(value) if isinstance(value, str) else repr(value)


def like_pattern(pattern: str) -> str:
    """A pattern in which * matches any text, for LIKE with the escape character !."""
    return pattern.translate(_LIKE)


def _text(value: str) -> str:
    parts = _SPECIAL.split(value)
    literals = [f"chr({ord(part)})" if _SPECIAL.match(part) else _quoted(part) for part in parts]
    return literals[0] if len(literals) == 1 else f"concat({', '.join(literals)})"


def _quoted(part: str) -> str:
    return "'" + part.replace("'", "''") + "'"
