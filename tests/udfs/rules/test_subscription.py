"""Subscription ids against those real brokers gave."""

import json
from pathlib import Path

import pytest

from quotaflow.udfs.rules.client_metrics import subscription_id


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
