"""A refusal names the rights that a login needs, however Kafka's clients spell the error."""

import pytest

from quotaflow.pipelines.kafka.rights import hint

TOPICS = {"request_log_topic": "logs", "receiver_topic": None, "otlp_topic": None}
QUIET = "(quotaflow init prints its ACLs)"


@pytest.mark.parametrize(
    ("role", "refusal", "needs"),
    [
        pytest.param(
            "apply",
            "31 Cluster authorization failed.",
            "AlterConfigs on cluster kafka-cluster",
            id="a broker's words",
        ),
        pytest.param(
            "troubleshoot",
            "[Error 29] TopicAuthorizationFailedError: logs",
            "Read on topic logs",
            id="kafka-python",
        ),
        pytest.param(
            "run",
            "org.apache.kafka.common.errors.GroupAuthorizationException: Not authorized",
            "Read on group spark-kafka*",
            id="a Java class",
        ),
        pytest.param(
            "run", "Not authorized to access topics: [logs]", "Read on topic logs", id="Java"
        ),
        pytest.param(
            "snapshot",
            "CLUSTER_AUTHORIZATION_FAILED",
            "Describe and DescribeConfigs and AlterConfigs on cluster kafka-cluster",
            id="a name of Kafka",
        ),
        pytest.param(
            "snapshot",
            "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
            "Describe on transactional-id *",
            id="two words",
        ),
    ],
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
