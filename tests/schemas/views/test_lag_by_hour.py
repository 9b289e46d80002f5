"""The lag of groups hour by hour: at one time an end and a position that are both known then."""

from typing import Any

from ...rows import Row, at
from .group_snapshot_rows import committed, ended, fetched, logged_commit, snapshots
from .view_tables import Picked, Tables, assert_shown, view


def _scene(
    *rows: Row, taken: tuple[float, ...] = (0, 600), fetches: tuple[Row, ...] = ()
) -> Tables:
    return {
        "group_offsets": [row for row in rows if "committed_offset" in row],
        "group_commits": [row for row in rows if "last_commit_time" in row],
        "partition_offsets": [row for row in rows if "log_end_offset" in row],
        "replica_offsets": list(fetches),
        "pipeline_progress": snapshots(*taken),
    }


def _noon(greatest: Any, mean: Any, last: Any, known_s: float, reason: str | None = None) -> Picked:
    return [(at(0), greatest, mean, last, known_s, reason)]


SECOND: Row = {"partition": 1}
HOURS: dict[str, tuple[Tables, Picked]] = {
    "a lag holds until the next time at which it is known": (
        _scene(
            *(committed(0, 100), ended(0, 100), ended(600, 160), ended(900, 100)),
            taken=(0, 600, 900),
        ),
        _noon(60, 20.0, 0, 900.0),
    ),
    "at rest": (
        _scene(committed(0, 60), ended(0, 100), taken=(0, 3_600, 7_200)),
        [
            (at(0), 40, 40.0, 40, 3_600.0, None),
            (at(3_600), 40, 40.0, 40, 3_600.0, None),
            (at(7_200), 40, 40.0, 40, 0.0, None),
        ],
    ),
    "nothing is known for hours": (
        _scene(committed(0, 60), ended(0, 100), ended(15_000, 110), taken=(0, 15_000)),
        [(at(0), 40, 40.0, 40, 0.0, None), (at(14_400), 50, 50.0, 50, 0.0, None)],
    ),
    "a commit comes before the end of its minute": (
        _scene(
            *(logged_commit(10, 100), logged_commit(110, 1_050), logged_commit(170, 2_100)),
            taken=(),
            fetches=(fetched(0, 150), fetched(1, 1_150), fetched(2, 2_150)),
        ),
        _noon(100, 75.0, 50, 120.0),
    ),
    "the minute that begins has its own commits": (
        _scene(
            *(logged_commit(0, 100), logged_commit(60, 200)),
            taken=(),
            fetches=(fetched(0, 110), fetched(1, 220)),
        ),
        _noon(20, 10.0, 20, 60.0),
    ),
    "fetches show ends, and no commits: only snapshots have both": (
        _scene(
            *(committed(0, 100), ended(0, 100), committed(600, 500), ended(600, 503)),
            fetches=(fetched(3, 400),),
        ),
        _noon(3, 0.0, 3, 600.0),
    ),
    "the same with commits, and the group stands still": (
        _scene(
            *(committed(0, 100), ended(0, 100), committed(600, 500), ended(600, 503)),
            logged_commit(1, 100),
            fetches=(fetched(3, 400),),
        ),
        _noon(300, 180.0, 3, 600.0),
    ),
    "a snapshot saw more than the fetches of its minute": (
        _scene(
            *(committed(90, 100), ended(90, 170), logged_commit(100, 165)),
            taken=(90,),
            fetches=(fetched(1, 160),),
        ),
        _noon(70, 70.0, 5, 30.0),
    ),
    "lags of one time add up": (
        _scene(
            *(committed(0, 0), ended(0, 100), ended(600, 0)),
            *(committed(0, 0, **SECOND), ended(0, 0, **SECOND), ended(600, 100, **SECOND)),
        ),
        _noon(100, 100.0, 100, 600.0),
    ),
    "a partition whose end is not known": (
        _scene(committed(0, 0), ended(0, 100), committed(0, 0, **SECOND)),
        _noon(None, None, None, 0.0, "end_unknown"),
    ),
    "an offset that the partition does not have": (
        _scene(committed(0, 101), ended(0, 100)),
        _noon(None, None, None, 0.0, "end_before_position"),
    ),
    "a share group": (
        _scene(
            committed(0, None, group_type="share", start_offset=5, reported_lag=7), ended(0, 100)
        ),
        _noon(7, 7.0, 7, 600.0),
    ),
    "whose broker says no lag any more": (
        _scene(
            committed(0, None, group_type="share", start_offset=5, reported_lag=7),
            committed(600, None, group_type="share", start_offset=5),
            ended(0, 100),
            taken=(0, 600, 900),
        ),
        _noon(7, 7.0, 7, 600.0),
    ),
    "whose broker said a lag an hour before": (
        _scene(
            committed(0, None, group_type="share", start_offset=5, reported_lag=7),
            committed(600, None, group_type="share", start_offset=5),
            ended(0, 100),
            taken=(0, 600, 3_900),
        ),
        [(at(0), 7, 7.0, 7, 600.0, None), (at(3_600), None, None, None, 0.0, "not_reported")],
    ),
    "whose broker says no lag": (
        _scene(committed(0, None, group_type="share", start_offset=5), ended(0, 100)),
        _noon(None, None, None, 0.0, "not_reported"),
    ),
    "a group that was removed": (
        _scene(committed(0, 60), committed(600, None, is_removed=True), ended(0, 100)),
        [],
    ),
}


def test_the_lag_of_an_hour_is_of_what_was_known_then() -> None:
    names = ("hour", "max_lag", "mean_lag", "last_lag", "known_s", "unknown_reason")
    assert_shown(HOURS, "lag_by_hour ORDER BY hour", *names)


def test_a_partition_that_comes_later_leaves_the_time_before_unknown() -> None:
    later = [committed(600, 0, **SECOND), ended(600, 5, **SECOND)]
    content = _scene(committed(0, 60), ended(0, 100), *later, taken=(0, 600, 900))
    (hour,) = view("lag_by_hour", content)
    assert (hour["partitions"], hour["unknown_partitions"]) == (2, 0)
    assert (hour["max_lag"], hour["known_s"]) == (45, 300.0)


def _of_many_hours(*older: Row) -> Tables:
    """A group at rest for 200 hours."""
    hours = tuple(3_600.0 * n for n in range(200))
    return _scene(committed(0, 60), ended(0, 100), *older, taken=hours)


def test_it_has_the_newest_hours_and_what_they_begin_with() -> None:
    shown = view("lag_by_hour ORDER BY hour", _of_many_hours())
    assert (len(shown), shown[0]["hour"]) == (192, at(3_600 * 8))
    assert {(hour["max_lag"], hour["last_lag"]) for hour in shown} == {(40, 40)}
    assert {hour["known_s"] for hour in shown[:-1]} == {3_600.0}
    # What came and went before changes nothing, and a clock that is ahead hides one hour alone.
    older = [committed(-7_200, 1), ended(-7_200, 5), logged_commit(-3_600, 2)]
    assert view("lag_by_hour ORDER BY hour", _of_many_hours(*older)) == shown
    ahead = logged_commit(1e9, 61)
    assert len(view("lag_by_hour", _of_many_hours(ahead))) == 191
