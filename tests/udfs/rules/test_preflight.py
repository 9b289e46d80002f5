import pytest

from quotaflow.udfs.rules.client_metrics import Client, Subscription
from quotaflow.udfs.rules.subscription_safety import LiveClient, harm

PRODUCER, CONSUMER = "org.apache.kafka.producer.", "org.apache.kafka.consumer."


def resource(name, metrics, match=""):
    return Subscription.from_configs(name, {"metrics": metrics, "match": match})


def live(version, name="librdkafka", kind="consumer"):
    return LiveClient(Client("i", "c", name, version), kind)


@pytest.mark.parametrize(
    ("client", "metrics", "why"),
    [
        pytest.param(live("2.5.0"), PRODUCER, "librdkafka 2.5.0 crashes", id="2.5.0 crashes"),
        pytest.param(live("2.5.3"), PRODUCER, "2.5.3 is disconnected", id="2.5.3 is disconnected"),
        pytest.param(live("2.10.0"), PRODUCER, "2.10.0 is disconnected", id="so is 2.10.0"),
        pytest.param(live("2.10.1"), PRODUCER, None, id="2.10.1 is fixed"),
        pytest.param(live("2.4.0"), PRODUCER, None, id="2.4.0 never pushes"),
        pytest.param(live("2.5.0"), CONSUMER, None, id="its own metrics"),
        pytest.param(live("2.5.0"), "*", None, id="all metrics"),
        pytest.param(live("2.5.0"), "", None, id="none at all"),
        pytest.param(live("2.5.0"), f"{PRODUCER},{CONSUMER}", None, id="also its own metrics"),
        pytest.param(
            live("2.5.0"),
            f"{CONSUMER}streams.",
            "a consumer has none of org.apache.kafka.consumer.streams.",
            id="a prefix nothing has",
        ),
        pytest.param(
            live("2.5.0", kind=None), CONSUMER, "as a producer has none", id="it may be a producer"
        ),
        pytest.param(
            live("what"), PRODUCER, "librdkafka what crashes", id="a version nobody knows"
        ),
        pytest.param(live(None), PRODUCER, "of unknown version crashes", id="no version"),
        pytest.param(
            live("2.5.0-rdkafka-2.5.0", "confluent-kafka-python"),
            PRODUCER,
            "confluent-kafka-python 2.5.0-rdkafka-2.5.0 crashes",
            id="what wraps it",
        ),
        pytest.param(
            live("9.9.9-rdkafka-2.12.0", "confluent-kafka-python"), PRODUCER, None, id="fixed too"
        ),
        pytest.param(live("3.7.0", "apache-kafka-java"), PRODUCER, None, id="Java"),
        pytest.param(live("1.0.0", "franz-go"), PRODUCER, None, id="other software"),
        pytest.param(live(None, None), PRODUCER, None, id="software nobody knows"),
    ],
)
def test_harm(client, metrics, why):
    reason = harm([], [resource("new", metrics)], client)
    assert (why in reason) if why else reason is None


def test_only_what_a_change_brings_is_its_harm():
    client, other = live("2.5.0"), resource("other", PRODUCER, "client_id=someone")
    existing = [resource("old", PRODUCER)]
    assert harm(existing, [*existing, other], client) is None
    assert harm([], [other], client) is None
    assert harm([resource("old", CONSUMER)], existing, client)


def test_a_removal_may_harm_too():
    both = [resource("a", PRODUCER), resource("b", CONSUMER)]
    assert "crashes" in harm(both, both[:1], live("2.5.0"))
