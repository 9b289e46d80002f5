"""The command pseudonym."""

import pytest

from quotaflow.pipelines.__main__ import execute
from quotaflow.udfs.rules.pseudonym import CLIENT_ID, Pseudonyms

KEY = "0123456789abcdef0123456789abcdef"
WITH_KEY = ("--set", "privacy.key=env:PRIVACY_TEST_KEY", "--set", "privacy.columns=[client_id]")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIVACY_TEST_KEY", KEY)


def test_a_name_is_told_as_tables_have_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["pseudonym", "client_id", "orders-7", *WITH_KEY]) == 0
    expected = Pseudonyms(KEY.encode(), "k1").pseudonym(CLIENT_ID, "orders-7")
    assert capsys.readouterr().out == f"{expected}\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("client_id", "x"), "privacy.key names no key"),
        (("principal", "x", *WITH_KEY), "principal is not hidden: privacy.columns are client_id"),
    ],
    ids=["nothing is hidden", "a column that is not"],
)
def test_wrong_use_is_one_line(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], expected: str
) -> None:
    assert execute(["pseudonym", *words]) == 2
    printed = capsys.readouterr()
    assert expected in printed.err
    assert KEY not in printed.out + printed.err
