"""The command pseudonym."""

import pytest

from quotaflow.udfs.rules.pseudonym import CLIENT_ID, Pseudonyms

from ...cases import cases
from ...command_line import Command

KEY = "0123456789abcdef0123456789abcdef"
WITH_KEY = ("--set", "privacy.key=env:PRIVACY_TEST_KEY", "--set", "privacy.columns=[client_id]")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIVACY_TEST_KEY", KEY)


def test_a_name_is_told_as_tables_have_it(command: Command) -> None:
    expected = Pseudonyms(KEY.encode(), "k1").pseudonym(CLIENT_ID, "orders-7")
    assert command("pseudonym", "client_id", "orders-7", *WITH_KEY).out == f"{expected}\n"


@cases(
    ("words", "expected"),
    ("nothing is hidden", ("client_id", "x"), "privacy.key names no key"),
    (
        "a column that is not",
        ("principal", "x", *WITH_KEY),
        "principal is not hidden: privacy.columns are client_id",
    ),
)
def test_wrong_use_is_one_line(command: Command, words: tuple[str, ...], expected: str) -> None:
    error = command.error("pseudonym", *words)
    assert expected in error
    assert KEY not in error
