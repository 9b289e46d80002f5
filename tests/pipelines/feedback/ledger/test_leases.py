"""Leases in the topic: the cluster alone shows what is ours, also after a forgery or a copy."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines.errors import FeedbackError
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.pipelines.feedback.ledger.leases import Item, read_book, topic_key
from quotaflow.pipelines.feedback.ledger.ledger import DONE, REFUSED, Record
from quotaflow.pipelines.feedback.ledger.signing import Signer
from quotaflow.pipelines.feedback.planning.guards import PlanPolicy

from ....cases import cases
from ..fake_configs import DictConfigs, ListJournal, ListTopic, desired, planned
from ..lease_site import HERE, KEY, LIST, STRANGER, THERE, Site, applied


def _envelope_of(deployment: str, text: str, mac: str) -> bytes:
    return json.dumps({"deployment": deployment, "text": text, "mac": mac}).encode()


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
    writer.run("p", planned(row, bounds=seen, ledger=ledger, now=site.clock.now).changes)
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
        {"mac": None, "sequence": None, "deployment": None},
        {"deployment": "there"},
    ],
    ids=" ".join,
)
def test_an_altered_row_is_refused_by_name_and_the_lease_gives_back(
    values: dict[str, object],
) -> None:
    site = applied("eve")
    altered(site, **values)
    assert [why.split(":")[1].strip() for why in site.trust().refused] == [KEY]
    site.restore()
    assert site.value("eve") is None


def test_a_row_without_a_signature_is_refused_and_nobody_takes_it_over() -> None:
    site = Site()
    site.configs.configs[EVE[0]] = {KEY: "2000"}
    site.tables.add(
        [replace(applied("eve").tables.records[-1], sequence=None, deployment=None, mac=None)]
    )
    assert (site.trust().ledger.owned, site.trust().others.owned) == ({}, {})
    assert site.trust().refused[0].endswith("does not verify")
    assert (site.restore(), site.value("eve")) == ([], "2000")


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


def test_a_whole_topic_of_before_is_refused_by_the_rows_of_since() -> None:
    site = applied()
    before = list(site.topic.items)
    site.restore()
    site.configs.configs[EVE[0]] = {KEY: "2000"}
    site.topic.items[:] = before
    assert [why.split(": ")[2] for why in site.trust().refused] == [
        "its lease in the topic is older than the row that gave it back"
    ] * 2
    assert (site.trust().ledger.owned, site.restore(), site.value("eve")) == ({}, [], "2000")


def test_an_older_lease_in_place_of_the_newest_is_noticed() -> None:
    site = applied("eve")
    old = newest(site.topic.items, topic_key(EVE))
    site.clock.now += timedelta(seconds=300)
    site.apply(4, "eve")
    site.topic.append([(topic_key(EVE), old)])
    assert len(site.book.problems) == 2
    assert site.book.leases == {}


@cases(
    ("item", "why"),
    ("a tombstone", (topic_key(EVE), None), "1 lease that was written is missing"),
    ("no lease", (topic_key(EVE), b"{}"), "1 lease that was written is missing"),
    ("no text", (topic_key(EVE), b"\xff[" * 9_000), "1 lease that was written is missing"),
    ("no head", (b'["head","here"]', None), "the list of leases is missing"),
    (
        "no text of a head",
        (b'["head","here"]', b'{"deployment":"here"}'),
        "the list of leases in the topic does",
    ),
)
def test_what_somebody_else_writes_into_the_topic_is_noticed(item: Item, why: str) -> None:
    site = applied("eve")
    site.topic.append([item])
    assert any(why in problem for problem in site.book.problems)


_EVE_TEXT = topic_key(EVE).decode()
SPELLINGS = [
    _EVE_TEXT.encode("utf-16"),
    _EVE_TEXT.encode("utf-32"),
    _EVE_TEXT.encode("utf-8-sig"),
    _EVE_TEXT.replace(",", ", ").encode(),
    _EVE_TEXT.replace("eve", "\\u0065ve").encode(),
    _EVE_TEXT.encode() + b"\n",
]
"""Other bytes that a reader of JSON takes for the key of the same config."""


@pytest.mark.parametrize(
    "key",
    [
        *(b"", b"[]", b"{", b'["lease"]', b'["lease",1,null,null,"k"]', b"\xff", b"[" * 9_000),
        *(b'["lease","user",NaN,null,"k"]', b"1" * 5_000),
        *SPELLINGS,
    ],
)
@cases("value", ("no lease", b"x"), ("another's", b'{"deployment":"other","text":"{}","mac":""}'))
def test_a_record_under_no_key_of_ours_is_counted_and_left_alone(key: bytes, value: bytes) -> None:
    site = applied("eve")
    before = site.book
    site.topic.append([(key, value)])
    assert site.book == replace(before, ignored=1)
    site.restore()
    assert site.value("eve") is None


@given(
    items=st.lists(
        st.tuples(
            st.sampled_from([topic_key(EVE), b'["head","here"]', *SPELLINGS]) | st.binary(),
            st.none() | st.binary() | st.builds(_envelope_of, st.text(), st.text(), st.text()),
        )
    )
)
def test_no_bytes_in_the_topic_keep_a_reader_from_its_end(items: list[Item]) -> None:
    written = applied("eve").topic.items
    book = read_book([*written, *items], HERE, "c1")
    written_keys = {key for key, _ in items}
    if not written_keys & {topic_key(EVE), b'["head","here"]'}:
        assert (set(book.leases), list(book.problems)) == ({EVE}, [])


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


@cases("other", ("with our key", THERE), ("with its own", STRANGER))
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


def test_a_lease_is_readable_json_for_who_looks_into_the_topic() -> None:
    site = applied("eve")
    envelope = json.loads(newest(site.topic.items, topic_key(EVE)))
    content = json.loads(envelope["text"])
    assert (envelope["deployment"], content["owned"]["value"]) == ("here", "2000")
    assert json.loads(topic_key(EVE)) == ["lease", "user", "eve", None, KEY]
