"""Versions of APIs that clients use."""

from ...rows import Row, at, request
from .view_tables import Picked, Tables, assert_shown


def used(api: str, version: int | None, second: float = 0, **others: object) -> Row:
    return request(second, api, api_version=version, **others)


CASES: dict[str, tuple[Tables, Picked]] = {
    "removed": ({"requests": [used("PRODUCE", 2)]}, [("PRODUCE", 2, True, 3, 1)]),
    "the oldest that is left": ({"requests": [used("PRODUCE", 3)]}, [("PRODUCE", 3, False, 3, 1)]),
    "of which none was removed": (
        {"requests": [used("JOIN_GROUP", 0)]},
        [("JOIN_GROUP", 0, False, None, 1)],
    ),
    "of a broker": (
        {"requests": [used("WRITE_TXN_MARKERS", 1)]},
        [("WRITE_TXN_MARKERS", 1, False, 1, 1)],
    ),
    "by weight": (
        {"requests": [used("FETCH", 3, weight=9.0), used("FETCH", 3, 60)]},
        [("FETCH", 3, True, 4, 10)],
    ),
    "a follower": ({"requests": [used("FETCH", 3, replica_id=2)]}, []),
    "no version": ({"requests": [used("FETCH", None)]}, []),
}


def test_a_version_that_kafka_4_removed_is_marked() -> None:
    columns = ("api", "api_version", "is_removed_in_kafka_4", "oldest_in_kafka_4")
    shown = assert_shown(CASES, "api_versions", *columns, "request_count")
    (row,) = shown["by weight"]
    assert (row["first_seen"], row["last_seen"]) == (at(0), at(60))
