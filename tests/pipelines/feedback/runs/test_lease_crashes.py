"""After a kill at any point, and a copy of any record, our leases are known and given back."""

from contextlib import suppress
from datetime import timedelta

from hypothesis import example, given
from hypothesis import strategies as st

from quotaflow.pipelines.feedback.ledger.leases import LeaseBook, topic_key

from ....crashes import CrashError, crash_at
from ..fake_configs import desired
from ..lease_site import KEY, Site, live

EVE = desired("eve").key
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
    passed = crash_at(death)

    site.topic.dies_after = death if isinstance(death, int) else None
    with suppress(CrashError):
        if name == "wait":
            site.clock.now += timedelta(seconds=argument)
        elif name == "apply":
            site.apply(argument, on_step=passed)
        else:
            whole = name == "restore"
            site.restore(everything=bool(argument), with_tables=whole, on_step=passed)
    site.topic.dies_after = None


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


def listed(book: LeaseBook) -> frozenset[str]:
    return book.tags or frozenset()


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
    # A run that is killed before its head has written no config: what the head lists is true.
    unlisted = {topic_key(k) for k, each in live(before).items() if each.tag not in listed(before)}
    # A run that is killed after it removed a lease, and before its head: the head lists it still.
    removed = live(after).keys() - live(before).keys()
    relisted = {topic_key(k) for k in removed if live(after)[k].tag in listed(before)}
    assert is_noticed or is_same or is_old_head or key in unlisted | relisted
    assert {lease.owned and lease.owned.prior_value for lease in after.leases.values()} <= {None}


def test_a_removal_that_was_killed_before_its_head_may_come_back_and_harms_nobody() -> None:
    site = Site()
    for act in [("apply", 2, None), ("wait", 600, None), ("restore", 0, 4), ("wait", 130, None)]:
        perform(site, act)
    key, value = next((k, v) for k, v in site.topic.items if b'"eve"' in k and v is not None)
    site.topic.append([(key, value)])
    for act in [("restore", 1, None), ("wait", 130, None), ("restore", 1, None)]:
        perform(site, act)
    assert (site.value("eve"), site.value("zoe")) == (None, None)
    assert site.book.leases == {}
