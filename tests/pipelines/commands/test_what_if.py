"""The command what-if: new ids of the tables under another quota."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ... import case_tables
from ...cases import cases
from ...command_line import Command, Printed
from ...rows import HOSTILE, Row, quota, request, use
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


PART = {"topic": "clicks", "partition": 0, "in_request": True, "in_response": True, "bytes": 30_000}
WRITE = {"partitions": [PART], "connection_id": "c1", "throttle_time_ms": 0.0}
WRITES = [row | WRITE for row in (request(n, "PRODUCE", client_id="exports") for n in range(60))]
OTHERS = [row | {"client_id": "audit", "connection_id": "c2"} for row in WRITES]
NOBODY_WAITED = {"throttled_before": 0, "throttle_ms_before": 0}


@pytest.fixture
def what_if_quota(table_command: Command, warehouse: Warehouse) -> WhatIf:
    """Replays requests under a quota of bytes."""

    def run(rows: list[Row], quotas: list[Row], *words: str, code: int = 0) -> Printed:
        make_tables(warehouse, {"requests": rows, "client_quotas": quotas})
        since = () if "--since" in words else ("--since", "2026-11-21T11:00:00Z")
        return table_command("what-if", "quota", *words, *since, code=code)

    return run


def test_a_quota_throttles_all_that_share_it(what_if_quota: WhatIf) -> None:
    printed = what_if_quota(WRITES + OTHERS, [], *USER, "30000", "--json")
    assert sorted(row["client_id"] for row in printed.rows) == ["audit", "exports"]
    for row in printed.rows:
        assert (row["principal"], row["requests"]) == ("User:alice", 60)
        assert row["throttled_after"] > 0
        assert row.items() >= NOBODY_WAITED.items()
    assert (
        "It would throttle clients that no quota throttled so far: audit, exports." in printed.err
    )


USER = ("--user", "alice", "--producer-byte-rate")


@cases(
    ("weights", "shown"),
    ("sampled", (1_000.0, 1.0), "rests on 60 lines that stand for 30,030 requests."),
    ("whole", (1.0, None), None),
)
def test_a_replay_of_a_sampled_log_names_its_lines(
    what_if_quota: WhatIf, weights: tuple[float | None, ...], shown: str | None
) -> None:
    sampled = [row | {"weight": weights[n % 2]} for n, row in enumerate(WRITES)]
    printed = what_if_quota(sampled, [], *USER, "30000")
    assert ("stand for" in printed.err) is (shown is not None)
    assert (shown or "") in " ".join(printed.err.split())


@cases(
    ("quotas", "words", "clients"),
    *case_tables.rows(__file__, "who_shares_a_quota", quota, USER=USER),
)
def test_who_shares_a_quota(
    what_if_quota: WhatIf, quotas: list[Row], words: tuple[str, ...], clients: list[str]
) -> None:
    printed = what_if_quota(WRITES + OTHERS, quotas, *words, "--json")
    assert sorted(row["client_id"] for row in printed.rows) == clients


def test_a_user_s_quota_leaves_a_client_id_s_alone(what_if_quota: WhatIf) -> None:
    quotas = [quota(0, "producer_byte_rate", 9.0, user="alice")]
    words = ("--client-id", "audit", "--producer-byte-rate", "1000", "--json")
    assert what_if_quota(OTHERS, quotas, *words).rows == []


def test_the_replay_at_the_quota_of_today_shows_how_true_it_is(what_if_quota: WhatIf) -> None:
    waited = [row | {"throttle_time_ms": 500.0} for row in WRITES]
    quotas = [quota(0, "producer_byte_rate", 20_000.0, user="alice")]
    printed = what_if_quota(waited, quotas, *USER, "90000")
    assert "brokers throttled PRODUCE for 30 s since 2026-11-21 11:00:00 UTC." in printed.err
    assert "At 90.0 kB/s they would throttle it for 0 ms." in printed.err
    assert "The same replay at today's quota, 20.0 kB/s, gives" in printed.err


@cases(
    ("words", "message"),
    ("nobody", ["--producer-byte-rate", "1"], "whose quota? Name --user, --client-id or both"),
    ("no rate", ["--user", "alice"], "name one of --producer-byte-rate and --consumer-byte-rate"),
    ("zero", [*USER, "0"], "--producer-byte-rate is 0, and must be at least 1000"),
    ("a user misspelt", ["--user", "alise", *USER[2:], "1000"], "(did you mean User:alice?)"),
    ("no fetches", [*USER[:2], "--consumer-byte-rate", "1000"], "no FETCH since"),
    ("a principal", [*USER, "1", "--principal", "alice"], "--principal does not go with quota"),
)
def test_wrong_use_of_a_quota_is_one_error(
    what_if_quota: WhatIf, words: list[str], message: str
) -> None:
    assert message in what_if_quota(WRITES, [], *words, code=2).err


def test_a_quota_of_bytes_needs_its_action(table_command: Command) -> None:
    printed = table_command("what-if", *USER, "1", code=2)
    assert "--producer-byte-rate does not go with producer-ids" in printed.err
    assert "which rate?" in table_command("what-if", code=2).err


def test_without_a_time_it_is_the_last_day_of_the_tables(
    table_command: Command, warehouse: Warehouse
) -> None:
    old = [row | {"event_time": row["event_time"] - timedelta(days=2)} for row in OTHERS]
    make_tables(warehouse, {"requests": WRITES + old, "client_quotas": []})
    rows = table_command("what-if", "quota", *USER, "1000", "--json").rows
    assert [row["client_id"] for row in rows] == ["exports"]
