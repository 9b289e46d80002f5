"""Which configs a restore restores, which wait, and which are somebody else's now."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from quotaflow.pipelines.feedback.configs.change import Operation
from quotaflow.pipelines.feedback.ledger.ledger import Ledger
from quotaflow.pipelines.feedback.planning import other_writers, restore_plan
from quotaflow.pipelines.feedback.planning.guards import SNAPSHOT, PlanPolicy

from ....cases import cases
from ....delta_tables import NOON
from ..fake_configs import (
    PLAIN,
    Clock,
    DictConfigs,
    FakeTables,
    ListJournal,
    applying,
    desired,
    planned,
)

KEY = "producer_byte_rate"
LIST = "leader.replication.throttled.replicas"
MALLORY = desired().entity
EVE = restore_plan.LaterWriter("User:eve", "SET", "1000")
SET_BY_EVE = {
    "cluster_id": "c1",
    "entity_type": "topic",
    "entity_name": "t",
    "entity_client_id": None,
    "config_key": LIST,
    "principal": "User:eve",
    "client_id": "adminclient-1",
    "operation": "SET",
    "config_value": "0:1,1:2",
}
LATER = NOON + timedelta(seconds=601)


def written(configs: DictConfigs, *rows: object) -> Ledger:
    """The ledger once these rows are applied at noon, for ten minutes."""
    journal = ListJournal()
    changes = planned(*rows).changes  # type: ignore[arg-type]
    applying(configs, journal).run("p1", changes)
    return journal.ledger


def returned(
    configs: DictConfigs,
    ledger: Ledger,
    now: datetime = LATER,
    by: restore_plan.LaterWriter | None = None,
) -> restore_plan.RestorePlan:
    owned = restore_plan.expired(ledger, now)
    actual = {entity: configs.read(entity) for entity, _ in owned}
    return restore_plan.plan_restore(owned, actual, dict.fromkeys(owned, by) if by else {}, PLAIN)


@pytest.mark.parametrize(
    ("prior", "operation", "command"),
    [
        (None, "DELETE", f"--delete-config {KEY}"),
        ("5000", "SET", f"--add-config {KEY}=5000"),
    ],
)
def test_what_stood_before_comes_back(prior: str | None, operation: str, command: str) -> None:
    configs = DictConfigs({MALLORY: {} if prior is None else {KEY: prior}})
    row = desired(config_value="2500", prior_value=prior)
    (change,) = returned(configs, written(configs, row)).changes
    assert (change.operation.name, change.value, change.purpose) == (operation, prior, "restore")
    assert change.command.endswith(f"--entity-name mallory {command}")
    assert change.desired.reason == "restored what plan p1 wrote: because"


def test_a_lease_holds_until_its_end() -> None:
    configs = DictConfigs()
    ledger = written(configs, desired())
    (owned,) = ledger.owned.values()
    assert owned.expires_at is not None
    assert restore_plan.expired(ledger, owned.expires_at - timedelta(microseconds=1)) == {}
    assert len(restore_plan.expired(ledger, owned.expires_at)) == 1
    assert len(restore_plan.expired(ledger, NOON, include_all=True)) == 1


@cases(
    ("now", "by", "why"),
    ("another value", {KEY: "7"}, None, "it is 7 now, and we wrote 1000"),
    ("removed", {}, EVE, "it is not set now, and we wrote 1000, set by User:eve"),
    (
        "the same, but meant by somebody else",
        {KEY: "1000"},
        EVE,
        "it is as we wrote it, set by User:eve since",
    ),
)
def test_somebody_else_s_later_change_stays(
    now: dict[str, str], by: restore_plan.LaterWriter | None, why: str
) -> None:
    configs = DictConfigs()
    ledger = written(configs, desired())
    configs.configs[MALLORY] = now
    restore = returned(configs, ledger, by=by)
    assert (restore.changes, [each.reason for each in restore.yielded]) == ((), [why])


def test_who_does_not_answer_waits() -> None:
    configs = DictConfigs()
    ledger = written(configs, desired())
    restore = restore_plan.plan_restore(restore_plan.expired(ledger, LATER), {}, {}, PLAIN)
    assert (restore.changes, restore.yielded, restore.unanswered) == ((), (), ((MALLORY, KEY),))


@cases(
    ("before", "since", "operation", "operand"),
    ("all are ours", None, "0:1,1:2", "DELETE", None),
    ("others before", "7:7", "7:7,0:1,1:2", "SUBTRACT", "0:1,1:2"),
    ("others since", None, "0:1,1:2,8:8", "SUBTRACT", "0:1,1:2"),
    ("one was removed already", "7:7", "7:7,1:2", "SUBTRACT", "1:2"),
)
def test_of_a_list_our_entries_go_and_others_stay(
    before: str | None, since: str, operation: str, operand: str | None
) -> None:
    value = ",".join(filter(None, [before, "0:1,1:2"]))
    columns = {"entity_type": "topic", "config_key": LIST, "config_value": value}
    row = desired("t", **columns, prior_value=before)
    configs = DictConfigs({row.entity: {} if before is None else {LIST: before}})
    ledger = written(configs, row)
    configs.configs[row.entity][LIST] = since
    (change,) = returned(configs, ledger).changes
    assert (change.operation.name, change.operation.operand) == (operation, operand)


@cases(
    ("operation", "operand", "taken"),
    ("all named", "SET", "0:1,1:2,8:8", None),
    ("one named", "SET", "1:2,8:8", "0:1"),
    ("not shown", "SET", None, None),
    ("others' added", "APPEND", "8:8", "0:1,1:2"),
    ("one is theirs too", "APPEND", "0:1,8:8", "1:2"),
    ("theirs go", "SUBTRACT", "9:9", "0:1,1:2"),
)
def test_entries_that_somebody_else_named_since_are_theirs(
    operation: str, operand: str | None, taken: str | None
) -> None:
    """A move that set the list whole has throttles of its own on replicas that were ours."""
    columns = {"entity_type": "topic", "config_key": LIST, "config_value": "0:1,1:2"}
    row = desired("t", **columns)
    configs = DictConfigs({row.entity: {}})
    ledger = written(configs, row)
    configs.configs[row.entity][LIST] = "0:1,1:2,8:8"
    restore = returned(configs, ledger, by=restore_plan.LaterWriter("User:eve", operation, operand))
    assert [(c.operation.name, c.operation.operand) for c in restore.changes] == (
        [] if taken is None else [("SUBTRACT", taken)]
    )
    assert [each.reason for each in restore.yielded] == (
        ["its entries that were ours are there, set by User:eve since"] if taken is None else []
    )


def test_an_entry_somebody_else_named_between_two_writes_of_ours_stays() -> None:
    """Their move set the list whole; that we added to it later makes none of it ours."""
    columns = {"entity_type": "topic", "config_key": LIST}
    configs, journal, clock = DictConfigs(), ListJournal(), Clock()
    topic = desired("t", **columns).entity
    for value, prior in (("0:1", None), ("0:1,1:2,2:3", "0:1,1:2")):
        seen = PlanPolicy(lease_s=600, inputs_at={SNAPSHOT: clock.now})
        row = desired("t", **columns, config_value=value, prior_value=prior)
        changes = planned(row, bounds=seen, ledger=journal.ledger, now=clock.now).changes
        applying(configs, journal, f"r{value}", clock).run("p", changes)
        clock.now += timedelta(hours=1)
        configs.configs[topic][LIST] = "0:1,1:2" if prior is None else "0:1,1:2,2:3"
        clock.now += timedelta(hours=1)
    (owned,) = journal.ledger.owned.values()
    named = {entry: at.hour for entry, at in owned.entry_times.items()}
    assert named == {"0:1": 12, "2:3": 14}
    moving = {**SET_BY_EVE, "altered_at": NOON + timedelta(hours=1)}
    by = other_writers.later_writers(
        FakeTables([moving]), {}, None, {(topic, LIST): owned.entry_times}
    )
    restore = returned(configs, journal.ledger, clock.now, by[topic, LIST])
    assert [c.operation for c in restore.changes] == [Operation("SUBTRACT", "2:3")]


def test_an_entry_that_we_named_anew_is_ours_since_then() -> None:
    columns = {"entity_type": "topic", "config_key": LIST}
    configs, journal, clock = DictConfigs(), ListJournal(), Clock()
    for _ in range(2):
        row = desired("t", **columns, config_value="0:1")
        changes = planned(
            row, bounds=PlanPolicy(inputs_at={SNAPSHOT: clock.now}), now=clock.now
        ).changes
        applying(configs, journal, f"r{clock.now}", clock).run("p", changes)
        configs.configs.clear()
        clock.now += timedelta(hours=1)
    (owned,) = journal.ledger.owned.values()
    assert {entry: at.hour for entry, at in owned.entry_times.items()} == {"0:1": 13}


def test_entries_that_are_gone_are_nobody_s_to_give_back() -> None:
    columns = {"entity_type": "topic", "config_key": LIST, "config_value": "0:1"}
    row = desired("t", **columns)
    configs = DictConfigs({row.entity: {}})
    ledger = written(configs, row)
    configs.configs[row.entity] = {LIST: "7:7"}
    restore = returned(configs, ledger)
    assert restore.changes == ()
    assert "none of its entries that were ours" in restore.yielded[0].reason


def test_what_was_removed_is_not_given_back() -> None:
    row = desired(config_value=None, prior_value="5")
    configs = DictConfigs({MALLORY: {KEY: "5"}})
    assert restore_plan.expired(written(configs, row), LATER, include_all=True) == {}


def test_a_resource_somebody_changed_a_part_of_is_theirs_whole() -> None:
    columns = {"entity_type": "client-metrics"}
    rows = [
        desired("r", config_key="metrics", config_value="org.a.", **columns),
        desired("r", config_key="interval.ms", config_value="60000", **columns),
    ]
    configs = DictConfigs()
    ledger = written(configs, *rows)
    configs.configs[rows[0].entity]["interval.ms"] = "1000"
    restore = returned(configs, ledger)
    assert restore.changes == ()
    assert {each.key[1] for each in restore.yielded} == {"metrics", "interval.ms"}


def test_a_resource_is_given_back_whole_once_the_last_of_its_leases_is_over() -> None:
    """A resource without its match subscribes every client."""
    keys = {"metrics": "org.a.", "interval.ms": "60000", "match": "client_instance_id=" + "A" * 22}
    rows = [
        desired("r", config_key=key, config_value=value, entity_type="client-metrics")
        for key, value in keys.items()
    ]
    ledger = written(DictConfigs(), *rows)
    later = {
        key: replace(config, expires_at=LATER + timedelta(seconds=600))
        if key[1] != "match"
        else config
        for key, config in ledger.owned.items()
    }
    renewed = replace(ledger, owned=later)
    assert restore_plan.expired(renewed, LATER) == {}
    assert len(restore_plan.expired(renewed, LATER + timedelta(seconds=600))) == 3
    assert len(restore_plan.expired(renewed, NOON, include_all=True)) == 3
