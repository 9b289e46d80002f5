"""The command what-if: new ids of the tables under another quota."""

import json
from typing import Any

import pytest

from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...cases import cases
from ...rows import HOSTILE, Row, use
from ...schemas.views.view_tables import make_tables

LOOP = [use(n / 10, n, client_pattern="loop-*") for n in range(200)]
CALM = [use(n, 1_000 + n, client_pattern="calm", client_address="10.0.0.8") for n in range(5)]
FEW = [use(n, 2_000 + n, principal="User:bob") for n in range(5)]


def what_if(warehouse: Warehouse, rows: list[Row], *words: str) -> int:
    make_tables(warehouse, {"producer_id_uses": rows})
    return execute(["what-if", "--set", f"warehouse.path={warehouse.conf.folder}", *words])


def answered(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_who_waits_and_who_waits_for_others(
    capsys: pytest.CaptureFixture[str], warehouse: Warehouse
) -> None:
    assert what_if(warehouse, LOOP + CALM + FEW, "--producer-ids-rate", "0.5", "--json") == 0
    loop, calm = answered(capsys)
    assert loop["source"] == "loop-* at 10.0.0.7"
    assert (loop["allocated_ids"], loop["is_innocent"]) == (200, False)
    assert loop["throttled_ids"] > 190
    assert (calm["source"], calm["is_innocent"]) == ("calm at 10.0.0.8", True)


def test_it_is_said_in_a_line(capsys: pytest.CaptureFixture[str], warehouse: Warehouse) -> None:
    assert what_if(warehouse, LOOP + CALM, "--producer-ids-rate", "0.5") == 0
    printed = capsys.readouterr()
    assert "loop-* at 10.0.0.7" in printed.out
    assert "of 2 sources, 1 of which would not have been throttled alone" in printed.err


@cases(
    ("words", "principals"),
    ("nobody at a high rate", ["100"], []),
    ("one principal", ["0.1", "--principal", "User:bob"], ["User:bob"]),
    ("all", ["0.1"], ["User:alice", "User:alice", "User:bob"]),
    ("nothing came since", ["0.1", "--since", "2026-11-21T13:00:00Z"], []),
)
def test_which_principals_are_told_of(
    words: list[str],
    principals: list[str],
    capsys: pytest.CaptureFixture[str],
    warehouse: Warehouse,
) -> None:
    assert what_if(warehouse, LOOP + CALM + FEW, "--json", "--producer-ids-rate", *words) == 0
    assert sorted(row["principal"] for row in answered(capsys)) == principals


@pytest.mark.parametrize(
    ("principal", "name"),
    [
        ("User:alice", "alice"),
        ("ServiceAccount:sa-1", "sa-1"),
        ("User:arn:aws:sts::1:assumed-role/etl/i-0", "arn:aws:sts::1:assumed-role/etl/i-0"),
        ("User:CN=a,OU=b.c", "CN=a, OU=b.c"),
    ],
)
def test_a_principal_is_named_in_any_form(
    principal: str, name: str, capsys: pytest.CaptureFixture[str], warehouse: Warehouse
) -> None:
    rows = [row | {"principal": principal} for row in LOOP]
    options = ("--producer-ids-rate", "0.5", "--principal", name, "--json")
    assert what_if(warehouse, rows + FEW, *options) == 0
    assert {row["principal"] for row in answered(capsys)} == {principal}


def test_hostile_names_are_shown_harmless(
    capsys: pytest.CaptureFixture[str], warehouse: Warehouse
) -> None:
    name = "User:" + HOSTILE
    rows = [row | {"principal": name, "client_pattern": HOSTILE} for row in LOOP]
    assert what_if(warehouse, rows, "--producer-ids-rate", "1", "--principal", name) == 0
    printed = capsys.readouterr()
    assert all(line.isprintable() for line in (printed.out + printed.err).splitlines())
    assert "DROP TABLE" in printed.out


@cases(
    ("words", "message"),
    ("zero", ["0"], "--producer-ids-rate is 0, and must be between 0.001 and"),
    ("no number", ["nan"], "--producer-ids-rate is nan, and must be between"),
    (
        "a principal misspelt",
        ["1", "--principal", "alise"],
        "no new producer ids of alise (did you mean User:alice?)",
    ),
)
def test_wrong_use_is_told(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str], warehouse: Warehouse
) -> None:
    assert what_if(warehouse, LOOP, "--producer-ids-rate", *words) == 2
    assert message in capsys.readouterr().err
