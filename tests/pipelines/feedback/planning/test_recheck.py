"""An approved change is written only while its reason exists, and within what may change today."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from quotaflow.pipelines.feedback.configs.change import RESTORE, BlockedChange, Change, Plan
from quotaflow.pipelines.feedback.configs.desired_configs import DesiredConfig
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection
from quotaflow.pipelines.feedback.ledger.ledger import Ledger
from quotaflow.pipelines.feedback.ledger.outcome import Outcome
from quotaflow.pipelines.feedback.planning.blast_radius import BlastRadius, Room
from quotaflow.pipelines.feedback.planning.guards import PlanPolicy
from quotaflow.pipelines.feedback.planning.plan import plan
from quotaflow.pipelines.feedback.planning.recheck import Recheck, problem

from ....delta_tables import NOON
from .. import fake_configs
from ..fake_configs import Clock, DictConfigs, ListJournal, applying, desired

KEY = "producer_byte_rate"


planned = partial(fake_configs.planned, bounds=PlanPolicy(max_step_factor=10))


def value(config_value: str | None, prior: str | None = "1000", **others: Any) -> DesiredConfig:
    return desired(config_value=config_value, prior_value=prior, **others)


NOW: dict[str, tuple[DesiredConfig, Plan, str | None]] = {
    "as approved": (value("500"), planned(value("500")), None),
    "another number, the same direction": (value("500"), planned(value("700")), None),
    "the other direction": (value("500"), planned(value("1500")), "results ask for 1500 now"),
    "a removal": (value("500"), planned(value(None)), "results ask for None now"),
    "the offence is over": (value("500"), planned(), "results no longer ask for it"),
    "of somebody else": (value("500"), planned(desired("eve")), "results no longer ask for it"),
    "blocked since": (
        value("500"),
        Plan((), (BlockedChange(value("500"), "User:eve set it"),)),
        "User:eve set it",
    ),
}


@pytest.mark.parametrize("case", NOW)
def test_the_reason_is_checked_again(case: str) -> None:
    row, fresh, why = NOW[case]
    assert problem(planned(row).changes, fresh) == why


def test_what_gives_back_is_not_checked() -> None:
    (change,) = planned(value("500")).changes
    back = Change(change.desired, "9", change.operation, "", "", purpose=RESTORE)
    assert problem([back], Plan((), ())) is None


def applied(approved: Plan, recheck: Recheck, configs: DictConfigs) -> list[Outcome]:
    writer = applying(configs, ListJournal(), veto=recheck)
    return writer.run(approved.plan_id, approved.changes)


def test_a_change_whose_offence_is_over_is_left_out_and_the_others_are_written() -> None:
    approved, configs = planned(desired("a"), desired("b")), DictConfigs()
    recheck = Recheck(lambda: planned(desired("b")), Clock())
    outcomes = applied(approved, recheck, configs)
    assert [(o.step, o.detail) for o in outcomes] == [
        ("undone", "results no longer ask for it"),
        ("done", None),
    ]
    assert configs.configs == {desired("b").entity: {KEY: "1000"}}


def test_the_plan_of_now_is_made_again_after_a_minute() -> None:
    made: list[Plan] = []
    clock = Clock()

    def make() -> Plan:
        made.append(planned(desired("a")))
        return made[-1]

    recheck = Recheck(make, clock)
    for _ in range(3):
        assert recheck(planned(desired("a")).changes) is None
    assert len(made) == 1
    clock.now += timedelta(minutes=2)
    assert recheck(planned(desired("a")).changes) is None
    assert len(made) == 2


def test_an_approved_plan_heeds_what_may_change_today() -> None:
    approved, configs = planned(desired("a"), desired("b")), DictConfigs()
    room = Room(BlastRadius(), Ledger(), NOON)
    recheck = Recheck(lambda: approved, Clock(), room)
    outcomes = applied(approved, recheck, configs)
    assert [o.step for o in outcomes] == ["done", "undone"]
    assert "user a in cluster c1 is changed first" in (outcomes[1].detail or "")


def test_a_plan_with_another_reason_has_another_id() -> None:
    row = desired()
    plans = [
        planned(row),
        *(
            planned(desired(**{column: text}))
            for column, text in (
                ("reason", "x"),
                ("evidence_key", "x"),
                ("evidence_table", "quota_advice"),
                ("since", NOON - timedelta(hours=2)),
                ("priority", 11),
            )
        ),
        plan([row], NOON, PlanPolicy(max_step_factor=10), Connection("other:9092")),
    ]
    assert len({made.plan_id for made in plans}) == len(plans)
    assert planned(row).plan_id == planned(row).plan_id
    assert len(planned(row).plan_id) == 20
    assert len({made.changes[0].change_id for made in plans}) == 1
