from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.udfs.rules import fetch_session
from quotaflow.udfs.rules.fetch_line import FetchLine, SessionState, follow
from quotaflow.udfs.rules.fetch_session import (
    CachedPartition,
    FetchSession,
    RequestPartition,
    ResponsePartition,
)

from ...cases import cases
from .fetch_broker import SECOND_US, Read, played

IDLE_US = 3_600 * SECOND_US
S = 7


def line(
    epoch, *requested, at_s=0, answered=(), forgotten="", error=0, names=S, answers=S, full=False
):
    """A line about session S: (partition, offset) requested, (partition, bytes, end) answered."""
    return FetchLine(
        at_s * SECOND_US,
        names,
        epoch,
        answers,
        error,
        full,
        [RequestPartition(key, offset, 100) for key, offset in requested],
        list(forgotten),
        [ResponsePartition(key, size, end, 0) for key, size, end in answered],
    )


def started(*partitions):
    """The first line of S."""
    answered = [(key, 0, 5) for key, _ in partitions]
    return line(0, *partitions, names=0, answered=answered)


def followed(*lines):
    """The last of these lines about S."""
    session = None
    for one in lines:
        last = follow(session, S, one, IDLE_US)
        session = last.session
    return last


def order(session):
    return "".join(one.partition for one in session.cached_partitions())


ABC = started(("a", 0), ("b", 10), ("c", 20))


@cases(
    ("lines", "expected"),
    ("a session begins with the requested partitions", [], "abc"),
    ("a fetch of the same", [line(1)], "abc"),
    ("an update stays in its place", [line(1, ("b", 11))], "abc"),
    ("a new one comes last", [line(1, ("d", 0))], "abcd"),
    ("a forgotten one goes", [line(1, forgotten="b")], "ac"),
    ("an unknown partition can be forgotten", [line(1, forgotten="bx")], "ac"),
    ("forgetting comes after asking", [line(1, ("b", 1), forgotten="b")], "ac"),
    ("who had records goes last", [line(1, answered=[("a", 9, 9)])], "bca"),
    ("who had none stays", [line(1, answered=[("a", 0, 9)])], "abc"),
    (
        "in the order they were read, not listed",
        [line(1, ("b", 11), answered=[("b", 9, 9), ("a", 9, 9)])],
        "cab",
    ),
    ("named twice, moved once", [line(1, answered=[("a", 9, 9), ("a", 9, 9)])], "bca"),
)
def test_order(lines, expected):
    assert order(followed(ABC, *lines).session) == expected


@cases(
    ("lines", "expected"),
    ("the next epoch", [line(1)], "known"),
    ("and the next", [line(1), line(2)], "known"),
    ("an epoch is missing", [line(2)], "out_of_order"),
    ("then nothing is known again", [line(2), line(1)], "out_of_order"),
    ("a repeated line says nothing", [line(1), line(1)], "out_of_order"),
    ("and costs nothing", [line(1), line(1), line(2)], "known"),
    ("nor does a repeated beginning", [line(1), ABC, line(2)], "known"),
    ("the broker has it no more", [line(1, error=70, answers=0)], "refused"),
    ("nor have we", [line(1, error=70, answers=0), line(1)], "unknown"),
    ("an epoch it did not expect", [line(5, error=71, answers=0)], "refused"),
    ("left all as it was", [line(5, error=71, answers=0), line(1)], "known"),
    ("names beside ids too", [line(1, error=106, answers=0), line(1)], "known"),
    ("overtaken while it waited", [line(1, error=71), line(2)], "out_of_order"),
    ("an error nobody foresaw", [line(1, error=-1), line(2)], "out_of_order"),
    ("the client ended it", [line(-1, answers=0), line(1)], "unknown"),
    ("or began another", [line(0, answers=8), line(1)], "unknown"),
    ("idle for as long as may be", [line(1, at_s=3_600)], "known"),
    ("idle for longer", [line(1, at_s=3_601)], "unknown"),
    ("an error is one always", [line(1, at_s=3_601, error=71)], "refused"),
    ("emptied, so it ends", [line(1, forgotten="abc", answers=0)], "known"),
    ("ended though it was not empty", [line(1, answers=0)], "out_of_order"),
    ("one it cannot hold", [line(1, answered=[("x", 1, 1)])], "out_of_order"),
)
def test_state(lines, expected):
    assert followed(ABC, *lines).state == expected


def test_before_the_log_began_nothing_is_known():
    assert followed(line(3, ("a", 1))).state == SessionState.UNKNOWN
    assert followed(line(3, error=71)).state == SessionState.REFUSED


def test_a_beginning_whose_answer_was_not_asked_for_is_no_beginning():
    odd = line(0, ("a", 0), answered=[("x", 0, 5)], names=0)
    assert followed(odd, line(1)).state == SessionState.OUT_OF_ORDER


def test_what_a_fetch_asked_for_comes_from_the_session():
    last = followed(ABC, line(1, ("b", 11), answered=[("b", 1, 12), ("c", 0, 20)]))
    assert last.positions == [(1, 11, 100), (2, 20, 100)]
    assert last.requested_count == 3


def test_starved_have_more_to_read_and_got_nothing_of_a_full_answer():
    served = [("a", 9, 9)]
    ends = line(1, answered=[("b", 0, 50), ("c", 0, 50)])
    assert followed(ABC, ends, line(2, answered=served, full=True)).starved == ["b", "c"]
    assert followed(ABC, ends, line(2, answered=served)).starved == ()
    assert followed(ABC, ends, line(2, ("c", 50), answered=served, full=True)).starved == ["b"]
    full = line(0, ("a", 0), ("b", 0), answered=[("a", 9, 9), ("b", 0, 9)], full=True)
    assert followed(full).starved == ["b"]


@pytest.mark.parametrize("limit", [-1, 2**31, 2**63 - 1])
def test_a_limit_that_no_request_has_makes_those_of_the_session_unknown(limit):
    odd = ABC._replace(requested=[*ABC.requested[:2], RequestPartition("c", 20, limit)])
    assert followed(odd).limits is None
    assert followed(odd, line(1)).limits is None
    assert followed(odd, line(1, ("c", 20))).limits == (300, 100)
    assert followed(odd, line(1, forgotten="c")).limits == (200, 100)


def test_epochs_begin_again_at_one():
    session = FetchSession.restored(0, 0, 2**31 - 1, [CachedPartition("a", 0, 100, 5)])
    for epoch in (2**31 - 1, 1, 2):
        assert follow(session, S, line(epoch), IDLE_US).state == SessionState.INCREMENTAL


def test_a_session_can_be_written_down_and_restored():
    session = followed(ABC, line(1, ("d", 4), answered=[("a", 9, 9)])).session
    written = session.cached_partitions()
    assert written[-1] == CachedPartition("a", 0, 100, 9)
    again = FetchSession.restored(session.began_us, session.last_us, 2, written)
    assert (again.cached_partitions(), again.is_valid) == (written, True)
    assert follow(again, S, line(2, answered=[("b", 1, 11)]), IDLE_US).positions == [(0, 10, 100)]
    lost = FetchSession.restored(0, 0, 2, None)
    assert follow(lost, S, line(2), IDLE_US).state == SessionState.OUT_OF_ORDER


@contextmanager
def epochs_that_wrap_at(epoch):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fetch_session, "MAX_EPOCH", epoch)
        yield


KEYS = st.sampled_from("abcdef")
REQUESTS = st.dictionaries(KEYS, st.tuples(st.integers(0, 9), st.integers(1, 3)), max_size=4)
READS = st.builds(
    Read,
    bytes=st.dictionaries(KEYS, st.integers(0, 9), max_size=3),
    ends=st.dictionaries(KEYS, st.integers(0, 12), max_size=3),
    errors=st.dictionaries(KEYS, st.sampled_from([1, 3, 6, 29, 100]), max_size=1),
    is_throttled=st.sampled_from([False, False, False, True]),
    is_filled=st.booleans(),
    has_room=st.sampled_from([True, True, True, False]),
)
KINDS = st.sampled_from(
    ["next"] * 12 + ["begin", "begin", "end", "evicted", "wrong epoch", "first"]
)
STEPS = st.lists(
    st.tuples(KINDS, REQUESTS, st.lists(KEYS, max_size=1), READS), min_size=6, max_size=40
)
MAX_EPOCHS = st.sampled_from([3, 2**31 - 1])


def rebuilt(lines):
    """What following each line gives, all sessions side by side."""
    sessions = {}
    for one, truth in lines:
        own = (one.response_session_id if one.is_full else 0) or one.session_id
        for session_id in {one.session_id, own} - {0, own}:
            sessions[session_id] = follow(sessions.get(session_id), session_id, one, 9**18).session
        followed_line = follow(sessions.get(own), own, one, 9**18)
        sessions[own] = followed_line.session
        yield one, truth, followed_line


def check(one, truth, followed_line):
    """Held against the truth of its line: set, order, offsets, limits, and who was starved."""
    places = {key: (at, offset, size) for at, (key, offset, size) in enumerate(truth.requested)}
    assert followed_line.requested_count == len(truth.requested)
    limits = [size for _, _, size in truth.requested]
    assert followed_line.limits == (sum(limits), max(limits, default=0))
    assert followed_line.positions is None or followed_line.positions == [
        places[key] for key, *_ in one.answered
    ]
    assert sorted(followed_line.starved) == sorted(truth.starved)
    if followed_line.session is not None:
        kept = followed_line.session.cached_partitions()
        assert [k.partition for k in kept] == truth.after
        assert {k[:3] for k in kept} == {a for a in truth.requested if a[0] in truth.after}


@given(STEPS, MAX_EPOCHS)
def test_sessions_are_rebuilt_as_the_broker_holds_them(steps, max_epoch):
    with epochs_that_wrap_at(max_epoch):
        for one, truth, followed_line in rebuilt(played(steps, max_epoch)):
            assert followed_line.state == truth.state
            if followed_line.state != SessionState.REFUSED:
                check(one, truth, followed_line)


@given(STEPS, st.data())
def test_what_is_known_of_a_log_with_holes_is_never_wrong(steps, data):
    lines = list(played(steps, 2**31 - 1))
    indices = st.lists(st.integers(0, len(lines) - 1), max_size=len(lines) * 2)
    order = data.draw(st.one_of(indices, indices.map(sorted), st.permutations(range(len(lines)))))
    for one, truth, followed_line in rebuilt(lines[at] for at in order):
        if followed_line.state == SessionState.INCREMENTAL:
            assert truth.state == "known"
            check(one, truth, followed_line)
