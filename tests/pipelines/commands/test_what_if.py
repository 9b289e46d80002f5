"""The command what-if: new ids of the tables under another quota."""

from collections.abc import Callable

import pytest

from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...cases import cases
from ...command_line import Command, Printed
from ...rows import HOSTILE, Row, use
from ...schemas.views.view_tables import make_tables

LOOP = [use(n / 10, n, client_pattern="loop-*") for n in range(200)]
CALM = [use(n, 1_000 + n, client_pattern="calm", client_address="10.0.0.8") for n in range(5)]
WhatIf = Callable[..., Printed]
FEW = [use(n, 2_000 + n, principal="User:bob") for n in range(5)]


@pytest.fixture
def what_if(table_command: Command, warehouse: Warehouse) -> WhatIf:
    """Replays new ids under a rate of producer ids."""

    def run(rows: list[Row], rate: str, *words: str, code: int = 0) -> Printed:
        make_tables(warehouse, {"producer_id_uses": rows})
        return table_command("what-if", "--producer-ids-rate", rate, *words, code=code)

    return run


def test_who_waits_and_who_waits_for_others(what_if: WhatIf) -> None:
    loop, calm = what_if(LOOP + CALM + FEW, "0.5", "--json").rows
    assert loop["source"] == "loop-* at 10.0.0.7"
    assert (loop["allocated_ids"], loop["is_innocent"]) == (200, False)
    assert loop["throttled_ids"] > 190
    assert (calm["source"], calm["is_innocent"]) == ("calm at 10.0.0.8", True)


def test_it_is_said_in_a_line(what_if: WhatIf) -> None:
    printed = what_if(LOOP + CALM, "0.5")
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
    what_if: WhatIf, words: list[str], principals: list[str]
) -> None:
    rows = what_if(LOOP + CALM + FEW, *words, "--json").rows
    assert sorted(row["principal"] for row in rows) == principals


@pytest.mark.parametrize(
    ("principal", "name"),
    [
        ("User:alice", "alice"),
        ("ServiceAccount:sa-1", "sa-1"),
        ("User:arn:aws:sts::1:assumed-role/etl/i-0", "arn:aws:sts::1:assumed-role/etl/i-0"),
        ("User:CN=a,OU=b.c", "CN=a, OU=b.c"),
    ],
)
def test_a_principal_is_named_in_any_form(what_if: WhatIf, principal: str, name: str) -> None:
    rows = [row | {"principal": principal} for row in LOOP]
    replayed = what_if(rows + FEW, "0.5", "--principal", name, "--json").rows
    assert {row["principal"] for row in replayed} == {principal}


def test_hostile_names_are_shown_harmless(what_if: WhatIf) -> None:
    name = "User:" + HOSTILE
    rows = [row | {"principal": name, "client_pattern": HOSTILE} for row in LOOP]
    printed = what_if(rows, "1", "--principal", name)
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
def test_wrong_use_is_told(what_if: WhatIf, words: list[str], message: str) -> None:
    assert message in what_if(LOOP, *words, code=2).err
