"""JSON in texts of shippers: one value, an object within a text, or values in a row."""

import json
from collections.abc import Iterator
from typing import Any

from quotaflow.udfs.counted import counted

EDGES = "\ufeff\0 \t\r\n"
"""What may stand around a value, and says nothing."""
# RFC 7464 begins each value with a record separator, and JsonLayout writes commas between them.
_BETWEEN = f"{EDGES},\x1e"


def whole_value(text: str) -> Any:
    """The JSON that a text is; None if it is none, or more."""
    try:
        value, end = _DECODER.raw_decode(text)
    except ValueError:
        return None
    return None if text[end:].strip(EDGES) else value


def object_at(text: str, start: int = 0) -> tuple[dict[str, Any], int]:
    """The JSON object that begins at a place, and where it ends. Raises ValueError."""
    value, end = _DECODER.raw_decode(text, start)
    if not isinstance(value, dict):
        raise ValueError("not an object")  # noqa: TRY004  the caller catches one kind
    return value, end


def where_json_ends(text: str) -> str:
    """Up to where a text is JSON. It quotes nothing, because the text may hold a credential."""
    start = text.find("{")
    if start < 0:
        return f"no JSON object in {counted(len(text), 'character')}"
    try:
        end = object_at(text, start)[1]
    except json.JSONDecodeError as error:
        return f"the first JSON object breaks at character {error.pos + 1} of {len(text)}"
    except (ValueError, RecursionError):
        return f"no JSON object in {counted(len(text), 'character')}"
    return f"the first JSON object ends at character {end} of {len(text)}"


def in_a_row(text: str) -> Iterator[Any]:
    """The values of a text that has nothing else. Raises ValueError where something else begins."""
    at = _next(text, 0)
    while at < len(text):
        value, end = _DECODER.raw_decode(text, at)
        yield value
        at = _next(text, end)


def _next(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BETWEEN:
        at += 1
    return at


def _first_of_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """As DuckDB reads a repeated key."""
    whole = dict(pairs)
    if len(whole) < len(pairs):
        whole |= dict(reversed(pairs))
    return whole


_DECODER = json.JSONDecoder(object_pairs_hook=_first_of_each)
