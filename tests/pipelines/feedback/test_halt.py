"""The halt: where the cluster is worse after a change of ours, plans only give back."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.feedback import apply_run, cluster_watch, halt, release_run
from quotaflow.pipelines.feedback.change import RESTORE, Halt, Plan
from quotaflow.pipelines.feedback.guards import PlanPolicy
from quotaflow.pipelines.feedback.kafka_configs import Connection
from quotaflow.pipelines.feedback.ledger import HALTED, RELEASED, Ledger
from quotaflow.pipelines.feedback.plan import plan
from quotaflow.pipelines.feedback.plan_rows import changes, rows
from quotaflow.pipelines.warehouse.tables import open_tables
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...schemas.views.view_rows import Row, request
from ...schemas.views.view_tables import make_tables
from .fake_configs import NOON, Clock, DictConfigs, ListJournal, applying, desired
from .scene import Scene

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
PLAIN = Connection("b:9092")
CONFIGS = DictConfigs()


@pytest.fixture
def scene(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(warehouse, monkeypatch)


def written(at: float = 0, prior: str | None = None) -> ListJournal:
    journal = ListJournal()
    bounds = PlanPolicy(lease_s=86_400, max_step_factor=10)
    made = plan([desired(prior_value=prior)], NOON, bounds, PLAIN)
    configs = DictConfigs({desired().entity: {"producer_byte_rate": prior} if prior else {}})
    applying(configs, journal, f"r{at}", Clock(NOON + at * MINUTE)).run("p", made.changes)
    return journal


def halted_by(journal: ListJournal) -> Halt:
    trial = halt.trial(journal.ledger, "c1", NOON + MINUTE, HOUR)
    assert trial is not None
    return Halt(halt.reason(trial, "brokers are degraded"), trial)


@pytest.mark.parametrize("prior", [None, "9000"])
def test_a_halted_plan_gives_back_what_was_written_last_and_nothing_else(prior: str | None) -> None:
    journal = written(prior=prior)
    bounds = PlanPolicy(halt=halted_by(journal), max_step_factor=10)
    others = [desired("eve"), desired(prior_value="1000", config_value="500")]
    made = plan(others, NOON + MINUTE, bounds, PLAIN, journal.ledger)
    (change,) = made.changes
    assert (change.purpose, change.entity, change.value) == (RESTORE, desired().entity, prior)
    assert {each.desired.entity_name for each in made.blocked} == {"eve", "mallory"}
    assert all(each.reason.startswith("halted: the cluster is worse") for each in made.blocked)
    assert made.halt == bounds.halt


def test_a_frozen_plan_that_gives_back_does_so() -> None:
    journal = written(prior="9000")
    bounds = PlanPolicy(halt=halted_by(journal), max_step_factor=10)
    made = plan([], NOON + MINUTE, bounds, PLAIN, journal.ledger)
    frozen = [row | {"purpose": row["purpose"]} for row in rows(made, NOON, "me")]
    assert [change.purpose for change in changes(frozen)] == [RESTORE]
    older = [{k: v for k, v in row.items() if k != "purpose"} for row in frozen]
    assert [change.purpose for change in changes(older)] == ["apply"]
    configs = DictConfigs({desired().entity: {"producer_byte_rate": "1000"}})
    applying(configs, journal, "r2", Clock(NOON + 2 * MINUTE)).run(made.plan_id, changes(frozen))
    assert configs.configs[desired().entity] == {"producer_byte_rate": "9000"}
    assert journal.ledger.owned == {}


def recorded(made: Plan, ledger: Ledger, at: float) -> list[Any]:
    return list(halt.records(made, ledger, "c1", f"h{at}", NOON + at * MINUTE))


def test_a_halt_is_recorded_once_and_lasts_until_the_cluster_is_well() -> None:
    journal = written()
    halted = Plan((), (), halted_by(journal))
    journal.add(recorded(halted, journal.ledger, 10))
    assert [record.step for record in journal.records[-1:]] == [HALTED]
    assert recorded(halted, journal.ledger, 20) == []
    days_later = NOON + timedelta(days=3)
    assert halt.trial(journal.ledger, "c1", days_later, HOUR) is not None
    journal.add(recorded(Plan((), ()), journal.ledger, 30))
    assert journal.records[-1].step == RELEASED
    assert (journal.ledger.halts, recorded(Plan((), ()), journal.ledger, 40)) == ({}, [])


@pytest.mark.parametrize(
    ("minutes", "is_watched"), [(1, True), (59, True), (61, False)], ids=["soon", "late", "over"]
)
def test_a_run_is_watched_for_a_while(minutes: float, is_watched: bool) -> None:
    trial = halt.trial(written().ledger, "c1", NOON + minutes * MINUTE, HOUR)
    assert (trial is not None) is is_watched


def test_a_person_ends_a_halt(scene: Scene) -> None:
    scene.journal, scene.clock.now = written(), NOON + MINUTE
    release_run.release_halt(scene.conf, lambda _: None)
    assert scene.journal.records[-1].step == RELEASED
    assert halt.trial(scene.journal.ledger, "c1", NOON + MINUTE, HOUR) is None


def degraded(minute: float, is_degraded: bool) -> Row:
    row = {"cluster_id": "c1", "event_time": NOON + minute * MINUTE, "broker_id": 1}
    return row | {"is_degraded": is_degraded, "shrunk_partitions": 0}


def minutes(first: int, last: int, *, is_degraded: bool) -> list[Row]:
    return [degraded(n, is_degraded) for n in range(first, last)]


def failing(principal: str, first: int, last: int, error_code: int) -> list[Row]:
    return [
        request(60 * n + k, "FETCH", principal=principal, error_code=error_code, weight=1)
        for n in range(first, last)
        for k in range(3)
    ]


WELL = minutes(-30, 20, is_degraded=False)
WORSE = [*minutes(-30, 5, is_degraded=False), *minutes(5, 20, is_degraded=True)]
WELL_AGAIN = [*minutes(0, 5, is_degraded=True), *minutes(5, 20, is_degraded=False)]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param({"broker_degradation": WELL}, None, id="well"),
        pytest.param({"broker_degradation": WORSE}, "degraded in 15 of", id="worse"),
        pytest.param({"broker_degradation": WELL_AGAIN}, None, id="well again"),
        pytest.param(
            {"requests": [*failing("User:a", -30, 0, 0), *failing("User:a", 1, 20, 7)]},
            "such as User:a",
            id="errors of others",
        ),
        pytest.param(
            {"requests": [*failing("User:mallory", -30, 0, 0), *failing("User:mallory", 1, 20, 7)]},
            None,
            id="errors of the one that was limited",
        ),
        pytest.param({}, None, id="no table"),
    ],
)
def test_the_cluster_is_compared_with_itself_before_the_run(
    warehouse: Warehouse, content: dict[str, list[Row]], why: str | None
) -> None:
    make_tables(warehouse, content)
    tables = open_tables(config.Conf(warehouse=warehouse.conf))
    until = NOON + 20 * MINUTE
    actual = cluster_watch.halted(
        tables, written().ledger, "c1", until, period=HOUR, results_at=until
    )
    assert (actual is None) if why is None else (actual and why in actual.reason)


def test_apply_records_the_halt_and_writes_only_what_gives_back(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.apply(desired())
    halted = Halt("halted: x", halted_by(scene.journal).trial)
    bounds = PlanPolicy(halt=halted)

    def planned(*_: object, **__: object) -> Plan:
        return plan([desired("eve")], datetime.now(UTC), bounds, PLAIN, scene.journal.ledger)

    monkeypatch.setattr(apply_run.planning, "make", planned)
    monkeypatch.setattr(apply_run.frozen_plans, "refreeze", lambda *_, **__: None)
    apply_run.apply_plan(scene.conf, None, lambda _: None)
    assert scene.configs.configs == {desired().entity: {}}
    assert [r.step for r in scene.journal.records].count(HALTED) == 1
    assert scene.journal.ledger.halts.keys() == {"c1"}
