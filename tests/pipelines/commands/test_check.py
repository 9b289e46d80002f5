"""check from the command line."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from quotaflow.pipelines.quality import check
from quotaflow.pipelines.quality.check import CheckReport, CheckRequest

from ...cases import cases
from ...command_line import Command
from ...delta_tables import NOON

Finds = Callable[..., list[CheckRequest]]
ADVICE = "to do: repair the rows"


def result(severity: str, *, success: bool) -> dict[str, Any]:
    row = {"event_time": NOON, "run_id": "r", "suite": "requests", "expectation": severity}
    return row | {"severity": severity, "success": success, "details": "keys are unique"}


@pytest.fixture
def finds(monkeypatch: pytest.MonkeyPatch) -> Finds:
    """Sets the rows that a check returns; the returned list gets the requests."""

    def set_rows(*rows: dict[str, Any]) -> list[CheckRequest]:
        requests: list[CheckRequest] = []

        def answer(_conf: object, request: CheckRequest, *_: object) -> CheckReport:
            requests.append(request)
            return CheckReport(rows, [ADVICE] if rows else [])

        monkeypatch.setattr(check, "check", answer)
        return requests

    return set_rows


@cases(
    ("severity", "success", "code", "expected"),
    ("critical", "critical", False, 1, "1 critical and 0 others not met"),
    ("a warning", "warning", False, 0, "0 critical and 1 other not met"),
    ("all is well", "critical", True, 0, "0 critical and 0 others not met"),
)
def test_the_exit_code_says_whether_something_critical_failed(
    table_command: Command, finds: Finds, *, severity: str, success: bool, code: int, expected: str
) -> None:
    finds(result(severity, success=success))
    printed = table_command("check", code=code)
    assert expected in printed.err
    assert ("requests" in printed.out) is not success
    assert printed.out.endswith(f"{ADVICE}\n")


def test_json_has_all_that_was_checked(table_command: Command, finds: Finds) -> None:
    requests = finds(result("critical", success=True), result("warning", success=False))
    since = ("--since", "2026-11-21T12:00:00Z")
    rows = table_command("check", "--json", "--table", "requests", *since).rows
    assert [row["success"] for row in rows] == [True, False]
    assert (requests[0].names, requests[0].since) == (["requests"], NOON)


def test_nothing_new_is_said(table_command: Command, finds: Finds) -> None:
    finds()
    assert "no new rows since the last check" in table_command("check").err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--table", "request"), "no table request is checked (did you mean requests?)"),
        (("--table", "quality_results"), "no table quality_results is checked"),
        (("--json", "--csv"), "--json and --csv exclude each other"),
        (("--since", "yesterday"), "--since 'yesterday': write how long ago"),
    ],
)
def test_wrong_use_is_told(table_command: Command, words: tuple[str, ...], expected: str) -> None:
    assert expected in table_command("check", *words, code=2).err


def test_without_the_extra_it_says_how_to_get_it(
    table_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "great_expectations", None)
    assert "-py3-none-any.whl[quality]'" in table_command("check", code=1).err
