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
    """A place in a record that has a request: in a text, or as an object."""

    path: str
    node: Any
    around: tuple[Mapping[str, Any], ...]
    is_known: bool

    @property
    def text(self) -> str:
        """What distinguishes it from the other lines of its record."""
        return self.node if isinstance(self.node, str) else self.path


def lines_of(whole: Mapping[str, Any]) -> Iterator[Line]:
    """Lines within a record, which is no request itself."""
    pending: list[tuple[str, tuple[Mapping[str, Any], ...], Any]] = [("", (), whole)]
    for _ in range(_MOST_NODES):
        if not pending:
            return
        path, around, node = pending.pop()
        if isinstance(node, str):
            if COMPLETED in node or HEADER in node or REST.search(node):
                yield Line(path[:_PATH_CHARS], node, around, _is_field(path))
        elif isinstance(node, dict) and (HEADER in node or HEADER in _dict(node.get("r"))):
            yield Line(path[:_PATH_CHARS], node, around, True)
        elif len(around) < _DEEPEST and isinstance(node, dict):
            inner = (node, *around)
            pending += [(_joined(path, name), inner, each) for name, each in node.items()]
        elif len(around) < _DEEPEST and isinstance(node, list):
            inner = ({}, *around)
            pending += [(_joined(path, n), inner, each) for n, each in enumerate(node)]


def _is_field(path: str) -> bool:
    if path in _FIELDS:
        return True
    name = ".".join(part for part in path.split(".") if not part.isdecimal())
    return name in _FIELDS or name.endswith(_ENDS)


def _dict(node: Any) -> Mapping[str, Any]:
    return node if isinstance(node, dict) else {}


def _joined(path: str, name: object) -> str:
    return f"{path}.{name}" if path else str(name)
