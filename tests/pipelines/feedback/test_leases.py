"""Leases in the topic: what is ours is known from the cluster alone, whoever crashes or forges."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quotaflow.pipelines.errors import FeedbackError
from quotaflow.pipelines.feedback import exclusive_section, restore_plan, trust
from quotaflow.pipelines.feedback.change import Change
from quotaflow.pipelines.feedback.change_writer import ChangeWriter
from quotaflow.pipelines.feedback.desired_configs import ConfigEntity, DesiredConfig
from quotaflow.pipelines.feedback.guards import SNAPSHOT, PlanPolicy
from quotaflow.pipelines.feedback.kafka_configs import Connection
from quotaflow.pipelines.feedback.leases import Item, Lease, LeaseBook, read_book, topic_key
from quotaflow.pipelines.feedback.ledger import DONE, REFUSED, YIELDED, Key, Ledger, Record
from quotaflow.pipelines.feedback.plan import plan
from quotaflow.pipelines.feedback.signed_journal import SignedJournal, open_journal
from quotaflow.pipelines.feedback.signing import Signer
from quotaflow.pipelines.feedback.trust import TrustedLedger

from .fake_configs import (
    Clock,
    DictConfigs,
    ListJournal,
    ListTopic,
    TopicCrashError,
    desired,
)

KEY = "producer_byte_rate"
LIST = "leader.replication.throttled.replicas"
USERS = ("eve", "zoe")
HERE = Signer((b"k" * 32,), "here")
THERE = Signer((b"k" * 32,), "there")
STRANGER = Signer((b"s" * 32,), "stranger")


class CrashError(Exception):
    """The process was killed here."""


@dataclass
class Site:
    """A cluster, its topic of leases, and the warehouse of one deployment."""

    signer: Signer = HERE
    configs: DictConfigs = field(default_factory=DictConfigs)
    topic: ListTopic = field(default_factory=ListTopic)
    tables: ListJournal = field(default_factory=ListJournal)
    clock: Clock = field(default_factory=Clock)
    runs: int = 0

    def beside(self, signer: Signer) -> "Site":
        """Another deployment on the same cluster."""
        return Site(signer, self.configs, self.topic, clock=self.clock, runs=100)

    @property
    def book(self) -> LeaseBook:
        return read_book(self.topic.items, self.signer, "c1")

    def trust(self) -> TrustedLedger:
        return trust.judge(self.tables.records, self.signer, self.book, "c1")

    def begin(
        self, on_step: Callable[[str], None], *, with_tables: bool = True
    ) -> tuple[ChangeWriter, SignedJournal, Ledger]:
        """What a section does first."""
        self.runs += 1
        self.topic.read_to = 0
        stored = self.tables if with_tables else None
        records = self.tables.records if with_tables else []
        signed = open_journal(records, self.signer, "c1", self.topic, stored)
        ledger = self._ledger(signed, with_tables=with_tables)
        writer = ChangeWriter(
            self.configs,
            signed,
            f"r{self.runs}",
            self.clock,
            on_step=on_step,
            sleep=lambda _: None,
            leased_elsewhere=exclusive_section.leased_elsewhere(signed.book),
        )
        writer.finish(ledger)
        return writer, signed, self._ledger(signed, with_tables=with_tables)

    def _ledger(self, signed: SignedJournal, *, with_tables: bool) -> Ledger:
        records = self.tables.records if with_tables else []
        return trust.judge(records, self.signer, signed.book, "c1").ledger

    def apply(
        self, value: int, *names: str, on_step: Callable[[str], None] = lambda _: None
    ) -> list[str]:
        writer, _, ledger = self.begin(on_step)
        rows = [self._row(name, value) for name in names or USERS]
        seen = PlanPolicy(lease_s=600, max_step_factor=1e9, inputs_at={SNAPSHOT: self.clock()})
        changes = plan(rows, self.clock.now, seen, Connection("b:9092"), ledger).changes
        return [outcome.step for outcome in writer.run("p", changes)]

    def _row(self, name: str, value: int) -> DesiredConfig:
        prior = self.configs.configs.get(desired(name).entity, {}).get(KEY)
        return desired(name, config_value=f"{value}000", prior_value=prior)

    def restore(
        self,
        *,
        everything: bool = True,
        with_tables: bool = True,
        on_step: Callable[[str], None] = lambda _: None,
    ) -> list[Change]:
        writer, signed, ledger = self.begin(on_step, with_tables=with_tables)
        owned = restore_plan.expired(ledger, self.clock.now, include_all=everything)
        actual = {key[0]: self.configs.read(key[0]) for key in owned}
        restore = restore_plan.plan_restore(owned, actual, {}, Connection("b:9092"))
        signed.add(
            [
                replace(e.owned.record, step=YIELDED, event_time=self.clock(), run_id="y", number=n)
                for n, e in enumerate(restore.yielded)
            ]
        )
        writer.run("restore", restore.changes)
        return list(restore.changes)

    def value(self, name: str) -> str | None:
        return self.configs.configs.get(desired(name).entity, {}).get(KEY)


def applied(*names: str) -> Site:
    site = Site()
    assert set(site.apply(2, *names)) == {DONE}
    return site


def live(book: LeaseBook) -> dict[Key, Lease]:
    return {key: lease for key, lease in book.leases.items() if not lease.is_over}


def newest(items: list[Item], key: bytes) -> bytes:
    return next(value for each, value in reversed(items) if each == key and value is not None)


EVE = desired("eve").key


def test_a_lease_has_what_a_restore_needs() -> None:
    site = applied("eve")
    assert site.book.ledger.owned == site.tables.ledger.owned
    lease = site.book.leases[EVE]
    assert (lease.deployment, lease.open_records, site.book.problems) == ("here", (), ())
    assert (site.trust().refused, site.trust().unstored) == ((), ())
    assert all(HERE.verifies(record) for record in site.tables.records)
    assert [record.sequence for record in site.tables.records] == [1, 2]


def test_what_was_given_back_leaves_no_lease() -> None:
    site = applied()
    site.restore()
    assert (site.value("eve"), site.book.leases, site.book.problems) == (None, {}, ())
    assert site.topic.items[-1][1] is None


def test_what_was_given_back_without_tables_reaches_them_with_the_next_run() -> None:
    site = applied()
    stored = list(site.tables.records)
    assert len(site.restore(with_tables=False)) == 2
    assert (site.value("eve"), site.tables.records) == (None, stored)
    assert [len(lease.unstored) for lease in site.book.leases.values()] == [2, 2]
    assert site.trust().refused == ()
    site.begin(lambda _: None)
    assert len(site.tables.records) == len(stored) + 4
    assert site.tables.ledger.owned == {}
    assert site.tables.ledger.open_records == ()
    assert site.book.leases == {}


def test_panic_needs_no_table_and_no_clock() -> None:
    site = applied()
    site.tables = ListJournal()
    site.clock.now -= timedelta(days=4_000)
    site.restore(with_tables=False)
    assert (site.value("eve"), site.value("zoe")) == (None, None)


def test_a_lost_warehouse_is_named_and_its_leases_are_known() -> None:
    site = applied("eve")
    site.tables = ListJournal()
    assert site.trust().unstored == (EVE,)
    assert site.trust().ledger.owned.keys() == {EVE}


def test_a_list_keeps_its_entries_in_the_lease() -> None:
    site = Site(configs=DictConfigs({ConfigEntity("c1", "topic", "t"): {LIST: "7:7"}}))
    writer, _, ledger = site.begin(lambda _: None)
    columns = {"entity_type": "topic", "config_key": LIST, "config_value": "7:7,0:1"}
    row = desired("t", **columns, prior_value="7:7")
    seen = PlanPolicy(lease_s=600)
    writer.run("p", plan([row], site.clock.now, seen, Connection("b:9092"), ledger).changes)
    (owned,) = site.book.ledger.owned.values()
    assert owned.entries == {"0:1"}
    site.restore(with_tables=False)
    assert site.configs.configs[row.entity] == {LIST: "7:7"}


def altered(site: Site, **values: object) -> None:
    index, record = next((n, r) for n, r in enumerate(site.tables.records) if r.step == DONE)
    site.tables.records[index] = replace(record, **values)  # type: ignore[arg-type]


def forge(site: Site) -> Record:
    """A row that says we set what is there now, over a value of the forger's."""
    record = site.tables.records[-1]
    return replace(record, entity=desired("payments").entity, prior_value="1", change_id="x")


def test_a_forged_row_is_refused_by_name_and_costs_nobody_else() -> None:
    site = applied("eve")
    site.configs.configs[desired("payments").entity] = {KEY: "2000"}
    site.tables.records.append(forge(site))
    (why,) = site.trust().refused
    assert why.startswith("user payments in cluster c1: producer_byte_rate: the row of 2026-11-21")
    assert why.endswith("does not verify")
    site.restore()
    assert (site.value("payments"), site.value("eve")) == ("2000", None)


@pytest.mark.parametrize(
    "values",
    [
        {"prior_value": "1"},
        {"expires_at": None},
        {"config_value": "5"},
        {"sequence": 99},
        {"mac": "0" * 64},
        {"mac": None},
        {"deployment": "there"},
    ],
    ids=lambda values: next(iter(values)),
)
def test_an_altered_row_is_refused_by_name_and_the_lease_gives_back(
    values: dict[str, object],
) -> None:
    site = applied("eve")
    altered(site, **values)
    assert [why.split(":")[1].strip() for why in site.trust().refused] == [KEY]
    site.restore()
    assert site.value("eve") is None


def test_a_row_without_a_signature_waits_for_a_person() -> None:
    site = Site()
    site.configs.configs[EVE[0]] = {KEY: "2000"}
    old = replace(applied("eve").tables.records[-1], sequence=None, deployment=None, mac=None)
    site.tables.add([old])
    assert site.trust().unsigned.owned.keys() == {EVE}
    assert site.trust().ledger.owned == {}
    assert "quotaflow adopt shows it" in site.trust().refused[0]
    assert site.restore() == []


def test_an_old_row_that_is_copied_is_refused_by_name() -> None:
    site = applied("eve")
    old = list(site.tables.records)
    site.restore()
    site.configs.configs[EVE[0]] = {KEY: "2000"}
    site.tables.records = old
    (why,) = site.trust().refused
    assert "an old row was copied" in why
    assert (site.restore(), site.value("eve")) == ([], "2000")


def test_a_row_that_is_there_twice_is_one_row() -> None:
    site = applied("eve")
    site.tables.records += site.tables.records
    assert site.trust().refused == ()
    assert site.trust().ledger.owned == site.book.ledger.owned


def test_a_row_that_is_missing_is_noticed() -> None:
    site = applied()
    site.tables.records = [r for r in site.tables.records if r.entity.entity_name != "eve"]
    assert site.trust().unstored == (EVE,)


def test_an_old_lease_that_is_written_again_is_refused_by_name() -> None:
    site = applied()
    old = newest(site.topic.items, topic_key(EVE))
    site.restore()
    site.configs.configs[EVE[0]] = {KEY: "2000"}
    site.topic.append([(topic_key(EVE), old)])
    assert site.book.problems == (
        "user eve in cluster c1: producer_byte_rate: its lease in the topic is an old one, "
        "written again",
    )
    assert (site.restore(with_tables=False), site.value("eve")) == ([], "2000")


def test_an_older_lease_in_place_of_the_newest_is_noticed() -> None:
    site = applied("eve")
    old = newest(site.topic.items, topic_key(EVE))
    site.clock.now += timedelta(seconds=300)
    site.apply(4, "eve")
    site.topic.append([(topic_key(EVE), old)])
    assert len(site.book.problems) == 2
    assert site.book.leases == {}


@pytest.mark.parametrize(
    ("item", "why"),
    [
        ((topic_key(EVE), None), "1 leases that were written are missing"),
        ((topic_key(EVE), b"{}"), "1 leases that were written are missing"),
        ((topic_key(EVE), b"\xff[" * 9_000), "1 leases that were written are missing"),
        ((b'["head","here"]', None), "the list of leases is missing"),
        ((b'["head","here"]', b'{"deployment":"here"}'), "the list of leases in the topic does"),
    ],
    ids=["a tombstone", "no lease", "no text", "no head", "no text of a head"],
)
def test_what_somebody_else_writes_into_the_topic_is_noticed(item: Item, why: str) -> None:
    site = applied("eve")
    site.topic.append([item])
    assert any(why in problem for problem in site.book.problems)


@pytest.mark.parametrize(
    "key", [b"", b"[]", b"{", b'["lease"]', b'["lease",1,null,null,"k"]', b"\xff", b"[" * 9_000]
)
def test_a_record_of_another_kind_is_left_alone(key: bytes) -> None:
    site = applied("eve")
    before = site.book
    site.topic.append([(key, b"x")])
    assert site.book == before


def test_a_lease_of_another_cluster_is_none_of_ours() -> None:
    site = applied("eve")
    moved = read_book(site.topic.items, HERE, "c2")
    assert (moved.leases, len(moved.problems)) == ({}, 2)


def test_a_lease_with_another_signature_is_refused_by_name() -> None:
    site = applied("eve")
    liar = Signer((b"x" * 32,), "here")
    forged = Site(liar, site.configs, ListTopic())
    forged.configs.configs.pop(EVE[0])
    forged.apply(9, "eve")
    site.topic.append([(topic_key(EVE), newest(forged.topic.items, topic_key(EVE)))])
    assert any("its lease in the topic does not verify" in each for each in site.book.problems)
    assert site.book.leases == {}


def test_keys_rotate_while_leases_last() -> None:
    site = applied()
    site.signer = Signer((b"n" * 32, *HERE.keys), "here")
    assert (site.trust().refused, len(site.book.leases)) == ((), 2)
    site.clock.now += timedelta(seconds=400)
    site.apply(3, "eve")
    assert site.trust().refused == ()
    site.restore()
    site.apply(5)
    site.signer = Signer((b"n" * 32,), "here")
    assert len(site.book.leases) == 2
    assert site.book.problems == ()


@pytest.mark.parametrize("other", [THERE, STRANGER], ids=["with our key", "with its own"])
def test_two_deployments_leave_each_other_s_configs_alone(other: Signer) -> None:
    site = applied("eve")
    beside = site.beside(other)
    assert beside.apply(9, "eve", "zoe") == [REFUSED, DONE]
    (refused,) = [r for r in beside.tables.records if r.step == REFUSED]
    assert (refused.detail or "").startswith("deployment here has a lease of it")
    assert site.book.leases.keys() == {EVE}
    assert beside.book.leases.keys() == {desired("zoe").key}
    assert (site.book.problems, beside.book.problems) == ((), ())
    beside.restore()
    assert (site.value("eve"), site.value("zoe")) == ("2000", None)
    site.restore()
    assert beside.apply(9, "eve") == [DONE]


def test_of_two_deployments_at_the_same_moment_one_writes() -> None:
    site, late = Site(), Site()
    late = site.beside(THERE)

    def first(step: str) -> None:
        if step == "looked":
            site.apply(2, "eve")

    with pytest.raises(FeedbackError, match=r"another deployment leased .* by here"):
        late.apply(9, "eve", on_step=first)
    assert site.value("eve") == "2000"
    assert site.book.leases.keys() == {EVE}
    assert site.book.problems == ()
    site.restore()
    assert site.value("eve") is None


STEPS = ("looked", "begun", "sent", "written", "recorded", "finished")
DEATHS = st.none() | st.sampled_from(STEPS) | st.integers(0, 9)
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("apply"), st.integers(1, 9), DEATHS),
        st.tuples(st.just("restore"), st.booleans(), DEATHS),
        st.tuples(st.just("panic"), st.just(True), DEATHS),
        st.tuples(st.just("wait"), st.integers(1, 900), st.none()),
    ),
    max_size=10,
)


def perform(site: Site, act: tuple[str, int, str | int | None]) -> None:
    """One command, which may be killed at a step or after so many records of the topic."""
    name, argument, death = act

    def passed(step: str) -> None:
        if step == death:
            raise CrashError

    site.topic.dies_after = death if isinstance(death, int) else None
    with suppress(CrashError, TopicCrashError):
        if name == "wait":
            site.clock.now += timedelta(seconds=argument)
        elif name == "apply":
            site.apply(argument, on_step=passed)
        else:
            whole = name == "restore"
            site.restore(everything=bool(argument), with_tables=whole, on_step=passed)
    site.topic.dies_after = None


@settings(max_examples=200)
@given(ACTS, st.sampled_from(["restore", "panic"]))
@example([("apply", 1, None), ("panic", 1, 1), ("apply", 2, 1)], "panic")
@example([("apply", 1, None), ("restore", 1, 4), ("apply", 1, None)], "restore")
@example([("apply", 1, None), ("panic", 1, "begun"), ("apply", 1, 1)], "restore")
@example([("apply", 1, "begun"), ("apply", 1, 3)], "panic")
def test_wherever_a_run_is_killed_nothing_looks_forged_and_all_is_given_back(
    acts: list[tuple[str, int, str | int | None]], last: str
) -> None:
    site = Site()
    site.configs.configs[EVE[0]] = {KEY: "7007"}
    for act in [*acts, ("wait", 130, None)]:
        perform(site, act)
        assert site.trust().refused == ()
        assert site.trust().unstored == ()
    # What a killed run had sent is known after two minutes.
    perform(site, (last, 1, None))
    perform(site, ("wait", 130, None))
    perform(site, ("restore", 1, None))
    assert (site.value("eve"), site.value("zoe")) == ("7007", None)
    assert (site.book.leases, site.trust().ledger.owned, site.trust().refused) == ({}, {}, ())
    assert site.tables.ledger.owned == {}
    assert site.tables.ledger.open_records == ()


@settings(max_examples=200)
@given(ACTS, st.data())
def test_whatever_is_copied_or_removed_in_the_topic_is_noticed_or_changes_nothing(
    acts: list[tuple[str, int, str | int | None]], data: st.DataObject
) -> None:
    site = Site()
    for act in [("apply", 2, None), *acts, ("wait", 130, None)]:
        perform(site, act)
    before = site.book
    items = list(site.topic.items)
    keys = sorted({key for key, _ in items})
    key = data.draw(st.sampled_from(keys))
    value = data.draw(st.sampled_from([None, *(v for k, v in items if k == key)]))
    site.topic.append([(key, value)])
    after = site.book
    is_noticed = bool(after.problems)
    is_same = live(after) == live(before)
    # An older head lists the leases of its time: the tables have newer records then.
    is_old_head = key == b'["head","here"]' and after.sequence < max(
        (record.sequence or 0 for record in site.tables.records), default=0
    )
    # A run that is killed before its head has written no config, so what the head lists is true.
    is_of_head = (
        after.tags is not None and {each.tag for each in live(after).values()} <= after.tags
    )
    assert is_noticed or is_same or is_old_head or is_of_head
    assert {lease.owned and lease.owned.prior_value for lease in after.leases.values()} <= {None}


def test_a_lease_is_readable_json_for_who_looks_into_the_topic() -> None:
    site = applied("eve")
    envelope = json.loads(newest(site.topic.items, topic_key(EVE)))
    content = json.loads(envelope["text"])
    assert (envelope["deployment"], content["owned"]["value"]) == ("here", "2000")
    assert json.loads(topic_key(EVE)) == ["lease", "user", "eve", None, KEY]
