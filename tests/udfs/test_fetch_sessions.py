import pickle
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.udfs import fetch_sessions
from quotaflow.udfs.fetch_lines import END, FETCH, PASSED, ROWS, SESSION
from quotaflow.udfs.fetch_sessions import FOLLOWED, FOLLOWED_SQL, Limits, follow_sessions

from ..cases import cases
from .fetch_rows import part, request
from .rules.fetch_broker import played
from .rules.test_fetch_session import STEPS

LIMITS = Limits(idle_us=3_600_000_000, now_us=10**12)
S = 7


def row(epoch, *partitions, session=S, at_s=0, **others):
    """A line of alice's about session S, of partitions made by `part`."""
    begins = epoch in (0, -1)
    return {
        "cluster_id": "c",
        "broker_id": 1,
        "event_time": at_s * 1_000_000,
        "principal": "User:alice",
        "client_id": "consumer-a",
        "session_id": 0 if begins else session,
        "session_epoch": epoch,
        "response_session_id": session,
        "error_code": 0,
        "max_bytes": 1_000,
        "isolation_level": 0,
        "partitions": list(partitions),
        "forgotten": [],
        "session": session,
        "kind": FETCH,
    } | others


FIRST = row(0, part("a", 0, 0, 5), part("b", 10, 0, 50))


def batch(rows):
    return pa.RecordBatch.from_pylist(rows, schema=ROWS)


def follow(*batches):
    """Rows out, fetches and sessions apart."""
    out = [one for b in follow_sessions(LIMITS)(iter(batches)) for one in b.to_pylist()]
    fetches = [one for one in out if one["kind"] == FETCH]
    return fetches, [one for one in out if one["kind"] == SESSION]


def followed(*rows):
    return follow(batch(rows))


def carried(session):
    """A session's row of one run as the next one gets it."""
    return {name: session.get(name) for name in ROWS.names} | {"session": session["session_id"]}


def answers(fetch, *names):
    return [tuple(one[name] for name in names) for one in fetch["partitions"]]


def test_answers_are_completed_from_the_session():
    fetches, _ = followed(FIRST, row(1, part("a", 3), part("b", size=9, end=50)))
    assert [one["session_state"] for one in fetches] == ["full", "known"]
    assert [one["session_partitions"] for one in fetches] == [2, 2]
    names = ("topic_id", "request_index", "fetch_offset", "partition_max_bytes", "bytes")
    assert answers(fetches[0], *names) == [("a", 0, 0, 100, 0), ("b", 1, 10, 100, 0)]
    assert answers(fetches[1], *names) == [("b", 1, 10, 100, 9)]
    assert fetches[1]["response_bytes"] == 9


def test_limits_are_those_of_every_partition_of_the_session():
    alone = row(-1, part("a", 3, 9, 9), part("b", 1) | {"partition_max_bytes": 700}, session=0)
    lines = [FIRST, row(1), row(2, part("c", 7) | {"partition_max_bytes": 900}), row(9), alone]
    fetches, _ = followed(*lines)
    names = ("session_max_bytes", "session_partition_max_bytes")
    assert [tuple(one[name] for name in names) for one in fetches] == [
        (200, 100),
        (200, 100),
        (1_100, 900),
        (None, None),
        (800, 700),
    ]


def test_where_the_session_is_not_known_a_line_says_what_it_can():
    (fetch,), sessions = followed(row(4, part("a", 3, 9, 9), part("b", size=1, end=1)))
    assert (fetch["session_state"], fetch["session_partitions"]) == ("unknown", None)
    assert answers(fetch, "request_index", "fetch_offset") == [(None, 3), (None, None)]
    assert fetch["starved"] is None
    assert sessions == []


def test_a_session_is_told_as_it_is_after_its_last_line():
    lines = [row(1, part("a", 3, 9, 9), at_s=1), row(2, part("c", 7), at_s=2)]
    _, (session,) = followed(FIRST, *lines)
    assert {name: session[name] for name in ("session_id", "next_epoch", "client_id")} == {
        "session_id": S,
        "next_epoch": 3,
        "client_id": "consumer-a",
    }
    cached = [
        (one["topic_id"], one["fetch_offset"], one["end_offset"])
        for one in session["cached_partitions"]
    ]
    assert cached == [("b", 10, 50), ("a", 3, 9), ("c", 7, -1)]
    assert (session["event_time"] - session["start_time"]).total_seconds() == 2


def test_an_ended_session_is_told_no_more():
    assert followed(FIRST, row(-1, session_id=S, response_session_id=0))[1] == []
    ends = row(0, part("a", 0, 0, 1), session_id=S, response_session_id=8, kind=END)
    fetches, sessions = followed(FIRST, ends, ends | {"session": 8, "kind": FETCH})
    assert [one["session_id"] for one in fetches] == [S, 8]
    assert [one["session_id"] for one in sessions] == [8]


def test_a_lost_session_is_told_without_partitions_and_stays_lost():
    _, (session,) = followed(FIRST, row(2))
    assert session["cached_partitions"] is None
    (fetch,), _ = followed(carried(session), row(3))
    assert fetch["session_state"] == "out_of_order"


def test_starved_are_named():
    full = row(1, part("a", size=1_000, end=2_000))
    (_, fetch), _ = followed(FIRST, full)
    assert [(one["topic"], one["topic_id"], one["partition"]) for one in fetch["starved"]] == [
        (None, "b", 0)
    ]
    (_, fetch), _ = followed(FIRST, full | {"max_bytes": 1_001})
    assert fetch["starved"] == []


@cases(
    ("isolation_level", "expected"),
    ("read uncommitted reads to the high watermark", 0, ["b"]),
    ("read committed to the last stable offset", 1, []),
)
def test_what_could_be_read_depends_on_the_isolation_level(isolation_level, expected):
    parts = part("a", 0, 1_000, 9), part("b", 5, 0, 9, last_stable_offset=5)
    (fetch,), _ = followed(row(0, *parts, isolation_level=isolation_level))
    assert [one["topic_id"] for one in fetch["starved"]] == expected


def test_fetches_without_sessions_stand_for_themselves():
    """Old versions leave the columns null; topics have names before version 13."""
    nulls = dict.fromkeys(["session_id", "session_epoch", "response_session_id", "error_code"])
    by_name = part("a", 3, 9, 9) | {"topic_id": None, "topic": "orders"}
    (fetch,), sessions = followed(row(-1, by_name, session=0) | nulls)
    assert (fetch["session_state"], fetch["session_id"]) == ("full", 0)
    assert answers(fetch, "topic", "topic_id", "request_index") == [("orders", None, 0)]
    assert sessions == []


def test_brokers_and_sessions_are_apart():
    other = FIRST | {"broker_id": 2}
    fetches, sessions = followed(FIRST, other, row(1) | {"broker_id": 2}, row(1, session=8))
    assert [one["session_state"] for one in fetches] == ["full", "full", "known", "unknown"]
    assert [(one["broker_id"], one["next_epoch"]) for one in sessions] == [(1, 1), (2, 2)]


def test_columns_of_a_line_pass_through():
    given = batch([FIRST | {"source_topic": "logs", "source_offset": 4, "rack_id": "az-a"}])
    out = next(follow_sessions(LIMITS)(iter([given])))
    assert out.schema == FOLLOWED
    same = [name for name in PASSED if name != "session_id"]
    assert out.select(same) == given.select(same)


def test_a_slice_is_read_from_its_own_start():
    rows = batch([row(3, part("x", 1, 2, 3)), FIRST, row(1, part("b", size=9, end=50))])
    fetches, _ = follow(rows.slice(1))
    assert answers(fetches[1], "topic_id", "request_index") == [("b", 1)]


def test_no_rows_give_none():
    assert follow() == ([], [])
    assert followed() == ([], [])


def rows_of(steps):
    """A client's lines as rows, in the order of time within each session."""
    rows = []
    for line, _ in played(steps, 2**31 - 1):
        row_ = request(line, len(rows)) | {"kind": FETCH}
        own = (line.response_session_id if line.is_full else 0) or line.session_id
        rows.append(row_ | {"session": own})
        if line.is_full and line.session_id not in (0, own):
            rows.append(row_ | {"session": line.session_id, "kind": END})
    return rows


def sort_key(one):
    return one["session"], one["kind"] != SESSION, one["event_time"]


def in_pieces(rows, cuts):
    """Rows followed in as many runs, each with the sessions of the one before."""
    fetches, sessions = [], []
    edges = [0, *sorted(cut for cut in cuts if cut < len(rows)), len(rows)]
    for start, stop in pairwise(edges):
        piece = sorted([*map(carried, sessions), *rows[start:stop]], key=sort_key)
        halves = [batch(piece[: len(piece) // 2]), batch(piece[len(piece) // 2 :])]
        followed, sessions = follow(*halves)
        fetches += followed
    return sorted(fetches, key=lambda one: one["source_offset"]), sessions


@given(STEPS, st.sets(st.integers(0, 60), max_size=8))
def test_runs_may_be_cut_anywhere(steps, cuts):
    rows = rows_of(steps)
    assert in_pieces(rows, cuts) == in_pieces(rows, [])


@given(STEPS, st.integers(1, 5))
def test_rows_may_be_followed_in_batches_of_any_size(steps, rows_at_once):
    rows = rows_of(steps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fetch_sessions, "_ROWS_AT_ONCE", rows_at_once)
        in_batches = in_pieces(rows, [])
    assert in_batches == in_pieces(rows, [])


def test_it_travels_to_workers():
    travelled = pickle.loads(pickle.dumps(follow_sessions(LIMITS)))
    assert [one.num_rows for one in travelled(iter([batch([FIRST])]))] == [1, 1, 1]


def test_its_shape_agrees_with_its_sql():
    assert FOLLOWED_SQL.startswith("`cluster_id` STRING, `event_time` TIMESTAMP")
    assert FOLLOWED_SQL.endswith(
        "`next_epoch` BIGINT, `cached_partitions` ARRAY<STRUCT<topic: STRING, "
        "topic_id: STRING, partition: INT, fetch_offset: BIGINT, partition_max_bytes: BIGINT, "
        "end_offset: BIGINT>>, `lines` BIGINT, `newest_past` TIMESTAMP, `kind` STRING"
    )


def test_a_bad_bound_is_told_before_any_row():
    with pytest.raises(ValueError, match=r"^idle_us must be at least 1, got 0$"):
        Limits(0, 0)
