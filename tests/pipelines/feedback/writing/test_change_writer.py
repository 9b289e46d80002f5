"""Changes are recorded before and after, read back, and resolved however a run ended."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quotaflow.pipelines.feedback.configs.change import Change
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity, DesiredConfig
from quotaflow.pipelines.feedback.ledger.ledger import (
    DONE,
    MOVED,
    REFUSED,
    STARTED,
    UNDONE,
    YIELDED,
    Record,
)
from quotaflow.pipelines.feedback.ledger.outcome import ALREADY_SET, OPEN
from quotaflow.pipelines.feedback.planning import restore_plan
from quotaflow.pipelines.feedback.planning.guards import SNAPSHOT, PlanPolicy
from quotaflow.pipelines.feedback.writing.change_writer import ChangeWriter
from quotaflow.pipelines.kafka.cluster_state import UnansweredError

from ....cases import cases
from ....crashes import CrashError, crash_at
from ..fake_configs import PLAIN, Clock, DictConfigs, ListJournal, applying, desired, planned

BOUNDS = PlanPolicy(lease_s=600, max_step_factor=1e9)
KEY = "producer_byte_rate"
LIST = "leader.replication.throttled.replicas"
MALLORY = desired().entity
TOPIC = ConfigEntity("c1", "topic", "t")


def changes(*rows: DesiredConfig) -> tuple[Change, ...]:
    return planned(*rows, bounds=BOUNDS).changes


def of_topic(value: str | None, prior: str | None) -> DesiredConfig:
    columns = {"entity_type": "topic", "config_key": LIST, "config_value": value}
    return desired("t", **columns, prior_value=prior)


def test_a_change_is_recorded_before_and_after_it_is_written() -> None:
    configs, journal = DictConfigs(), ListJournal()
    (outcome,) = applying(configs, journal).run("p1", changes(desired()))
    assert (outcome.step, configs.configs[MALLORY]) == (DONE, {KEY: "1000"})
    assert [(r.step, r.operation, r.operand, r.prior_value) for r in journal.records] == [
        (STARTED, "SET", "1000", None),
        (DONE, "SET", "1000", None),
    ]
    (owned,) = journal.ledger.owned.values()
    assert (owned.prior_value, owned.value) == (None, "1000")
    assert owned.expires_at == journal.records[-1].event_time + timedelta(seconds=600)


@dataclass
class CountedJournal(ListJournal):
    """Counts the commits."""

    commits: list[int] = field(default_factory=list)

    def add(self, records: Sequence[Record]) -> None:
        self.commits.append(len(records))
        ListJournal.add(self, records)


@cases(("pause_s", "commits"), ("fast", 0, [120, 50, 50, 20]), ("slow", 4, [120, *[8] * 15]))
def test_many_changes_are_recorded_together_and_none_late(pause_s: int, commits: list[int]) -> None:
    """While a run lasts, its last record must be younger than a write can take to land."""
    configs, journal, clock = DictConfigs(), CountedJournal(), Clock()

    def passed(step: str) -> None:
        if step == "written":
            clock.now += timedelta(seconds=pause_s)

    rows = [desired(f"user-{n}") for n in range(120)]
    outcomes = applying(configs, journal, clock=clock, on_step=passed).run("p1", changes(*rows))
    assert {o.step for o in outcomes} == {DONE}
    assert journal.commits == commits
    assert len(journal.ledger.owned) == 120


def test_a_second_time_it_is_so_already_and_written_once() -> None:
    configs, journal = DictConfigs(), ListJournal()
    for run_id in ("r1", "r2"):
        outcomes = applying(configs, journal, run_id).run("p1", changes(desired()))
    assert [o.step for o in outcomes] == [ALREADY_SET]
    assert configs.writes == 1


@cases(
    ("before", "row", "after"),
    ("added", {LIST: "0:1"}, of_topic("0:1,1:2", "0:1"), {LIST: "0:1,1:2"}),
    ("added beside others'", {LIST: "0:1,7:7"}, of_topic("0:1,1:2", "0:1"), {LIST: "0:1,7:7,1:2"}),
    ("the first", {}, of_topic("1:2", None), {LIST: "1:2"}),
    ("taken away", {LIST: "0:1,1:2"}, of_topic("0:1", "0:1,1:2"), {LIST: "0:1"}),
    ("others stay", {LIST: "0:1,7:7,1:2"}, of_topic("0:1", "0:1,1:2"), {LIST: "0:1,7:7"}),
    ("the last", {LIST: "0:1"}, of_topic(None, "0:1"), {}),
)
def test_entries_of_others_stay(
    before: dict[str, str], row: DesiredConfig, after: dict[str, str]
) -> None:
    configs, journal = DictConfigs({TOPIC: before}), ListJournal()
    (outcome,) = applying(configs, journal).run("p1", changes(row))
    assert outcome.step == DONE
    assert configs.configs[TOPIC] == after


@cases(
    ("configs", "row", "step", "why"),
    ("moved", DictConfigs({MALLORY: {KEY: "5"}}), desired(), MOVED, "it is 5 now"),
    ("refused", DictConfigs(refuses={MALLORY: "42 no"}), desired(), REFUSED, "42 no"),
    ("away", DictConfigs(away={MALLORY}), desired(), UNDONE, "not reached: [Error 7]"),
    ("all replicas", DictConfigs({TOPIC: {LIST: "*"}}), of_topic("0:1", None), MOVED, "it is *"),
    (
        "a list that moved",
        DictConfigs({TOPIC: {LIST: "0:1"}}),
        of_topic(None, "0:1,1:1"),
        MOVED,
        "it is 0:1 now",
    ),
)
def test_what_cannot_be_written_is_told_and_costs_nobody_else(
    configs: DictConfigs, row: DesiredConfig, step: str, why: str
) -> None:
    before = {entity: dict(values) for entity, values in configs.configs.items()}
    other = desired("other")
    ended = applying(configs, ListJournal()).run("p1", changes(row, other))
    assert {o.change.entity: o.step for o in ended} == {row.entity: step, other.entity: DONE}
    assert why in next(o.detail or "" for o in ended if o.change.entity == row.entity)
    assert {e: values for e, values in configs.configs.items() if e != other.entity} == before


def test_a_login_that_may_not_even_read_is_told_which_right_it_lacks() -> None:
    class Refused(DictConfigs):
        def read(self, _entity: ConfigEntity) -> dict[str, str]:
            raise UnansweredError("CLUSTER_AUTHORIZATION_FAILED")

    (outcome,) = applying(Refused(), ListJournal()).run("p1", changes(desired()))
    assert outcome.step == UNDONE
    assert "this login needs AlterConfigs on cluster kafka-cluster" in str(outcome.detail)


def test_an_entity_is_changed_whole_or_not_at_all() -> None:
    rows = desired(), desired(config_key="consumer_byte_rate", prior_value="7")
    configs = DictConfigs({MALLORY: {"consumer_byte_rate": "8"}})
    ended = applying(configs, ListJournal()).run("p1", changes(*rows))
    assert sorted(o.step for o in ended) == [MOVED, UNDONE]
    assert configs.writes == 0


def test_a_stop_holds_back_what_is_not_written_yet_and_says_so() -> None:
    configs, journal = DictConfigs(), ListJournal()
    planned_changes = changes(desired("a"), desired("b"))
    run = applying(
        configs, journal, stop_reason=lambda: "STOP is there" if configs.writes else None
    )
    assert [(o.step, o.detail) for o in run.run("p1", planned_changes)] == [
        (DONE, None),
        (UNDONE, "STOP is there"),
    ]
    assert journal.ledger.open_records == ()


@dataclass
class Raced(DictConfigs):
    """Somebody else sets the same quotas between the preview and the write."""

    theirs: dict[str, str] = field(default_factory=dict)
    reads: int = 0

    def read(self, entity: ConfigEntity) -> dict[str, str]:
        self.reads += 1
        if self.reads == 2:
            self.configs.setdefault(entity, {}).update(self.theirs)
        return DictConfigs.read(self, entity)


def test_what_somebody_else_wrote_since_the_first_look_stays_theirs() -> None:
    configs, journal = Raced(theirs={KEY: "1000"}), ListJournal()
    (outcome,) = applying(configs, journal).run("p1", changes(desired()))
    assert (outcome.step, configs.writes) == (ALREADY_SET, 0)
    ledger = journal.ledger
    assert (ledger.owned, ledger.last_writes, ledger.open_records) == ({}, {}, ())
    assert [(r.step, r.detail) for r in journal.records] == [
        (STARTED, None),
        (UNDONE, "it was so before it was written"),
    ]
    assert applying(configs, journal, "r2").finish(ledger) == []


def test_of_an_entity_what_is_not_so_yet_is_written_beside_it() -> None:
    rows = desired(), desired(config_key="consumer_byte_rate")
    configs, journal = Raced(theirs={KEY: "1000"}), ListJournal()
    ended = applying(configs, journal).run("p1", changes(*rows))
    assert {o.step for o in ended} == {DONE, ALREADY_SET}
    assert configs.configs[MALLORY] == {KEY: "1000", "consumer_byte_rate": "1000"}
    assert [key for _, key in journal.ledger.owned] == ["consumer_byte_rate"]


def test_an_entity_that_moved_since_the_first_look_is_not_written() -> None:
    rows = desired(), desired(config_key="consumer_byte_rate")
    configs, journal = Raced(theirs={KEY: "7"}), ListJournal()
    ended = applying(configs, journal).run("p1", changes(*rows))
    assert sorted(o.step for o in ended) == [MOVED, UNDONE]
    assert all("it is 7 now" in (o.detail or "") for o in ended)
    assert (configs.writes, journal.ledger.owned, journal.ledger.open_records) == (0, {}, ())


def test_what_of_an_earlier_run_lands_between_the_looks_is_ours_still() -> None:
    first, journal, clock = Silent(), ListJournal(), Clock()
    applying(first, journal, "r1", clock).run("p1", changes(desired()))
    raced = Raced(first.configs, theirs={KEY: "1000"})
    (outcome,) = applying(raced, journal, "r2", clock).run("p2", changes(desired()))
    assert outcome.step == ALREADY_SET
    applying(raced, journal, "r3", clock).finish(journal.ledger)
    assert (
        [owned.value for owned in journal.ledger.owned.values()],
        journal.ledger.open_records,
    ) == (
        ["1000"],
        (),
    )


def test_what_does_not_show_stays_open_and_the_next_run_finds_it() -> None:
    class Late(DictConfigs):
        def write(self, changes: object) -> str | None:
            self.late = changes
            return None

    configs, journal = Late(), ListJournal()
    (outcome,) = applying(configs, journal).run("p1", changes(desired()))
    assert (outcome.step, outcome.detail) == (OPEN, "it was taken, and does not show yet")
    DictConfigs.write(configs, configs.late)  # type: ignore[arg-type]
    (record,) = applying(configs, journal, "r2").finish(journal.ledger)
    assert (record.step, record.run_id) == (DONE, "r1")
    assert journal.ledger.owned.keys() == {(MALLORY, KEY)}


@dataclass
class Silent(DictConfigs):
    """Answers no write request; its write is made later, if at all."""

    late: Sequence[Change] = ()

    def write(self, changes: Sequence[Change]) -> str | None:
        self.late = changes
        raise UnansweredError("[Error 7] RequestTimedOutError")

    def land(self) -> None:
        DictConfigs.write(self, self.late)


@cases(
    ("between", "after_s", "owned"),
    ("nobody wrote in between", None, 60, {KEY: "1000"}),
    ("another run of ours did", "2000", 60, {KEY: "1000"}),
    ("another run of ours did the same", "1000", 60, {KEY: "1000"}),
    ("later than any broker tries", None, 130, None),
)
def test_what_lands_after_its_run_is_ours_nevertheless(
    between: str | None, after_s: float, owned: dict[str, str] | None
) -> None:
    configs, journal, clock = Silent(), ListJournal(), Clock()
    (outcome,) = applying(configs, journal, "r1", clock).run("p1", changes(desired()))
    assert (outcome.step, outcome.detail) == (OPEN, "no answer: [Error 7] RequestTimedOutError")
    if between is not None:
        again = applying(DictConfigs(configs.configs), journal, "r2", clock)
        assert again.finish(journal.ledger) == []
        (outcome,) = again.run("p2", changes(desired(config_value=between)))
        assert outcome.step == DONE
    clock.now += timedelta(seconds=after_s)
    applying(configs, journal, "r3", clock).finish(journal.ledger)
    configs.land()
    clock.now += timedelta(seconds=60)
    applying(configs, journal, "r4", clock).finish(journal.ledger)
    ledger = journal.ledger
    assert ledger.open_records == ()
    assert [config.value for config in ledger.owned.values()] == (
        [] if owned is None else [owned[KEY]]
    )
    assert all(config.prior_value is None for config in ledger.owned.values())


def test_what_was_never_made_is_told_so_once_it_cannot_be_any_more() -> None:
    configs, journal, clock = Silent(), ListJournal(), Clock()
    applying(configs, journal, "r1", clock).run("p1", changes(desired()))
    for after_s, ended in ((119, []), (2, [UNDONE])):
        clock.now += timedelta(seconds=after_s)
        records = applying(configs, journal, "r2", clock).finish(journal.ledger)
        assert [record.step for record in records] == ended
    assert journal.ledger.open_records == ()


@pytest.mark.parametrize("at", ["looked", "begun", "sent", "written", "recorded"])
def test_killed_anywhere_the_next_run_ends_in_the_planned_state(at: str) -> None:
    configs, journal, clock = DictConfigs(), ListJournal(), Clock()
    planned_changes = changes(desired("a"), desired("b"))

    with pytest.raises(CrashError):
        applying(configs, journal, "r1", clock, on_step=crash_at(at)).run("p1", planned_changes)
    again = applying(configs, journal, "r2", clock)
    again.finish(journal.ledger)
    again.run("p1", planned_changes)
    clock.now += timedelta(minutes=2)
    applying(configs, journal, "r3", clock).finish(journal.ledger)
    assert {e.entity_name: values for e, values in configs.configs.items()} == {
        "a": {KEY: "1000"},
        "b": {KEY: "1000"},
    }
    ledger = journal.ledger
    assert (len(ledger.owned), ledger.open_records, configs.writes) == (2, (), 2)


STEPS = ("looked", "begun", "sent", "written", "recorded", "finished")
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("apply"), st.integers(1, 9), st.sampled_from([None, *STEPS])),
        st.tuples(st.just("restore"), st.booleans(), st.sampled_from([None, *STEPS])),
        st.tuples(st.just("other"), st.integers(1, 9) | st.none()),
        st.tuples(st.just("wait"), st.integers(1, 900)),
    ),
    max_size=12,
)


@settings(max_examples=settings().max_examples * 4)
@given(ACTS, st.integers(1, 9) | st.none())
@example([("apply", 1, None), ("apply", 2, "begun"), ("apply", 2, "sent")], None)
def test_whatever_happens_ours_is_given_back_and_others_stays(
    acts: list[tuple[object, ...]], first: int | None
) -> None:
    configs, journal, clock = DictConfigs(), ListJournal(), Clock()
    configs.configs[MALLORY] = {} if first is None else {KEY: str(first * 1_000)}
    theirs = dict(configs.configs[MALLORY])
    last = ("wait", 120), ("apply", 3, None), ("restore", True, None)
    for number, act in enumerate([*acts, *last]):
        if act[0] == "wait":
            clock.now += timedelta(seconds=int(str(act[1])))
        elif act[0] == "other":
            theirs = {} if act[1] is None else {KEY: str(int(str(act[1])) * 1_000 + 7)}
            configs.configs[MALLORY] = dict(theirs)
        else:
            run = applying(configs, journal, f"r{number}", clock, on_step=crash_at(act[2]))
            try:
                run.finish(journal.ledger)
                if act[0] == "apply":
                    current = configs.configs[MALLORY].get(KEY)
                    row = desired(config_value=f"{act[1]}000", prior_value=current)
                    seen = replace(BOUNDS, inputs_at={SNAPSHOT: clock()})
                    planned_changes = planned(
                        row, bounds=seen, ledger=journal.ledger, now=clock.now
                    ).changes
                    run.run(f"p{number}", planned_changes)
                else:
                    give_back(run, configs, journal, clock, everything=bool(act[1]))
            except CrashError:
                pass
    assert configs.configs[MALLORY] == theirs
    assert journal.ledger.open_records == ()
    assert journal.ledger.owned == {}


LATE_ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("apply"), st.integers(1, 9)),
        st.tuples(st.just("lose"), st.integers(1, 9)),
        st.tuples(st.just("land"), st.integers(0, 3)),
        st.tuples(st.just("wait"), st.integers(1, 90)),
    ),
    max_size=12,
)


@settings(max_examples=settings().max_examples * 4)
@given(LATE_ACTS, st.integers(1, 9) | st.none())
@example([("apply", 1), ("lose", 2), ("apply", 3), ("land", 0)], None)
@example([("lose", 1), ("apply", 3), ("land", 0)], 2)
@example([("lose", 2), ("apply", 2), ("apply", 1), ("land", 0)], None)
@example([("lose", 2)] * 2 + [("apply", 1), ("land", 0)] * 2, None)
def test_however_late_our_writes_are_made_what_stood_before_them_all_is_given_back(
    acts: list[tuple[str, int]], first: int | None
) -> None:
    configs, journal, clock = DictConfigs(), ListJournal(), Clock()
    configs.configs[MALLORY] = {} if first is None else {KEY: str(first * 1_000)}
    before = dict(configs.configs[MALLORY])
    lost: list[tuple[datetime, Silent]] = []
    for number, (act, argument) in enumerate([*acts, ("wait", 130), ("apply", 3), ("wait", 130)]):
        if act == "wait":
            clock.now += timedelta(seconds=argument)
        elif act == "land":
            # A broker tries for a minute.
            lost = [late for late in lost if clock.now - late[0] < timedelta(seconds=60)]
            if argument < len(lost):
                lost.pop(argument)[1].land()
        else:
            to = Silent(configs.configs) if act == "lose" else configs
            run = applying(to, journal, f"r{number}", clock)
            run.finish(journal.ledger)
            row = desired(
                config_value=f"{argument}000", prior_value=configs.configs[MALLORY].get(KEY)
            )
            seen = replace(BOUNDS, inputs_at={SNAPSHOT: clock()})
            planned_changes = planned(
                row, bounds=seen, ledger=journal.ledger, now=clock.now
            ).changes
            run.run(f"p{number}", planned_changes)
            if isinstance(to, Silent) and to.late:
                lost.append((clock.now, to))
    run = applying(configs, journal, "last", clock)
    run.finish(journal.ledger)
    give_back(run, configs, journal, clock, everything=True)
    assert configs.configs[MALLORY] == before
    assert (journal.ledger.open_records, journal.ledger.owned) == ((), {})


def test_entries_that_two_runs_added_are_both_ours_though_one_got_no_answer() -> None:
    before = DictConfigs({TOPIC: {LIST: "7:7"}})
    configs, journal, clock = Silent(before.configs), ListJournal(), Clock()
    applying(configs, journal, "r1", clock).run("p1", changes(of_topic("7:7,0:1", "7:7")))
    configs.land()
    (outcome,) = applying(before, journal, "r2", clock).run(
        "p2", changes(of_topic("7:7,0:1,1:2", "7:7,0:1"))
    )
    assert outcome.step == DONE
    applying(before, journal, "r3", clock).finish(journal.ledger)
    (owned,) = journal.ledger.owned.values()
    assert owned.entries == {"0:1", "1:2"}


def give_back(
    run: ChangeWriter, configs: DictConfigs, journal: ListJournal, clock: Clock, *, everything: bool
) -> None:
    owned = restore_plan.expired(journal.ledger, clock.now, include_all=everything)
    actual = {key[0]: configs.read(key[0]) for key in owned}
    restore = restore_plan.plan_restore(owned, actual, {}, PLAIN)
    journal.add(
        [
            replace(e.owned.record, step=YIELDED, event_time=clock(), run_id=run.run_id)
            for e in restore.yielded
        ]
    )
    run.run("restore", restore.changes)
