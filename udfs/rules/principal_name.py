"""Names of principals in the forms that people write: with or without type, as an ARN, as a DN."""

import re
from collections.abc import Iterable
from urllib.parse import unquote

_TYPE = re.compile(r"[A-Z][A-Za-z]*:")
"""A principal's type, such as User or ServiceAccount. ARNs and URIs begin with small letters."""

_DN_SPACE = re.compile(r"\s*([,=])\s*")


def named(name: str, principals: Iterable[str]) -> tuple[str, ...]:
    """The principals that a name means, sorted: those of the most exact form that any has.

    Forms, the most exact first: as Kafka prints it (User:alice); without its type (alice, an ARN,
    a DN); with other spaces in the DN, or percent-encoded as in Kafka's metrics (CN%3Dalice).
    Several principals mean that their types alone differ.
    """
    known_names = sorted(set(principals))
    for form in (_as_printed, _without_type, _loosely):
        matches = tuple(principal for principal in known_names if form(name, principal))
        if matches:
            return matches
    return ()


def quota_user(name: str) -> str:
    """The user that a client quota names for a principal: its name without the type.

    Without the tables nobody knows which principals exist, so a type is what looks like one.
    """
    kind = _TYPE.match(name)
    return name[kind.end() :] if kind and kind.end() < len(name) else name


def bare(principal: str) -> str:
    """The name of a principal that Kafka printed: all behind its type."""
    _, colon, name = principal.partition(":")
    return name if colon else principal


def _as_printed(name: str, principal: str) -> bool:
    return principal == name


def _without_type(name: str, principal: str) -> bool:
    return bare(principal) == name


def _loosely(name: str, principal: str) -> bool:
    texts = {_folded(name), _folded(unquote(name))}
    return _folded(principal) in texts or _folded(bare(principal)) in texts


def _folded(text: str) -> str:
    return _DN_SPACE.sub(r"\1", text.strip())
