"""Reference for lists of throttled replicas (KIP-73): what one names, and how one is altered.

What the broker's TopicConfigHandler reads in a value, and what the controller's
ConfigurationControlManager makes of one that is altered. In the product: `throttled_entries` and
`altered_value` of `pipelines/results/shared/macros.sql`.
"""

import re
from dataclasses import dataclass

ALL = "*"
SET, DELETE, APPEND, SUBTRACT = "SET", "DELETE", "APPEND", "SUBTRACT"
OPERATIONS = (SET, DELETE, APPEND, SUBTRACT)
"""By the number Kafka gives them (AlterConfigOp.OpType)."""

_ENTRY = re.compile(r"([0-9]+):([0-9]+)")


_MOST_INT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ThrottledReplicas:
    """Whom a list names: every replica of the topic, or some as (partition, broker id).

    `malformed` are entries of no meaning, such as the 0-1 of the KIP's text: a broker refuses a
    list that has one.
    """

    is_all: bool = False
    entries: frozenset[tuple[int, int]] = frozenset()
    malformed: tuple[str, ...] = ()

    def holds(self, partition: int, broker_id: int) -> bool:
        """Whether the replica of a partition at a broker is named."""
        return self.is_all or (partition, broker_id) in self.entries


def parse(value: str | None) -> ThrottledReplicas:
    """What a value names; to Kafka none and an empty one are alike."""
    text = (value or "").strip()
    if text == ALL:
        return ThrottledReplicas(is_all=True)
    entries, malformed = set[tuple[int, int]](), list[str]()
    for part in filter(None, text.split(",")):
        match = _ENTRY.fullmatch(part)
        entry = (int(match[1]), int(match[2])) if match else None
        if entry and max(entry) <= _MOST_INT:
            entries.add(entry)
        else:
            malformed.append(part)
    return ThrottledReplicas(entries=frozenset(entries), malformed=tuple(malformed))


def altered(value: str | None, operation: str, operand: str | None) -> str | None:
    """The value after an operation the controller took; None: not set.

    It works on text: an entry is added once, taken away once, and to take one away from `*` changes
    nothing. A list that loses its last entry is empty, and set.
    """
    if operation == SET:
        return operand
    if operation == DELETE:
        return None
    if operation not in OPERATIONS:
        raise ValueError(f"unknown operation {operation}: one of {', '.join(OPERATIONS)}")
    parts = [part for part in (value or "").split(",") if part]
    for part in filter(None, (operand or "").split(",")):
        if operation == SUBTRACT and part in parts:
            parts.remove(part)
        elif operation == APPEND and part not in parts:
            parts.append(part)
    return ",".join(parts)
