"""What open alerts ask of clients, and what configured resources give them."""

from collections.abc import Iterable
from typing import Any

import pytest

from ...cases import cases
from ...rows import INSTANCE, LONG_AGO, Row, alert, at, config, push
from .view_tables import Tables, by_case, picked, signals, view

ID = "vl7CCx68Qw29SsxmLSK4Xg"
ASK = {"subscribe_metrics": "a.,b.", "subscribe_interval_ms": 10_000, "bound": 5e3, "metric": "a.x"}
NAME = "quotaflow-alert-slow"


def live(client_instance_id: str = ID, **others: Any) -> Row:
    """A client that asked just now."""
    answer = {"event_time": at(0), "error_code": 0, "push_interval_ms": 10_000}
    return {**INSTANCE, "client_instance_id": client_instance_id} | answer | others


def opened(client_instance_id: str | None = ID, **others: Any) -> Row:
    key = {"alert_id": client_instance_id or "a", "client_instance_id": client_instance_id}
    return alert(200, "opened") | key | ASK | others


LEASE = "quotaflow-troubleshoot-x-until-9"
DESIRED: dict[str, Tables] = {
    "an open alert": {"metric_alert_events": [opened()], "telemetry_subscriptions": [live()]},
    "alerts of one rule": {
        "metric_alert_events": [
            opened("b", unit="ms"),
            opened("a", unit="ms"),
            opened("a", unit="ms", alert_id="another series"),
        ],
        "telemetry_subscriptions": [live("a"), live("b")],
    },
    "the end of the alerts": {
        "configs": [
            config(0, "metrics", "a.", entity_name=NAME),
            *(config(0, "metrics", "b.", entity_name=name) for name in ("theirs", LEASE)),
        ]
    },
    "a part is there already": {
        "metric_alert_events": [opened()],
        "telemetry_subscriptions": [live()],
        "configs": [config(0, "interval.ms", "10000", entity_name=NAME)],
    },
}


@pytest.fixture(scope="module")
def desired() -> dict[str, list[Row]]:
    return by_case(DESIRED, "SELECT * FROM desired_configs ORDER BY entity_name, config_key")


def test_an_open_alert_asks_its_client_for_more(desired: dict[str, list[Row]]) -> None:
    actual = desired["an open alert"]
    assert picked(actual, "entity_type", "entity_name", "config_key", "config_value") == [
        ("client-metrics", NAME, "interval.ms", "10000"),
        ("client-metrics", NAME, "match", f"client_instance_id={ID}"),
        ("client-metrics", NAME, "metrics", "a.,b."),
    ]
    assert {row["prior_value"] for row in actual} == {None}
    assert {row["since"] for row in actual} == {opened()["event_time"]}


def test_alerts_of_one_rule_share_one_subscription(desired: dict[str, list[Row]]) -> None:
    match = desired["alerts of one rule"][1]
    assert match["config_value"] == "client_instance_id=a|b"
    names = ("reason_code", "reason_detail", "subject")
    assert picked([match], *names) == [("alert_open", "slow", "a.x")]
    numbers = {"clients": 2, "omitted_clients": 0, "pushes_per_s": 0.2, "wire_bytes_per_s": None}
    assert signals(match) == {"bound": 5e3} | numbers
    assert match["evidence"][0]["unit"] == "ms"


def test_the_end_of_the_alerts_takes_the_subscription_back(desired: dict[str, list[Row]]) -> None:
    names = ("entity_name", "config_key", "config_value", "prior_value")
    assert picked(desired["the end of the alerts"], *names) == [
        (NAME, "metrics", None, "a."),
        (LEASE, "metrics", None, "b."),
    ]


def test_what_is_there_already_is_the_prior_value(desired: dict[str, list[Row]]) -> None:
    assert picked(desired["a part is there already"], "config_key", "prior_value") == [
        ("interval.ms", "10000"),
        ("match", None),
        ("metrics", None),
    ]


def proposals(events: list[Row], clients: list[Row], pushes: Iterable[Row] = ()) -> list[Row]:
    content = {"metric_alert_events": events, "telemetry_subscriptions": clients}
    return view("subscription_proposals", content | {"telemetry_pushes": [*pushes]})


def test_a_subscription_is_forecast_before_it_is_written() -> None:
    sizes = {"a": (100, 300), "b": (1_000,)}
    pushes = [
        push(n, client_instance_id=client, wire_bytes=size, payload_sha256=f"{client}{size}")
        for client, of_client in sizes.items()
        for n, size in enumerate(of_client)
    ]
    ask = signals(proposals([opened("a"), opened("b")], [live("a"), live("b")], pushes)[0])
    assert (ask["pushes_per_s"], ask["wire_bytes_per_s"]) == (0.2, 120.0)


@cases(
    ("event", "client"),
    ("a rule that asks for nothing", opened(subscribe_metrics=None), live()),
    ("a client without an instance", opened(client_instance_id=None), live()),
    ("a client no broker knows", opened(), live("another")),
    ("another cluster's", opened(cluster_id="c2"), live()),
    ("an alert that ended", opened(state="closed", reason="cleared"), live()),
)
def test_nothing_is_asked_of(event: Row, client: Row) -> None:
    assert proposals([event], [client]) == []


def test_a_config_holds_from_snapshot_to_snapshot() -> None:
    seen = [config(second, "metrics", text) for second, text in ((0, "a."), (60, "b."), (90, None))]
    history = view("config_history ORDER BY valid_from", {"configs": seen})
    assert picked(history, "config_value", "previous_value", "valid_from", "valid_to") == [
        ("a.", None, at(0), at(60)),
        ("b.", "a.", at(60), at(90)),
    ]
    assert view("current_configs", {"configs": seen}) == []


def test_a_subscription_and_whom_it_matches() -> None:
    given = [
        {"subscriptions": ["all"], "state": "as_predicted"},
        {"subscriptions": ["all", "b"], "state": "differs"},
        {"subscriptions": [], "state": "pending"},
    ]
    clients = [live(f"i{number}", **row) for number, row in enumerate(given)]
    configs = [
        config(0, "interval.ms", "900000"),
        config(0, "metrics", "a."),
        config(0, "match", "client_id=o.*"),
        config(0, "metrics", "*", entity_name="nobody"),
    ]
    content = {"client_subscriptions": clients, "configs": configs}
    actual = view("metric_subscriptions ORDER BY subscription", content)
    names = ("subscription", "metrics", "interval_ms", "effective_interval_ms", "match")
    assert picked(actual, *names) == [
        ("all", "a.", 900_000, 300_000, "client_id=o.*"),
        ("nobody", "*", None, None, None),
    ]
    counted = picked(actual, "matched_clients", "pending", "mispredicted_clients")
    assert counted == [(2, 0, 1), (0, 0, 0)]


def test_alerts_of_long_ago_still_open_are_asked_first() -> None:
    ask = proposals([opened(), opened("b", event_time=LONG_AGO)], [live(), live("b")])[0]
    assert ask["since"] == LONG_AGO
    assert signals(ask).items() >= {"clients": 2, "omitted_clients": 0}.items()
