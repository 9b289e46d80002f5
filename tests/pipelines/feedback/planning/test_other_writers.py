"""Later writers of our configs, and other config managers."""

from datetime import timedelta
from typing import Any

from quotaflow.pipelines.config.plan import PlanSection
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.pipelines.feedback.ledger.ledger import Ledger
from quotaflow.pipelines.feedback.planning import other_writers, restore_plan
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ....cases import cases
from ....delta_tables import NOON
from ....rows import Row, altered, at, setting
from ....schemas.views.view_tables import make_tables
from ..fake_configs import DictConfigs, FakeTables, ListJournal, applying, desired, planned

KEY = "producer_byte_rate"


def owning_ledger() -> Ledger:
    journal = ListJournal()
    changes = planned(desired()).changes
    applying(DictConfigs(), journal).run("p", changes)
    return journal.ledger


@cases(
    ("after_s", "name", "own", "is_later_writer"),
    ("after us", 5, "mallory", "User:ops", True),
    ("after us, by an unknown login", 5, "mallory", None, True),
    ("the login that gives back", 5, "mallory", "User:eve", False),
    ("not after the time", 3, "mallory", "User:ops", False),
    ("before us", -5, "mallory", "User:ops", False),
    ("another user", 5, "eve", "User:ops", False),
    ("the default of all users", 5, "", "User:ops", False),
)
def test_a_setter_is_who_wrote_after_us(
    after_s: float, name: str, own: str | None, is_later_writer: bool
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
    since = dict.fromkeys(owning_ledger().owned, NOON + timedelta(seconds=4))
    writers = other_writers.later_writers(FakeTables([writer]), since, own)
    expected = restore_plan.LaterWriter(
        f"User:eve ({'x' * 100}) at 2026-11-21 12:00:05 UTC", "SET", "5"
    )
    assert list(writers.values()) == ([expected] if is_later_writer else [])


LEADERS = "leader.replication.throttled.replicas"
LIST = ConfigEntity("c1", "topic", "orders"), LEADERS


def by(
    principal: str, second: float, value: str | None, operation: str = "SET", **others: Any
) -> Row:
    columns = {"principal": principal, "operation": operation, "source_offset": second}
    return altered(second, LEADERS, value, **(columns | others))


@cases(
    ("alterations", "theirs"),
    ("a list set whole", [by("User:eve", 3, "0:1,1:2")], "0:1"),
    (
        "and we added to it after that",
        [by("User:eve", 3, "0:1,1:2"), by("User:us", 5, "2:3", "APPEND")],
        "0:1",
    ),
    ("two of them", [by("User:eve", 3, "0:1"), by("User:bob", 6, "2:3", "APPEND")], "0:1,2:3"),
    ("what the log does not show names all", [by("User:eve", 3, None)], "0:1"),
    ("removed", [by("User:eve", 3, None, "DELETE")], None),
    ("named before we did", [by("User:eve", 3, "2:3", "APPEND")], None),
    ("taken away", [by("User:eve", 6, "0:1", "SUBTRACT")], None),
    ("refused", [by("User:eve", 3, "0:1", error_code=42)], None),
    ("by us", [by("User:us", 3, "0:1")], None),
    ("by the login that gives back", [by("User:other", 3, "0:1")], None),
    ("of another topic", [by("User:eve", 3, "0:1", entity_name="o")], None),
)
def test_an_entry_is_of_whoever_else_named_it_since_we_did(
    warehouse: Warehouse, alterations: list[Row], theirs: str | None
) -> None:
    """Two moves have a throttle each in one list, so its last alteration is not enough."""
    content = {"config_alterations": alterations, "settings": [setting("own_principal", "User:us")]}
    make_tables(warehouse, content)
    named = {LIST: {"0:1": at(2), "2:3": at(5)}}
    writers = other_writers.later_writers(FolderReader(warehouse), {}, "User:other", named)
    assert {key: setter.operand for key, setter in writers.items()} == (
        {} if theirs is None else {LIST: theirs}
    )


def test_who_named_entries_is_told_though_we_altered_the_list_last(warehouse: Warehouse) -> None:
    alterations = [by("User:eve", 3, "0:1"), by("User:us", 5, "2:3", "APPEND")]
    content = {"config_alterations": alterations, "settings": [setting("own_principal", "User:us")]}
    make_tables(warehouse, content)
    named, since = {LIST: {"0:1": at(2), "2:3": at(5)}}, {LIST: at(5)}
    writers = other_writers.later_writers(FolderReader(warehouse), since, None, named)
    assert writers[LIST].writer.startswith("User:eve (")
    assert writers[LIST].claimed_entries(frozenset({"0:1", "2:3"})) == {"0:1"}


def manager(**others: Any) -> dict[str, Any]:
    row = {"kind": "strimzi", "principal": "User:op", "client_id": "strimzi-1"}
    row |= {"entity_types": "topic,user", "evidence_code": "requests"}
    row |= {"evidence": "ALTER_CLIENT_QUOTAS", "recent_entities": 40}
    return row | {"last_seen": NOON - timedelta(hours=1)} | others


@cases(
    ("row", "types"),
    ("active, and its users are the operator's", manager(), {"topic"}),
    ("an unknown Java program", manager(kind="admin_client"), {"topic", "user"}),
    ("an unknown program", manager(kind="other"), {"topic", "user"}),
    ("a person", manager(kind="other", recent_entities=4), set()),
    ("a known program", manager(kind="terraform", recent_entities=1), {"topic", "user"}),
    ("a person of conf", manager(kind="other", principal="User:person"), set()),
    (
        "a program with that login",
        manager(kind="terraform", principal="User:person"),
        {"topic", "user"},
    ),
    ("tolerated", manager(kind="quotaflow"), set()),
    ("long ago", manager(last_seen=NOON - timedelta(days=2)), set()),
    ("who moves replicas", manager(kind="topicctl", entity_types="replicas"), {"broker", "topic"}),
    (
        "a trace",
        manager(kind="cruise_control", entity_types=None, last_seen=None),
        {"broker", "topic"},
    ),
    ("an unknown trace", manager(kind="jikkou", entity_types=None), {"user", "topic", "broker"}),
)
def test_a_manager_s_entities_are_its_own(row: dict[str, Any], types: set[str]) -> None:
    tolerated = PlanSection().tolerated_managers
    managers = other_writers.managers(FakeTables([row]), NOON, tolerated, operators=["User:person"])
    assert set(managers.by_type) == types


def test_a_manager_is_named_with_what_shows_it() -> None:
    assert other_writers.managers(FakeTables([manager()]), NOON, []).by_type["topic"] == (
        "strimzi (User:op (strimzi-1), ALTER_CLIENT_QUOTAS, last seen 2026-11-21 11:00:00 UTC)"
    )
