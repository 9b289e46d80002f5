"""The halt: where the cluster is worse after a change of ours, plans only give back."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.feedback.configs.change import RESTORE, Halt, Plan
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.pipelines.feedback.ledger.ledger import HALTED, RELEASED, Ledger
from quotaflow.pipelines.feedback.planning import cluster_watch, halt, planning
from quotaflow.pipelines.feedback.planning.guards import PlanPolicy
from quotaflow.pipelines.feedback.runs import apply_run, context, frozen_plans, release_run
from quotaflow.pipelines.feedback.runs.frozen_plans import to_changes, to_rows
from quotaflow.pipelines.warehouse.readers import open_reader
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ....cases import cases
from ....delta_tables import NOON
from ....rows import Row, request
from ....schemas.views.view_tables import make_tables
from ..fake_configs import Clock, DictConfigs, ListJournal, applying, desired, planned
from ..scene import Scene

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
CONFIGS = DictConfigs()


@pytest.fixture
def scene(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(warehouse, monkeypatch)


def written(at: float = 0, prior: str | None = None) -> ListJournal:
    journal = ListJournal()
    bounds = PlanPolicy(lease_s=86_400, max_step_factor=10)
    made = planned(desired(prior_value=prior), bounds=bounds)
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
    made = planned(*others, bounds=bounds, ledger=journal.ledger, now=NOON + MINUTE)
    (change,) = made.changes
    assert (change.purpose, change.entity, change.value) == (RESTORE, desired().entity, prior)
    assert {each.desired.entity_name for each in made.blocked} == {"eve", "mallory"}
    assert all(each.reason.startswith("halted: the cluster is worse") for each in made.blocked)
    assert made.halt == bounds.halt


def test_a_frozen_plan_that_gives_back_does_so() -> None:
    journal = written(prior="9000")
    bounds = PlanPolicy(halt=halted_by(journal), max_step_factor=10)
    made = planned(bounds=bounds, ledger=journal.ledger, now=NOON + MINUTE)
    frozen = list(to_rows(made, NOON, "me"))
    assert [change.purpose for change in to_changes(frozen)] == [RESTORE]
    configs = DictConfigs({desired().entity: {"producer_byte_rate": "1000"}})
    applying(configs, journal, "r2", Clock(NOON + 2 * MINUTE)).run(made.plan_id, to_changes(frozen))
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


@cases(("minutes", "is_watched"), ("soon", 1, True), ("late", 59, True), ("over", 61, False))
def test_a_run_is_watched_for_a_while(minutes: float, is_watched: bool) -> None:
    trial = halt.trial(written().ledger, "c1", NOON + minutes * MINUTE, HOUR)
    assert (trial is not None) is is_watched


def test_a_person_ends_a_halt(scene: Scene) -> None:
    scene.journal, scene.clock.now = written(), NOON + MINUTE
    release_run.release_halt(context.from_conf(scene.conf), lambda _: None)
    assert scene.journal.records[-1].step == RELEASED
    assert halt.trial(scene.journal.ledger, "c1", NOON + MINUTE, HOUR) is None


def served(names: range, minutes: range, code: int = 0, **others: Any) -> list[Row]:
    """Three answers a minute to each of some users."""
    rows = [
        request(60 * minute + 15 * k, "PRODUCE", principal=f"User:{name}", error_code=code)
        for minute in minutes
        for name in names
        for k in range(3)
    ]
    return [row | others for row in rows]


def late(names: range, minutes: range, **others: Any) -> list[Row]:
    return served(names, minutes, total_time_ms=2_000.0, **others)


def replicas(minute: float, in_sync: dict[int, bool]) -> list[Row]:
    """What a snapshot saw of 40 partitions, each with a replica at some brokers."""
    row = {"cluster_id": "c1", "event_time": NOON + minute * MINUTE, "topic_id": "t1"}
    row |= {"topic": "orders", "is_removed": False}
    return [
        row | {"partition": partition, "broker_id": broker, "is_in_sync": is_in_sync}
        for partition in range(40)
        for broker, is_in_sync in in_sync.items()
    ]


BEFORE, AFTER = range(-30, 0), range(1, 20)
ALL, SOME, FEW = range(12), range(6), range(2)
WELL = served(ALL, BEFORE)
DOWN = {1: True, 2: True, 3: False}
UP = dict.fromkeys(DOWN, True)
STORED = {"topic": "orders", "partition": 0, "error_code": 0}
REFUSED = {"topic": "orders", "partition": 1, "error_code": 19}
NOT_ENOUGH_REPLICAS, REBALANCE_IN_PROGRESS, DENIED = 19, 27, 29
REQUESTS: dict[str, tuple[list[Row], str | None]] = {
    "well": (served(ALL, AFTER), None),
    "slow": (late(ALL, AFTER), "slow in 15 of 15 minutes, and were in 0 of 30"),
    "slow for a few clients": (late(FEW, AFTER) + served(ALL, AFTER), None),
    "slow for one more": (late(range(1), AFTER), None),
    "slow for three of many": (late(range(3), AFTER) + served(range(3, 33), AFTER), None),
    "well again": (late(ALL, range(1, 5)) + served(ALL, range(5, 20)), None),
    "slow followers": (served(ALL, AFTER) + late(ALL, AFTER, replica_id=2), None),
    "consumers wait for records": (late(ALL, AFTER, api="FETCH", remote_time_ms=1_999.0), None),
    "consumers wait for a broker": (late(ALL, AFTER, api="FETCH", remote_time_ms=1.0), "15 of 15"),
    "errors of half of the others": (
        served(SOME, AFTER, NOT_ENOUGH_REPLICAS) + served(range(6, 12), AFTER),
        "6 of 12 other principals have more errors that brokers cause, such as User:0: 100%",
    ),
    "errors of two": (
        served(FEW, AFTER, NOT_ENOUGH_REPLICAS) + served(range(2, 12), AFTER),
        None,
    ),
    "errors that a deploy makes": (served(ALL, AFTER, REBALANCE_IN_PROGRESS), None),
    "errors that a client makes": (served(ALL, AFTER, DENIED), None),
    "errors of partitions": (
        served(ALL, AFTER, error_code=None, partitions=[REFUSED, STORED]),
        "12 of 12 other principals have more errors",
    ),
    "errors of followers": (served(ALL, AFTER, NOT_ENOUGH_REPLICAS, replica_id=2), None),
    "few lines, each of many requests": (
        served(ALL, range(5, 8), NOT_ENOUGH_REPLICAS, weight=100.0),
        None,
    ),
}


def cluster_halt(
    warehouse: Warehouse, content: dict[str, list[Row]], journal: ListJournal | None = None
) -> Halt | None:
    """The halt at 12:20, after a run at noon that limited User:mallory."""
    make_tables(warehouse, content)
    conf, until = config.Conf(warehouse=warehouse.conf), NOON + 20 * MINUTE
    ledger = (journal or written()).ledger
    return cluster_watch.halted(
        open_reader(conf),
        ledger,
        "c1",
        until,
        period=HOUR,
        results_at=until,
        limits=conf.replication,
    )


@pytest.mark.parametrize("case", REQUESTS)
def test_the_cluster_is_compared_with_itself_before_the_run(
    warehouse: Warehouse, case: str
) -> None:
    after, why = REQUESTS[case]
    actual = cluster_halt(warehouse, {"requests": WELL + after})
    assert (actual is None) if why is None else (actual and why in actual.reason)


@cases(
    ("snapshots", "why"),
    ("lost", replicas(-60, UP) + replicas(5, DOWN), "40 of 120 replicas are"),
    ("only two", replicas(-60, UP) + replicas(5, {3: False})[:2], None),
    ("added by a move", replicas(-60, UP) + replicas(5, {4: False}), None),
    ("lost before", replicas(-60, DOWN) + replicas(5, DOWN), None),
    ("no snapshot before", replicas(5, DOWN), None),
)
def test_replicas_that_fell_out_of_sync(
    warehouse: Warehouse, snapshots: list[Row], why: str | None
) -> None:
    actual = cluster_halt(warehouse, {"replicas": snapshots})
    assert (actual is None) if why is None else (actual and why in actual.reason)


def test_without_tables_no_plan_halts(warehouse: Warehouse) -> None:
    assert cluster_halt(warehouse, {}) is None


def hourly(minutes: range, hours: int) -> range:
    """The same minutes of earlier hours, as one range of each."""
    return range(minutes.start - 60 * hours, minutes.stop - 60 * hours)


@pytest.mark.parametrize("share", ["usual", "unusual"])
@pytest.mark.parametrize("sign", ["slow", "errors", "replicas"])
def test_the_cluster_is_compared_with_its_own_week(
    warehouse: Warehouse, sign: str, share: str
) -> None:
    """Two days in which each hour ends as bad as now, or two good ones and a bad hour."""
    bad_hours = range(1, 60) if share == "usual" else range(5, 6)
    before, after, content = range(-45, -15), range(-15, 0), dict[str, list[Row]]()
    if sign == "replicas":
        lines = replicas(-3_700, UP)
        lines += [row for n in bad_hours for row in replicas(-60 * n - 5, DOWN)]
        lines += [row for n in bad_hours for row in replicas(-60 * n + 5, UP)]
        content["replicas"] = lines + replicas(-4, UP) + replicas(5, DOWN)
    else:
        bad: Row = {"code": NOT_ENOUGH_REPLICAS} if sign == "errors" else {"total_time_ms": 2_000.0}
        lines = WELL + served(SOME, range(1, 20), **bad) + served(range(6, 12), range(1, 20))
        for n in range(1, 60):
            made = bad if n in bad_hours else {}
            lines += served(ALL, hourly(before, n)) + served(range(6, 12), hourly(after, n))
            lines += served(SOME, hourly(after, n), **made)
        content["requests"] = lines
    assert (cluster_halt(warehouse, content) is None) is (share == "usual")


@cases(
    ("entity", "evidence"),
    ("user", ("user", "0"), "user=0 quota_type=producer_byte_rate"),
    ("address", ("ip", "10.0.0.7"), "principal=User:0 client_address=10.0.0.7"),
    ("another config", ("broker", "1"), "principal=User:0"),
)
def test_errors_of_the_one_that_was_limited_do_not_count(
    warehouse: Warehouse, entity: tuple[str, str], evidence: str
) -> None:
    """Five principals are enough for a halt, and four are not."""
    requests = served(range(5), BEFORE) + served(range(5), AFTER, NOT_ENOUGH_REPLICAS)
    named = ConfigEntity("c1", *entity, None)
    limited = [replace(r, entity=named, evidence_key=evidence) for r in written().records]
    assert cluster_halt(warehouse, {"requests": requests}) is not None
    assert cluster_halt(warehouse, {}, ListJournal(limited)) is None


def test_apply_records_the_halt_and_writes_only_what_gives_back(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.apply(desired())
    halted = Halt("halted: x", halted_by(scene.journal).trial)
    bounds = PlanPolicy(halt=halted)

    def planned_now(*_: object, **__: object) -> Plan:
        return planned(
            desired("eve"), bounds=bounds, ledger=scene.journal.ledger, now=datetime.now(UTC)
        )

    monkeypatch.setattr(planning, "make", planned_now)
    monkeypatch.setattr(frozen_plans, "refreeze", lambda *_, **__: None)
    apply_run.apply_plan(context.from_conf(scene.conf), None, lambda _: None)
    assert scene.configs.configs == {desired().entity: {}}
    assert [r.step for r in scene.journal.records].count(HALTED) == 1
    assert scene.journal.ledger.halts.keys() == {"c1"}
