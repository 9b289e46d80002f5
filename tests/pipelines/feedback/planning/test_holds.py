"""The operator's hand wins: what somebody else set last stays, until a person releases it."""

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.feedback.configs.change import DELETE, SET
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity, DesiredConfig
from quotaflow.pipelines.feedback.ledger.ledger import YIELDED, Ledger
from quotaflow.pipelines.feedback.planning.guards import SNAPSHOT, PlanPolicy
from quotaflow.pipelines.feedback.planning.holds import (
    Alteration,
    SeenConfig,
    hold_reason,
    holds,
    release_command,
)
from quotaflow.pipelines.feedback.runs import context, release_run
from quotaflow.pipelines.feedback.runs.release_run import Release, Request, record
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.configs import LEADER_RATE, LEADER_REPLICAS

from ....delta_tables import NOON
from ..fake_configs import Clock, DictConfigs, ListJournal, applying, desired, planned
from ..scene import Scene

KEY = desired().key
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
ON_CALL = "User:eve (adminclient-3) at 2026-11-21 12:05:00 UTC"


def altered(
    at: float, value: str | None = "50000000", *, is_own: bool = False, operation: str = SET
) -> Alteration:
    """An alteration so many minutes after noon."""
    return Alteration(NOON + at * MINUTE, ON_CALL, operation, value, is_own=is_own)


def written(value: str = "1000", minutes: float = 0) -> ListJournal:
    """A journal in which we set the quota so many minutes after noon."""
    journal = ListJournal()
    row = desired(config_value=value)
    made = planned(row, bounds=PlanPolicy(lease_s=3600))
    clock = Clock(NOON + minutes * MINUTE)
    applying(DictConfigs(), journal, f"r{minutes}", clock).run("p", made.changes)
    return journal


def yielded(journal: ListJournal, minutes: float) -> ListJournal:
    last = replace(
        journal.records[-1],
        step=YIELDED,
        event_time=NOON + minutes * MINUTE,
        run_id="y",
        detail="X",
    )
    journal.add([last])
    return journal


def released(journal: ListJournal, minutes: float, value: str | None) -> ListJournal:
    made = Release(KEY, value, "eve set it")
    journal.add([record(made, f"release {minutes}", NOON + minutes * MINUTE)])
    return journal


@pytest.fixture
def scene(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(warehouse, monkeypatch)


NOBODY = ListJournal()


REMOVED = altered(5, None, operation=DELETE)
SET_LATER = altered(5)
THEIRS = "50000000"
CASES: dict[str, tuple[ListJournal, Alteration | None, str | None, str | None]] = {
    "nobody ever set it": (NOBODY, None, None, None),
    "others set it": (NOBODY, SET_LATER, THEIRS, "eve.*set it, so it is theirs"),
    "others removed it": (NOBODY, REMOVED, None, "eve.*removed it"),
    "no log shows the setter": (NOBODY, None, "9", "before the request log began"),
    "our login set it": (NOBODY, altered(-60, is_own=True), THEIRS, None),
    "another login of ours set it": (written(), altered(0, "1000"), "1000", None),
    "set after us": (written(), SET_LATER, THEIRS, "eve.*12:05"),
    "the same value, set after us": (written(), altered(5, "1000"), "1000", "eve"),
    "removed after us": (written(), REMOVED, None, "removed it"),
    "ours is later": (written(minutes=6), SET_LATER, "1000", None),
    "another value, and no log": (written(), None, "7", "it is 7, and we wrote 1000"),
    "removed, and no log": (written(), None, None, "it is not set, and we wrote"),
    "the same value in other words": (written(), None, "1000.0", None),
    "we yielded it": (yielded(written(), 9), None, "7", "left to others.*X"),
    "yielded and released": (released(yielded(written(), 9), 10, "7"), None, "7", None),
    "released after it was set": (released(written(), 10, THEIRS), SET_LATER, THEIRS, None),
    "set after the release": (released(written(), 4, "1000"), SET_LATER, THEIRS, "eve"),
    "released, and no log shows it": (released(ListJournal(), 4, "9"), None, "9", None),
    "another since, and no log": (released(ListJournal(), 4, "9"), None, "8", "was set since"),
    "not as the log has it": (NOBODY, altered(-60, "5", is_own=True), "9", "was set since"),
}


@pytest.mark.parametrize("case", CASES)
def test_who_may_change_a_config(case: str) -> None:
    journal, last, value, why = CASES[case]
    actual = hold_reason(KEY, SeenConfig(value, NOON + 20 * MINUTE), last, journal.ledger)
    if why is None:
        assert actual is None
    else:
        assert actual is not None
        assert re.search(why, actual)
        assert f"{release_command(KEY)} lets plans change it" in actual


@pytest.mark.parametrize("key", [LEADER_RATE.key, LEADER_REPLICAS.key])
def test_throttles_of_replication_are_decided_entry_by_entry(key: str) -> None:
    entity = ConfigEntity("c1", "broker", "1")
    assert hold_reason((entity, key), SeenConfig("9", NOON), altered(5), Ledger()) is None


@pytest.mark.parametrize(
    ("entity", "command"),
    [
        (ConfigEntity("c1", "user", "a b"), "quotaflow release 'user/a b' k"),
        (ConfigEntity("c1", "user", "a", "c d"), "quotaflow release user/a k --client-id 'c d'"),
        (ConfigEntity("c1", "ip", "10.0.0.1"), "quotaflow release ip/10.0.0.1 k"),
        (ConfigEntity("c1", "user", None), "quotaflow release user k"),
    ],
)
def test_the_command_names_the_entity(entity: ConfigEntity, command: str) -> None:
    assert release_command((entity, "k")) == command


def plan_of(row: DesiredConfig, journal: ListJournal, last: Alteration | None, at: float) -> Any:
    now = NOON + at * MINUTE
    seen = {row.key: SeenConfig(row.prior_value, now)}
    alterations = {} if last is None else {row.key: last}
    policy = PlanPolicy(
        lease_s=3600,
        inputs_at={SNAPSHOT: now},
        holds=holds(seen, alterations, journal.ledger),
    )
    return planned(row, bounds=policy, ledger=journal.ledger, now=now)


def test_an_operator_s_quota_survives_ten_plans() -> None:
    """It was halved by every plan, and a removed one set again."""
    journal = written("250000")
    for number in range(1, 11):
        row = desired(config_value="250000", prior_value="50000000")
        made = plan_of(row, journal, altered(5), 10 * number)
        assert made.changes == ()
        assert "User:eve" in made.blocked[0].reason
        removed = plan_of(
            desired(config_value="250000"), journal, altered(5, None, operation=DELETE), 10 * number
        )
        assert removed.changes == ()


ACTS = st.lists(st.sampled_from(["plan", "eve sets", "eve removes", "release"]), max_size=12)


@settings(max_examples=60, deadline=None)
@given(acts=ACTS)
def test_no_plan_changes_what_others_set_last_in_any_order(acts: list[str]) -> None:
    configs, journal, clock = DictConfigs(), ListJournal(), Clock()
    entity, key = KEY
    last: Alteration | None = None
    is_theirs = False
    for number, act in enumerate(acts):
        clock.now += 5 * MINUTE
        value = configs.configs.get(entity, {}).get(key)
        if act == "plan":
            row = desired(config_value=f"{1_000 * 1.2**number:.0f}", prior_value=value)
            seen = {KEY: SeenConfig(value, clock.now)}
            policy = PlanPolicy(
                lease_s=3600,
                inputs_at={SNAPSHOT: clock.now},
                holds=holds(seen, {KEY: last} if last else {}, journal.ledger),
            )
            made = planned(row, bounds=policy, ledger=journal.ledger, now=clock.now)
            assert not (is_theirs and made.changes)
            assert is_theirs or made.changes
            applying(configs, journal, f"r{number}", clock).run("p", made.changes)
        elif act == "release":
            why = hold_reason(KEY, SeenConfig(value, clock.now), last, journal.ledger)
            assert (why is not None) == is_theirs
            if why is not None:
                journal.add([record(Release(KEY, value, why), f"r{number}", clock())])
            is_theirs = False
        else:
            is_set = act == "eve sets"
            configs.configs[entity] = {key: "9"} if is_set else {}
            last = Alteration(clock(), ON_CALL, SET if is_set else DELETE, "9" if is_set else None)
            is_theirs = True


@pytest.mark.parametrize(
    ("entity", "key", "why"),
    [
        ("mallory", "producer_byte_rate", "give ENTITY_TYPE/NAME"),
        ("person/mallory", "producer_byte_rate", "give ENTITY_TYPE/NAME"),
        ("user/", "producer_byte_rate", "give ENTITY_TYPE/NAME"),
        ("user/mallory", "no.such.key", "is no config that may be written"),
        ("topic/t", "producer_byte_rate", "is no config that may be written"),
    ],
)
def test_a_release_names_a_config_that_plans_write(entity: str, key: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Request.parse(entity, key, None)


@pytest.mark.parametrize(
    ("name", "user"),
    [
        ("CN=a/b", "CN=a/b"),
        ("User:mallory", "mallory"),
        ("ServiceAccount:sa-1", "sa-1"),
        ("User:CN=a,OU=b.c", "CN=a,OU=b.c"),
        ("arn:aws:sts::1:assumed-role/etl/i-0", "arn:aws:sts::1:assumed-role/etl/i-0"),
        ("User:arn:aws:iam::1:user/etl", "arn:aws:iam::1:user/etl"),
    ],
)
def test_a_user_is_named_in_any_form(name: str, user: str) -> None:
    request = Request.parse(f"user/{name}", "producer_byte_rate", "c")
    assert request.key("c1") == (ConfigEntity("c1", "user", user, "c"), "producer_byte_rate")


def test_a_release_is_recorded_and_its_value_is_the_next_baseline(scene: Scene) -> None:
    entity, key = KEY
    scene.configs.configs[entity] = {key: "9"}
    request = Request.parse("user/mallory", key, None)
    shown = release_run.preview(context.from_conf(scene.conf), request, NOON)
    assert "before the request log began" in (shown.reason or "")
    assert scene.journal.records == []
    release_run.release(context.from_conf(scene.conf), request, lambda _: None)
    (recorded,) = scene.journal.records
    assert (recorded.step, recorded.config_value) == ("released", "9")
    assert (
        release_run.release(context.from_conf(scene.conf), request, lambda _: None).reason is None
    )
    assert len(scene.journal.records) == 1
    scene.apply(desired(prior_value="9"))
    assert scene.journal.ledger.owned[KEY].prior_value == "9"
