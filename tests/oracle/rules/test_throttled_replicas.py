"""Lists of throttled replicas: what they name, and what altering them makes of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ...cases import cases
from .throttled_replicas import APPEND, DELETE, SET, SUBTRACT, ThrottledReplicas, altered, parse

ENTRIES = st.lists(st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1)), unique=True)


@cases(
    ("value", "expected"),
    ("not set", None, ThrottledReplicas()),
    ("empty", "", ThrottledReplicas()),
    ("all", " * ", ThrottledReplicas(is_all=True)),
    ("one", "0:1", ThrottledReplicas(entries=frozenset({(0, 1)}))),
    ("some", "0:1,2:3,0:1,", ThrottledReplicas(entries=frozenset({(0, 1), (2, 3)}))),
    ("as the KIP's text has it", "0-1", ThrottledReplicas(malformed=("0-1",))),
    ("all among others", "0:1,*", ThrottledReplicas(entries=frozenset({(0, 1)}), malformed=("*",))),
    (
        "a blank, at which a broker stumbles",
        "0:1, 0:2",
        ThrottledReplicas(entries=frozenset({(0, 1)}), malformed=(" 0:2",)),
    ),
    ("no int", "0:2147483648", ThrottledReplicas(malformed=("0:2147483648",))),
    ("digits of another script", "٣:1", ThrottledReplicas(malformed=("٣:1",))),
)
def test_what_a_list_names(value: str | None, expected: ThrottledReplicas) -> None:
    assert parse(value) == expected


@cases(
    ("value", "operation", "operand", "expected"),
    ("set: the entries before are lost", "0:1", SET, "1:2", "1:2"),
    ("deleted", "0:1", DELETE, None, None),
)
def test_what_altering_makes_of_a_list(
    value: str | None, operation: str, operand: str | None, expected: str | None
) -> None:
    assert altered(value, operation, operand) == expected


def test_an_operation_kafka_does_not_know() -> None:
    with pytest.raises(ValueError, match="unknown operation ADD: one of SET, DELETE"):
        altered("0:1", "ADD", "0:2")


@given(ENTRIES, ENTRIES)
def test_what_is_appended_and_subtracted_is_gone(
    before: list[tuple[int, int]], more: list[tuple[int, int]]
) -> None:
    def text(entries: list[tuple[int, int]]) -> str:
        return ",".join(f"{partition}:{broker}" for partition, broker in entries)

    both = altered(text(before), APPEND, text(more))
    assert parse(both).entries == {*before, *more}
    assert parse(altered(both, SUBTRACT, text(more))).entries == {*before} - {*more}
    assert all(parse(both).holds(*entry) for entry in more)
