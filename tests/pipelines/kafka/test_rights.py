"""A refusal names the rights that a login needs, however Kafka's clients spell the error."""

import pytest

from quotaflow.pipelines.kafka.rights import hint

from ...cases import cases

TOPICS = {"request_log_topic": "logs", "receiver_topic": None, "otlp_topic": None}
QUIET = "(quotaflow init prints its ACLs)"


@cases(
    ("role", "refusal", "needs"),
    (
        "a broker's words",
        "apply",
        "31 Cluster authorization failed.",
        "AlterConfigs on cluster kafka-cluster",
    ),
    (
        "kafka-python",
        "troubleshoot",
        "[Error 29] TopicAuthorizationFailedError: logs",
        "Read on topic logs",
    ),
    (
        "a Java class",
        "run",
        "org.apache.kafka.common.errors.GroupAuthorizationException: Not authorized",
        "Read on group spark-kafka*",
    ),
    ("Java", "run", "Not authorized to access topics: [logs]", "Read on topic logs"),
    (
        "a name of Kafka",
        "snapshot",
        "CLUSTER_AUTHORIZATION_FAILED",
        "Describe and DescribeConfigs and AlterConfigs on cluster kafka-cluster",
    ),
    (
        "two words",
        "snapshot",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "Describe on transactional-id *",
    ),
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
