"""Who changed what after us, and which programs manage configs too."""

from datetime import timedelta
from typing import Any

import pytest

from quotaflow.pipelines.feedback import others, restore
from quotaflow.pipelines.feedback.guards import Bounds
from quotaflow.pipelines.feedback.kafka_configs import Connection
from quotaflow.pipelines.feedback.ledger import Ledger
from quotaflow.pipelines.feedback.plan import plan

from .made_up import NOON, DictConfigs, ListJournal, applying, desired

KEY = "producer_byte_rate"


def held() -> Ledger:
    journal = ListJournal()
    changes = plan([desired()], NOON, Bounds(), Connection("b:9092")).changes
    applying(DictConfigs(), journal).run("p", changes)
    return journal.ledger


@pytest.mark.parametrize(
    ("after_s", "name", "own", "told"),
    [
        pytest.param(5, "mallory", "User:ops", True, id="after us"),
        pytest.param(5, "mallory", None, True, id="after whoever we are"),
        pytest.param(5, "mallory", "User:eve", False, id="the login that gives back"),
        pytest.param(3, "mallory", "User:ops", False, id="no later than was asked"),
        pytest.param(-5, "mallory", "User:ops", False, id="before us"),
        pytest.param(5, "eve", "User:ops", False, id="another user"),
        pytest.param(5, "", "User:ops", False, id="the default of all users"),
    ],
)
def test_a_setter_is_who_wrote_after_us(
    after_s: float, name: str, own: str | None, told: bool
) -> None:
    writer = {
        "cluster_id": "c1",
        "entity_type": "user",
        "entity_name": name,
        "entity_client_id": None,
        "config_key": KEY,
        "principal": "User:eve",
        "client_id": "x" * 500,
        "altered_at": NOON + timedelta(seconds=after_s),
        "operation": "SET",
        "config_value": "5",
    }
    since = dict.fromkeys(held().owned, NOON + timedelta(seconds=4))
    found = others.setters(lambda _: [writer], since, own)
    said = restore.Setter(f"User:eve ({'x' * 100}) at 2026-11-21 12:00:05 UTC", "SET", "5")
    assert list(found.values()) == ([said] if told else [])


def manager(**of: Any) -> dict[str, Any]:
    row = {"kind": "strimzi", "principal": "User:op", "client_id": "strimzi-1"}
    row |= {"entity_types": "topic,user", "evidence": "ALTER_CLIENT_QUOTAS"}
    return row | {"last_seen": NOON - timedelta(hours=1)} | of


@pytest.mark.parametrize(
    ("row", "types"),
    [
        (manager(), {"topic", "user"}),
        (manager(kind="other"), set()),
        (manager(last_seen=NOON - timedelta(days=2)), set()),
        (manager(kind="topicctl", entity_types="replicas"), {"broker", "topic"}),
        (manager(kind="cruise_control", entity_types=None, last_seen=None), {"broker", "topic"}),
        (manager(kind="jikkou", entity_types=None), {"user", "topic", "broker"}),
    ],
    ids=["active", "tolerated", "long gone", "who moves replicas", "a trace", "an unknown trace"],
)
def test_a_manager_s_entities_are_its_own(row: dict[str, Any], types: set[str]) -> None:
    assert set(others.managers(lambda _: [row], NOON, ["other"])) == types


def test_a_manager_is_named_with_what_shows_it() -> None:
    assert others.managers(lambda _: [manager()], NOON, [])["user"] == (
        "strimzi (User:op (strimzi-1), ALTER_CLIENT_QUOTAS, last seen 2026-11-21 11:00:00 UTC)"
    )
