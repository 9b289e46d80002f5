from quotaflow.udfs.rules.client_metrics import Client, Subscription
from quotaflow.udfs.rules.subscription_safety import LiveClient, harm

from ...cases import cases

PRODUCER, CONSUMER = "org.apache.kafka.producer.", "org.apache.kafka.consumer."


def resource(name, metrics, match=""):
    return Subscription.from_configs(name, {"metrics": metrics, "match": match})


def live(version, name="librdkafka", kind="consumer"):
    return LiveClient(Client("i", "c", name, version), kind)


@cases(
    ("client", "metrics", "why"),
    ("2.5.0 crashes", live("2.5.0"), PRODUCER, "librdkafka 2.5.0 crashes"),
    ("2.5.3 is disconnected", live("2.5.3"), PRODUCER, "2.5.3 is disconnected"),
    ("so is 2.10.0", live("2.10.0"), PRODUCER, "2.10.0 is disconnected"),
    ("2.10.1 is fixed", live("2.10.1"), PRODUCER, None),
    ("2.4.0 never pushes", live("2.4.0"), PRODUCER, None),
    ("its own metrics", live("2.5.0"), CONSUMER, None),
    ("all metrics", live("2.5.0"), "*", None),
    ("none at all", live("2.5.0"), "", None),
    ("also its own metrics", live("2.5.0"), f"{PRODUCER},{CONSUMER}", None),
    (
        "a prefix nothing has",
        live("2.5.0"),
        f"{CONSUMER}streams.",
        "a consumer has none of org.apache.kafka.consumer.streams.",
    ),
    ("it may be a producer", live("2.5.0", kind=None), CONSUMER, "as a producer has none"),
    ("a version nobody knows", live("what"), PRODUCER, "librdkafka what crashes"),
    ("no version", live(None), PRODUCER, "of unknown version crashes"),
    (
        "what wraps it",
        live("2.5.0-rdkafka-2.5.0", "confluent-kafka-python"),
        PRODUCER,
        "confluent-kafka-python 2.5.0-rdkafka-2.5.0 crashes",
    ),
    ("fixed too", live("9.9.9-rdkafka-2.12.0", "confluent-kafka-python"), PRODUCER, None),
    ("Java", live("3.7.0", "apache-kafka-java"), PRODUCER, None),
    ("other software", live("1.0.0", "franz-go"), PRODUCER, None),
    ("software nobody knows", live(None, None), PRODUCER, None),
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
