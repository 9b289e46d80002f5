"""Topics compared with checkpoints: identity, and records that expire."""

from quotaflow.pipelines.doctor import topics
from quotaflow.pipelines.doctor.topics import Offsets, ReadPosition
from quotaflow.pipelines.kafka.admin import Topic
from quotaflow.pipelines.streaming.checkpoints import Checkpoint

from ... import case_tables
from ...cases import cases

TOPIC = Topic("logs", "id1", 2)


def at(*offsets: int) -> Offsets:
    return {("logs", partition): offset for partition, offset in enumerate(offsets)}


@cases(
    ("reach", "expected"),
    *case_tables.rows(__file__, "what_becomes_of_records_that_are_not_read", ReadPosition, at),
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
