"""A refusal names the rights that a login needs, however Kafka's clients spell the error."""

import pytest

from quotaflow.pipelines.kafka.rights import hint

from ... import case_tables
from ...cases import cases

TOPICS = {"request_log_topic": "logs", "receiver_topic": None, "otlp_topic": None}
QUIET = "(quotaflow init prints its ACLs)"


@cases(
    ("role", "refusal", "needs"), *case_tables.rows(__file__, "a_refusal_says_what_the_login_needs")
)
def test_a_refusal_says_what_the_login_needs(role: str, refusal: str, needs: str) -> None:
    assert hint(role, refusal, TOPICS) == f": this login needs {needs} {QUIET}"


@pytest.mark.parametrize(
    ("role", "text"),
    [("run", "REQUEST_TIMED_OUT"), ("apply", "GROUP_AUTHORIZATION_FAILED"), ("run", "")],
    ids=["another error", "a resource the role has nothing to do with", "nothing"],
)
def test_other_texts_stay_as_they_are(role: str, text: str) -> None:
    assert hint(role, text) == ""


def test_without_names_the_keys_of_conf_stand_for_topics() -> None:
    assert "Read on topic ingest.request_log_topic" in hint("capture", "TopicAuthorization")
