"""The command why: quotas of a client, and how it is called."""

from collections.abc import Callable
from typing import Any

import pytest

from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ... import case_tables
from ...cases import cases
from ...command_line import Command, Printed, in_options
from ...delta_tables import violation
from ...rows import HOSTILE, Row, at, request, row
from ...schemas.views.filled_views import FILLED
from ...schemas.views.test_client_diagnoses import among_healthy, minutes
from ...schemas.views.view_tables import make_tables, make_tables_and_answers

DAVE = {"principal": "User:dave", "client_id": "exports"}
Why = Callable[..., Printed]


def used(second: float, usage: float, limit: float | None = 20_000.0, **others: Any) -> Row:
    """A window of a client's bytes, under a quota of its user."""
    bucket = {"quota_level": 3, "quota": limit, "quota_bucket_user": "dave"} if limit else {}
    counts = {"request_count": 10, "throttled_requests": 0, "throttle_time_ms": 0.0}
    given = {"usage": usage, "quota_bucket_usage": usage, "is_estimated": False}
    given |= {"broker_id": 2, "quota_type": "producer_byte_rate", "enforcement": "stock"}
    return row("quota_usage", second, given | counts | bucket | DAVE | others)


def throttled(second: float, usage: float, **others: Any) -> Row:
    row = {"throttled_requests": 8, "throttle_time_ms": 9_000.0}
    return used(second, usage, **(row | {"throttled_by": "producer_byte_rate"} | others))


@pytest.fixture
def why(warehouse: Warehouse, table_command: Command) -> Why:
    """Runs the command over tables with these rows."""

    def run(content: dict[str, list[Row]], *arguments: str, code: int = 0) -> Printed:
        if content:
            make_tables(warehouse, content)
        return table_command("why", *arguments, "--all", code=code)

    return run


def test_a_throttled_client_is_told_its_limit_its_cause_and_what_helps(why: Why) -> None:
    rows = [
        throttled(0, 19_000.0),
        throttled(11, 63_000.0),
        used(22, 15_000.0, quota_type="consumer_byte_rate", quota=None, quota_level=None),
    ]
    requests = [request(5, "PRODUCE", **DAVE, client_software_name="librdkafka")]
    out = why({"quota_usage": rows, "requests": requests}, "dave").out
    assert "exports: producer_byte_rate most likely throttled 16 of 20 requests, for 18 s" in out
    assert "producer_byte_rate of user dave is 20.0 kB/s at each broker" in out
    assert "at 12:00:11 UTC the clients of this quota used 63.0 kB/s at broker 2 (315 %)" in out
    assert "--entity-type users --entity-name dave --add-config producer_byte_rate=40000" in out
    assert "User:dave as exports runs librdkafka 4.3.1 on 10.0.0.7, and sent 1 request" in out


@cases(
    ("options", "servers"),
    ("none that names the cluster", [], "BROKER:9092"),
    (
        "one that does",
        ["--set", "kafka.properties={bootstrap.servers: 'k1:9092'}"],
        "k1:9092",
    ),
)
def test_a_command_in_advice_names_the_brokers_that_are_given(
    why: Why, options: list[str], servers: str
) -> None:
    content = {"quota_usage": [throttled(0, 63_000.0), throttled(11, 63_000.0)]}
    assert f"--bootstrap-server {servers} " in why(content, "dave", *options).out
    listed = [("c1", 3, "k3", 9093), ("c1", 2, "fd00::2", 9094), ("c2", 1, "far", 9092)]
    columns = ("cluster_id", "broker_id", "host", "port")
    content = {
        "brokers": [
            row("brokers", 0, dict(zip(columns, each, strict=True)), is_removed=False)
            for each in listed
        ]
    }
    servers = servers if options else "'[fd00::2]:9094'"
    assert f"--bootstrap-server {servers} " in why(content, "dave", *options).out


def test_a_share_consumer_under_a_byte_quota_is_named_as_such(why: Why) -> None:
    share = {"quota_type": "consumer_byte_rate", "share_requests": 9, "is_lower_bound": True}
    rows = [throttled(0, 0.0, throttled_by="consumer_byte_rate", is_estimated=True, **share)]
    out = why({"quota_usage": rows}, "dave").out
    assert "consumer_byte_rate most likely throttled 8 of 10 requests, for 9 s in all. " in out
    assert "9 of 10 requests were SHARE_FETCH." in out
    assert "A throttled answer counts as a delivery, and its records reach no client" in out
    assert "clients of this quota used at least 0 bytes/s at broker 2 (0 %; in one of " in out
    assert "--add-config consumer_byte_rate=40000" in out


@pytest.mark.faults
def test_old_rows_are_of_a_minute_or_an_hour(why: Why) -> None:
    hour = {"rolled_up_s": 3_600, "period_s": 3_597, "peak_usage": 900.0, "windows": 9}
    rows = [
        throttled(0, 300.0, quota_bucket_usage=63_000.0, **hour),
        used(0, 100.0, quota_bucket_usage=15_000.0, **hour),
        used(0, 20.0, quota_bucket_usage=63_000.0, **hour | {"client_id": "b"}),
        used(0, 30.0, quota_bucket_usage=15_000.0, **hour | {"client_id": "b"}),
        used(-3_600, 5.0, **hour),
        used(86_400, 5.0, **DAVE | {"principal": "User:other"}),
    ]
    out = why({"quota_usage": rows}, "dave", "--at", at(1_800).isoformat()).out
    assert out.startswith("dave, 2026-11-21 12:00:00 to 13:00:00 UTC")
    assert "exports: producer_byte_rate most likely throttled 8 of 20 requests" in out
    assert (
        "in the hour from 12:00 UTC the clients of this quota used 63.0 kB/s at broker 2 (315 %)"
        in out
    )
    assert "It shares this quota with User:dave as b (50 bytes/s)." in out
    first = why({}, "dave", "--at", at(1_800).isoformat(), "--json").rows[0]
    assert first["evidence"]["usage"] == 900
    rows = [row | {"rolled_up_s": 60} for row in rows[:1]]
    out = why({"quota_usage": rows}, "dave").out
    assert "in the minute from 12:00 UTC" in out


def test_that_data_end_before_the_time_asked_for_is_a_note(why: Why) -> None:
    content = {"quota_usage": [throttled(0, 60_000.0)]}
    noted = why(content, "dave", "--at", at(600).isoformat()).err
    ends = "2026-11-21 12:01:00"
    assert f"no data of dave from {ends} to 2026-11-21 12:10:00 UTC: this is up to {ends}" in noted
    assert why({}, "dave", "--at", at(30).isoformat()).err == ""
    assert why({}, "dave").err == ""


def test_no_command_of_the_past_changes_what_is_set_today(why: Why) -> None:
    today = used(0, 10.0, 40_000.0)
    out = why(
        {"quota_usage": [throttled(-7_200, 60_000.0), today]},
        "dave",
        "--at",
        at(-7_140).isoformat(),
    ).out
    assert "8 of 10 requests" in out
    assert "raise the quota: `quotaflow show current_client_quotas` has today's" in out
    assert "--add-config" not in out


def test_a_burst_over_the_edge_of_two_windows_is_told_its_cause(why: Why) -> None:
    out = why({"quota_usage": [used(0, 16_000.0), throttled(11, 12_000.0)]}, "dave").out
    assert "8 of 20 requests" in out
    assert "producer_byte_rate most likely throttled" in out
    assert "(80 %; in one of the broker's own windows the use was over the quota)" in out
    assert "--entity-type users --entity-name dave --add-config producer_byte_rate=" in out


def test_what_request_time_throttled_is_not_laid_on_the_bytes(why: Why) -> None:
    rows = [used(0, 15_000.0), throttled(11, 12_000.0, throttled_by="request_percentage")]
    out = why({"quota_usage": rows}, "dave").out
    assert "request_percentage most likely throttled" in out
    assert "--add-config" not in out


def test_a_client_that_shares_a_bucket_is_told_with_whom(why: Why) -> None:
    shared = {"quota_bucket_usage": 20_500.0, "quota_level": 6}
    rows = [
        throttled(0, 2_000.0, **shared),
        *(used(0, 1_000.0 + n, client_id=f"other-{n}", **shared) for n in range(7)),
        used(0, 5.0, principal="User:bob", client_id="b", quota_bucket_user="bob", quota_level=6),
    ]
    out = why({"quota_usage": rows}, "exports").out
    assert "producer_byte_rate of the default user is 20.0 kB/s" in out
    assert "It shares this quota with User:dave as other-6 (1.0 kB/s), " in out
    assert "and 3 more." in out
    assert "--entity-type users --entity-default --add-config" in out
    assert "bob" not in out


@cases(("rows", "expected"), *case_tables.rows(__file__, "what_is_said", used, throttled))
def test_what_is_said(why: Why, rows: list[Row], expected: list[str]) -> None:
    out = why({"quota_usage": rows}, "User:dave").out
    assert [text for text in expected if text not in out] == []


@pytest.mark.faults
def test_only_the_span_that_is_asked_for_counts(why: Why) -> None:
    rows = [throttled(-3_600, 60_000.0), used(0, 10.0)]
    out = why({"quota_usage": rows}, "dave").out
    assert "No quota throttled " in out
    out = why({}, "dave", "--at", "2026-11-21T11:30:00Z").out
    assert "8 of 10 requests" in out
    out = why({}, "dave", "--for", "2h").out
    assert "8 of 20 requests" in out


def test_violations_of_the_producer_id_quota_are_told(why: Why) -> None:
    content = {"quota_usage": [used(0, 1.0)], "producer_id_rates": [violation("User:dave", at(3))]}
    out = why(content, "dave").out
    assert (
        "dave took new producer ids, up to 12 per second at broker 1; the quota of conf is 1.5"
        in out
    )
    assert "cause:" not in out


def test_seconds_over_the_producer_id_quota_are_those_of_one_broker(why: Why) -> None:
    """As many seconds of three brokers are no longer time."""
    rates = [violation("User:dave", at(s), broker_id=b) for s in range(9) for b in (1, 2, 3)]
    out = why({"quota_usage": [used(0, 1.0)], "producer_id_rates": rates}, "dave").out
    assert "exceeded the quota for 9 s;" in out


@cases(
    ("higher", "expected"),
    ("a second that exceeds the quota less", {"is_violating": True}, "up to 20 per second at br"),
    ("a second within the burst", {"is_violating": False}, "up to 20 per second at broker 2"),
)
def test_up_to_is_the_highest_rate(why: Why, higher: Row, expected: str) -> None:
    rates = [
        violation("User:dave", at(3)),
        violation("User:dave", at(4), broker_id=2, rate_per_s=20.0, throttle_time_ms=1, **higher),
    ]
    out = why({"quota_usage": [used(0, 1.0)], "producer_id_rates": rates}, "dave").out
    assert expected in out


def test_who_exceeds_no_quota_is_not_told_so(why: Why) -> None:
    rates = [violation("User:dave", at(3), is_violating=False)]
    out = why({"quota_usage": [used(0, 1.0)], "producer_id_rates": rates}, "dave").out
    assert "took new producer ids" not in out


@cases(
    ("arguments", "code", "expected"),
    ("misspelt", ["davee"], 1, "did you mean dave?"),
    ("too early", ["dave", "--at", "2020-01-01"], 1, "the tables have nothing on dave by 2020"),
    ("no time", ["dave", "--at", "soon"], 2, "--at 'soon': write how long ago"),
    ("no span", ["dave", "--for", "0s"], 2, "'0s' is no duration"),
    ("hostile", ["x'; DROP TABLE y; --"], 1, "no client, group, topic"),
    ("an ARN of nobody", ["arn:aws:iam::1:user/x"], 1, "did you mean"),
    ("two formats", ["dave", "--json", "--csv"], 2, "exclude each other"),
)
def test_wrong_use_is_one_clear_error(
    table_command: Command, warehouse: Warehouse, arguments: list[str], code: int, expected: str
) -> None:
    make_tables(warehouse, {"quota_usage": [used(0, 1.0, client_id="dave")]})
    assert expected in table_command.error("why", *arguments, code=code)


def test_a_principal_is_named_without_its_type(why: Why) -> None:
    name = "CN=orders.eu,OU=a b,O=x"
    rows = why({"quota_usage": [used(0, 5.0, principal=f"User:{name}")]}, name, "--json").rows
    assert {row["principal"] for row in rows} == {f"User:{name}", None}


def test_clusters_are_not_mixed(table_command: Command, warehouse: Warehouse, why: Why) -> None:
    rows = [
        used(0, 100.0, 1_000.0),
        throttled(0, 50.0, limit=50.0, cluster_id="c2", quota_bucket_usage=60.0),
        used(0, 10.0, 50.0, cluster_id="c2", principal="User:erin"),
    ]
    requests = [
        request(0, "PRODUCE", **DAVE | {"cluster_id": cluster_id})
        for cluster_id in ("c1", "c2", "c2")
    ]
    make_tables(warehouse, {"quota_usage": rows, "requests": requests})
    error = table_command.error("why", "dave")
    assert "the tables have clusters c1, c2: name one with --set kafka.cluster_id=ID" in error
    first, second = (in_options(f"kafka.cluster_id={name}") for name in ("c1", "c2"))
    out = why({}, "dave", *first).out
    assert "No quota throttled dave in this time." in out
    assert "1 request" in out
    assert "User:erin" not in out
    assert "8 of 10 requests" in why({}, "dave", *second).out
    assert "did you mean" in why({}, "erin", *first, code=1).err


def test_hostile_names_stay_text(why: Why) -> None:
    rows = [throttled(0, 63_000.0, client_id=HOSTILE, quota_bucket_user=HOSTILE)]
    assert "\u202e" not in why({"quota_usage": rows}, "dave").out
    first = why({}, HOSTILE, "--json").rows[0]
    assert first["client_id"] == HOSTILE
    assert first["evidence"]["set_for"] == f"user {HOSTILE}"


def test_once_a_snapshot_was_taken_no_quota_is_said_to_be_none(why: Why) -> None:
    content = {"quota_usage": [used(0, 15_000.0, None)], "settings": FILLED["settings"]}
    out = why(content, "dave").out
    assert "- No client quota limits " in out


def test_without_a_name_it_lists_open_incidents(
    table_command: Command, warehouse: Warehouse
) -> None:
    make_tables_and_answers(warehouse, {})
    assert table_command("why").out == "No incident is open.\n"
    rows = among_healthy(*minutes("User:bad", {"throttle": 900.0}))
    make_tables_and_answers(warehouse, rows)
    printed = table_command("why")
    assert printed.out.startswith("1 client waits for a quota")
    assert "bad" in printed.out
    assert (
        printed.err
        == "`quotaflow why bad` says what to do; run `quotaflow why` for each name above\n"
    )
    (incident,) = table_command("why", "--json").rows
    assert (incident["names"], incident["state"]) == (["bad"], "open")
    assert incident["since"].endswith("Z")


def test_a_broker_can_be_named_in_two_words(why: Why) -> None:
    content = {"quota_usage": [used(0, 9.0)], "brokers": [row("brokers", 0, {}, broker_id=1)]}
    assert why(content, "broker", "1").out.startswith("broker 1, 2026-11-21 ")
