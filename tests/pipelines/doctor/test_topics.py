"""Topics compared with checkpoints: identity, and records that expire."""

from quotaflow.pipelines.doctor import topics
from quotaflow.pipelines.doctor.topics import Offsets, ReadPosition
from quotaflow.pipelines.kafka.admin import Topic
from quotaflow.pipelines.streaming.checkpoints import Checkpoint

from ...cases import cases

TOPIC = Topic("logs", "id1", 2)


def at(*offsets: int) -> Offsets:
    return {("logs", partition): offset for partition, offset in enumerate(offsets)}


@cases(
    ("reach", "expected"),
    ("all read", ReadPosition(at(0, 0), at(5, 5), at(9, 9), at(9, 9)), ("ok", "0 not read yet")),
    ("in time", ReadPosition(at(0, 0), at(5, 5), at(9, 9), at(5, 7)), ("ok", "6 not read yet")),
    (
        "late",
        ReadPosition(at(0, 0), at(5, 5), at(9, 9), at(9, 3)),
        ("warning", "6 not read yet; 2 of them expire soon"),
    ),
    (
        "too late",
        ReadPosition(at(0, 4), at(5, 5), at(9, 9), at(9, 1)),
        ("bad", "5 not read yet; 3 expired before they were"),
    ),
    (
        "a partition that is new",
        ReadPosition(at(0, 2), at(5, 5), at(9, 9), at(9)),
        ("warning", "7 not read yet; 3 of them expire soon"),
    ),
    (
        "past the end",
        ReadPosition(at(0, 0), at(0, 0), at(3, 0), at(9, 0)),
        ("bad", "0 not read yet, and more were read than there are"),
    ),
)
def test_what_becomes_of_records_that_are_not_read(
    reach: ReadPosition, expected: tuple[str, str]
) -> None:
    finding = topics.of_records("records", "new", reach)
    assert (finding.state, finding.observed) == (expected[0], f"new; {expected[1]}")


@cases(
    ("stored", "state"),
    ("this very topic", {"cluster_id": "c", "topic": "logs", "topic_id": "id1"}, "ok"),
    ("made again", {"cluster_id": "c", "topic": "logs", "topic_id": "id0"}, "bad"),
    ("of another cluster", {"cluster_id": "other", "topic": "logs", "topic_id": "id1"}, "bad"),
    ("no known age", None, "bad"),
)
def test_a_checkpoint_belongs_to_the_topic_or_not(
    stored: dict[str, str] | None, state: str
) -> None:
    checkpoint = Checkpoint("ingest_request_log", 4, {}, None, stored)
    finding = topics.identity("request_log_topic", "c", TOPIC, checkpoint)
    assert finding.state == state
    assert ("--accept-new-topic" in finding.remedy) == (state == "bad")


def test_without_a_checkpoint_all_is_well() -> None:
    assert topics.identity("otlp_topic", "c", TOPIC, None).state == "ok"
