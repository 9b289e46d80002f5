"""Offsets of replicas, from their own answers and from their fetches as followers."""

from quotaflow.pipelines.results.declared import result_of
from quotaflow.schemas.tables.catalog import TABLES

from ....rows import Row, minute
from .replica_rows import BEFORE, answered, computed, fetch, seen

ANSWERED = {"log_start_offset": 5, "high_watermark": 100}
FOLLOWER = {"replica_id": 2, "principal": "User:broker"}
FACTS = [
    fetch(1, 1, answered(9, **ANSWERED), answered(0, **ANSWERED, partition=1)),
    fetch(2, 1, answered(9, **ANSWERED | {"high_watermark": 90, "log_start_offset": 4})),
    # A follower's fetch has its log end, even if the answer is an error without offsets.
    fetch(3, 1, answered(9, **ANSWERED, fetch_offset=70, follower_log_start_offset=2), **FOLLOWER),
    fetch(4, 1, answered(0, **ANSWERED, fetch_offset=110), **FOLLOWER),
    fetch(5, 1, answered(None, error_code=6, high_watermark=-1, fetch_offset=60), **FOLLOWER),
    fetch(
        6, 2, answered(None, error_code=1, high_watermark=-1, log_start_offset=-1, fetch_offset=3)
    ),
    # An old client knows topics by name, and no log starts; the next minute is another row.
    fetch(
        7, 1, answered(9, topic="orders", topic_id=None, log_start_offset=-1, high_watermark=101)
    ),
    fetch(61, 2, answered(9, **ANSWERED | {"log_start_offset": 8})),
]
NOTHING = dict.fromkeys(TABLES["replica_offsets"].column_names[6:])
COUNTS = ("answers", "answers_to_followers", "follower_fetches")


def counts(*values: int) -> Row:
    return dict(zip(COUNTS, values, strict=True))


def bounds(name: str, least: int, greatest: int) -> Row:
    return {f"min_{name}": least, f"max_{name}": greatest}


EXPECTED: dict[tuple[int, int, int], Row] = {
    (0, 0, 1): counts(5, 2, 0)
    | bounds("log_start_offset", 4, 5)
    | bounds("high_watermark", 90, 101),
    (0, 1, 1): counts(1, 0, 0)
    | bounds("log_start_offset", 5, 5)
    | bounds("high_watermark", 100, 100),
    (0, 0, 2): counts(0, 0, 3)
    | bounds("log_start_offset", 2, 2)
    | bounds("log_end_offset", 60, 110),
    (1, 0, 2): counts(1, 0, 0)
    | bounds("log_start_offset", 8, 8)
    | bounds("high_watermark", 100, 100),
}


def test_offsets_of_replicas() -> None:
    topic = seen(BEFORE, topic_id="id1", topic="orders")
    rows = {}
    for row in computed(result_of("replica_offsets"), fetches=FACTS, topics=[topic]):
        assert (row["topic_id"], row["topic"]) == ("id1", "orders")
        key = minute(row), row["partition"], row["broker_id"]
        rows[key] = {name: row[name] for name in NOTHING if name != "broker_id"}
    unset = {name: None for name in NOTHING if name != "broker_id"}
    assert rows == {key: unset | row for key, row in EXPECTED.items()}
