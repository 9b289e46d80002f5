"""Which topics nobody uses."""

from ...rows import Row, at, moved
from ...rows import row as table_row
from . import group_snapshot_rows
from .view_tables import Picked, Tables, assert_shown

DAY = 86_400


def topic(name: str, second: float = -9 * DAY, **others: object) -> Row:
    """A topic as a snapshot found it."""
    given = {"topic_id": f"id of {name}", "is_removed": False, "is_internal": False} | others
    return table_row("topics", second, given, topic=name, partition_count=1)


def use(second: float, name: str, **others: object) -> Row:
    """A minute in which a client produced records."""
    return moved(second, 5, **{"topic": name, "topic_id": f"id of {name}"} | others)


ANOTHER = [use(-7 * DAY, "another"), use(0, "another")]
OLD = topic("old")
NOT_IN_LOG = (None, None, None, "not_in_log", 7.0 * DAY, 0)
CASES: dict[str, tuple[Tables, Picked]] = {
    "no log": ({"topics": [OLD]}, [(None, None, None, "no_log", None, 0)]),
    "never in the log": ({"topics": [OLD], "traffic": ANOTHER}, [NOT_IN_LOG]),
    "three days ago": (
        {"topics": [OLD], "traffic": [*ANOTHER, use(-3 * DAY, "old")]},
        [(at(-3 * DAY), None, 3.0 * DAY, None, 3.0 * DAY, 0)],
    ),
    "read since": (
        {
            "topics": [OLD],
            "traffic": [
                *ANOTHER,
                use(-3 * DAY, "old"),
                use(-DAY, "old", direction="consumed", topic=None),
            ],
        },
        [(at(-3 * DAY), at(-DAY), 1.0 * DAY, None, 1.0 * DAY, 0)],
    ),
    "requests name no id": (
        {"topics": [OLD], "traffic": [*ANOTHER, use(-DAY, "old", topic_id=None)]},
        [(at(-DAY), None, 1.0 * DAY, None, 1.0 * DAY, 0)],
    ),
    "only an earlier topic of the name": (
        {"topics": [OLD], "traffic": [*ANOTHER, use(-DAY, "old", topic_id="gone")]},
        [NOT_IN_LOG],
    ),
    # A topic that is younger than the log was not unused before.
    "a new topic": (
        {"topics": [topic("old", -60)], "traffic": ANOTHER},
        [(None, None, None, "not_in_log", 60.0, 0)],
    ),
    "of brokers": (
        {"topics": [topic("old", is_internal=True)], "traffic": ANOTHER},
        [(None, None, None, "internal", None, 0)],
    ),
    "a group waits for records": (
        {
            "topics": [OLD],
            "traffic": ANOTHER,
            "group_assignments": [group_snapshot_rows.assigned("m", 0, topic="old")],
            "group_offsets": [
                group_snapshot_rows.committed(0, 1, topic="old"),
                group_snapshot_rows.committed(0, 1, topic="old", group_id="g2"),
                group_snapshot_rows.committed(0, 1, topic="old", group_id="left", partition=1),
                group_snapshot_rows.committed(
                    9, None, topic="old", group_id="left", partition=1, is_removed=True
                ),
            ],
        },
        [(*NOT_IN_LOG[:5], 2)],
    ),
}


def test_a_topic_is_idle_for_as_long_as_the_log_shows() -> None:
    times = ("last_produced", "last_fetched", "idle_s", "idle_unknown", "known_idle_s")
    assert_shown(CASES, "topic_uses", *times, "groups")
