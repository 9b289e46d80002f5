"""Finds the fields of a record that hold a request line."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from quotaflow.udfs.request_log import shipper_records

COMPLETED = "Completed request:"
HEADER = "requestHeader"
REST = re.compile(
    r'"(?:clientInformation|softwareVersion|securityProtocol|totalTimeMs|sendTimeMs)\\?":'
    r"|\(kafka\.request\.logger\)"
)
"""What the end of a request line has."""

_FIELDS = frozenset(shipper_records.FIELDS)
_ENDS = tuple(f".{field}" for field in shipper_records.FIELDS)
_DEEPEST = 8
_MOST_NODES = 1_000
_PATH_CHARS = 200


@dataclass(frozen=True, slots=True)
class Line:
    """A place in a record that has a request: in a text, or as an object.

    `is_known` is whether shippers put a line there, and `is_named` whether conf says so.
    """

    path: str
    node: Any
    around: tuple[Mapping[str, Any], ...]
    is_known: bool
    is_named: bool

    @property
    def text(self) -> str:
        """What distinguishes it from the other lines of its record."""
        return self.node if isinstance(self.node, str) else self.path


def lines_of(whole: Mapping[str, Any], line_field: str | None = None) -> Iterator[Line]:
    """Lines within a record, which is no request itself. `line_field` is known, as FIELDS are."""
    pending: list[tuple[str, tuple[Mapping[str, Any], ...], Any]] = [("", (), whole)]
    for _ in range(_MOST_NODES):
        if not pending:
            return
        path, around, node = pending.pop()
        if isinstance(node, str):
            if COMPLETED in node or HEADER in node or REST.search(node):
                name = _without_numbers(path)
                is_named = name == line_field
                is_known = is_named or name in _FIELDS or name.endswith(_ENDS)
                yield Line(path[:_PATH_CHARS], node, around, is_known, is_named)
        elif isinstance(node, dict) and (HEADER in node or HEADER in _dict(node.get("r"))):
            is_named = _without_numbers(path) == line_field
            yield Line(path[:_PATH_CHARS], node, around, True, is_named)
        elif len(around) < _DEEPEST and isinstance(node, dict):
            inner = (node, *around)
            pending += [(_joined(path, name), inner, each) for name, each in node.items()]
        elif len(around) < _DEEPEST and isinstance(node, list):
            inner = ({}, *around)
            pending += [(_joined(path, n), inner, each) for n, each in enumerate(node)]


def _without_numbers(path: str) -> str:
    """The path of a field without places in lists."""
    return ".".join(part for part in path.split(".") if not part.isdecimal())


def _dict(node: Any) -> Mapping[str, Any]:
    return node if isinstance(node, dict) else {}


def _joined(path: str, name: object) -> str:
    return f"{path}.{name}" if path else str(name)
