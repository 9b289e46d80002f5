"""What client-metrics resources give a client, and the subscription ids of real brokers."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.udfs.rules.client_metrics import (
    DEFAULT_INTERVAL_MS,
    Client,
    Subscription,
    covered,
    effective,
    matches,
    subscription_id,
)

from ...cases import cases

ORDERS = Client("vl7CCx68Qw29SsxmLSK4Xg", "orders", "librdkafka", "2.12.1", "10.0.0.7", 40_000)


def subscription(name="s", **configs):
    return Subscription.from_configs(
        name, {key.replace("_ms", ".ms"): value for key, value in configs.items()}
    )


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        ("", True),
        ("client_id=orders", True),
        ("client_id=order", False),
        ("client_id=ord.*", True),
        (" client_id = orders ", True),
        ("client_id=orders,client_software_name=apache-kafka-java", False),
        ("client_software_name=librdkafka,client_software_version=2\\..*", True),
        ("client_source_address=10\\.0\\.0\\.7,client_source_port=40000", True),
        ("client_instance_id=vl7CCx68Qw29SsxmLSK4Xg|other", True),
        ("client_id=bill|orders", True),
        ("client_id=ORDERS", False),
        ("client_id=orders==", True),
    ],
)
def test_a_match_holds_for_whole_values(match, expected):
    assert matches(subscription(match=match), ORDERS) is expected


def test_what_a_client_does_not_say_is_no_match():
    assert not matches(subscription(match="client_software_name=.*"), Client("i"))


@pytest.mark.parametrize(
    ("configs", "problem"),
    [
        ({"match": "nope=1"}, "Illegal client matching pattern: nope=1"),
        ({"match": "client_id=a=b"}, "Illegal client matching pattern: client_id=a=b"),
        ({"match": "client_id="}, "Illegal client matching pattern: client_id="),
        ({"match": "client_id==a"}, "Illegal client matching pattern: client_id==a"),
        ({"match": "client_id"}, "Illegal client matching pattern: client_id"),
        ({"interval_ms": "50"}, "Invalid value 50 for interval.ms, interval must be between 100"),
        ({"interval_ms": "3600001"}, "Invalid value 3600001"),
        ({"interval_ms": "x"}, "Invalid value x"),
        ({"match": "client_id=("}, "is no pattern that can be evaluated here"),
    ],
)
def test_what_a_broker_refuses_is_refused(configs, problem):
    with pytest.raises(ValueError, match=problem):
        subscription(**configs)


@cases(
    ("subscriptions", "expected"),
    ("no subscription", [], (set(), DEFAULT_INTERVAL_MS)),
    ("one", [{"metrics": "a.,b.", "interval_ms": "1000"}], ({"a.", "b."}, 1_000)),
    (
        "all metrics, the least interval",
        [{"metrics": "a.", "interval_ms": "1000"}, {"metrics": "b.", "interval_ms": "500"}],
        ({"a.", "b."}, 500),
    ),
    (
        "a star means all",
        [{"metrics": "a."}, {"metrics": "*", "interval_ms": "1000"}],
        ({"*"}, 1_000),
    ),
    (
        "longer than the default never takes effect",
        [{"metrics": "a.", "interval_ms": "900000"}],
        ({"a."}, DEFAULT_INTERVAL_MS),
    ),
    (
        "of others only",
        [{"metrics": "a.", "interval_ms": "200", "match": "client_id=x"}],
        (set(), DEFAULT_INTERVAL_MS),
    ),
    ("an interval and no metrics", [{"interval_ms": "200"}], (set(), 200)),
)
def test_what_a_client_is_asked_for(subscriptions, expected):
    made = [subscription(str(i), **configs) for i, configs in enumerate(subscriptions)]
    assert effective(made, ORDERS) == expected
    assert effective(reversed(made), ORDERS) == expected


@cases(
    ("metrics", "expected"),
    ("none", [], {}),
    ("apart", ["a.", "b."], {}),
    ("one in another", ["a.b.", "a.", "a.b.c"], {"a.b.": "a.", "a.b.c": "a."}),
    ("a star covers all", ["*", "a."], {"a.": "*"}),
    ("the same twice is one", ["a.", "a."], {}),
)
def test_prefixes_that_others_cover(metrics, expected):
    assert covered(metrics) == expected


@given(st.lists(st.text("ab", max_size=4)))
def test_prefixes_not_covered_match_as_much_as_all(metrics):
    kept = tuple(set(metrics) - covered(metrics).keys())
    assert not covered(kept)
    assert all(name.startswith(kept) for name in metrics)


def answers(golden: Path):
    lines = (golden / "lines" / "get_telemetry_subscriptions.jsonl").read_text().splitlines()
    parsed = [json.loads(line) for line in lines]
    return [line.get("r", line)["response"] for line in parsed]


def test_ids_are_those_of_real_brokers(golden):
    given = answers(golden)
    assert len({tuple(answer["requestedMetrics"]) for answer in given}) == 3
    for answer in given:
        expected = subscription_id(
            answer["requestedMetrics"], answer["pushIntervalMs"], answer["clientInstanceId"]
        )
        assert expected == answer["subscriptionId"]


@pytest.mark.parametrize("instance", ["", "x", "vl7CCx68Qw29SsxmLSK4X", "ü" * 22, "a" * 2_000])
def test_what_is_no_uuid_has_no_id(instance):
    assert subscription_id(["*"], 1_000, instance) is None
