"""Lists of throttled replicas: what they name, and what altering them makes of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.udfs.rules.throttled_replicas import APPEND, DELETE, SET, SUBTRACT

from .throttled_replicas import ThrottledReplicas, altered, parse

ENTRIES = st.lists(st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1)), unique=True)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(None, ThrottledReplicas(), id="not set"),
        pytest.param("", ThrottledReplicas(), id="empty"),
        pytest.param(" * ", ThrottledReplicas(is_all=True), id="all"),
        pytest.param("0:1", ThrottledReplicas(entries=frozenset({(0, 1)})), id="one"),
        pytest.param(
            "0:1,2:3,0:1,", ThrottledReplicas(entries=frozenset({(0, 1), (2, 3)})), id="some"
        ),
        pytest.param("0-1", ThrottledReplicas(malformed=("0-1",)), id="as the KIP's text has it"),
        pytest.param(
            "0:1,*",
            ThrottledReplicas(entries=frozenset({(0, 1)}), malformed=("*",)),
            id="all among others",
        ),
        pytest.param(
            "0:1, 0:2",
            ThrottledReplicas(entries=frozenset({(0, 1)}), malformed=(" 0:2",)),
            id="a blank, at which a broker stumbles",
        ),
        pytest.param("0:2147483648", ThrottledReplicas(malformed=("0:2147483648",)), id="no int"),
        pytest.param("٣:1", ThrottledReplicas(malformed=("٣:1",)), id="digits of another script"),
    ],
)
def test_what_a_list_names(value: str | None, expected: ThrottledReplicas) -> None:
    assert parse(value) == expected


@pytest.mark.parametrize(
    ("value", "operation", "operand", "expected"),
    [
        pytest.param("0:1", SET, "1:2", "1:2", id="set: the entries before are lost"),
        pytest.param("0:1", DELETE, None, None, id="deleted"),
        pytest.param(None, APPEND, "0:1,0:2", "0:1,0:2", id="appended to nothing"),
        pytest.param("0:1", APPEND, "0:1,1:1", "0:1,1:1", id="appended once"),
        pytest.param("*", APPEND, "0:1", "*,0:1", id="appended to all: the broker refuses it"),
        pytest.param("0:1,1:1", SUBTRACT, "0:1", "1:1", id="subtracted"),
        pytest.param("0:1", SUBTRACT, "0:1", "", id="subtracted the last"),
        pytest.param("0:1", SUBTRACT, "0:2", "0:1", id="subtracted what is not there"),
        pytest.param("*", SUBTRACT, "0:1", "*", id="subtracted from all: all are listed still"),
        pytest.param(None, SUBTRACT, "0:1", "", id="subtracted from nothing"),
    ],
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
