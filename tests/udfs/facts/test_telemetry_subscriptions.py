"""Answers to clients (KIP-714) as rows: each with the id that Kafka's formula gives it."""

import json
from pathlib import Path
from typing import Any

import pytest

from quotaflow.pipelines.config import IngestSection
from quotaflow.udfs.facts.requests import RequestLog
from quotaflow.udfs.otlp.codecs import Limits

from ...pushes import encoded
from ...record_batches import RECORD_TIME, record_batch


def answers(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    log = RequestLog("cluster", IngestSection().line_options, Limits(), None)
    facts = log.open().read(record_batch(map(encoded, lines)), RECORD_TIME)
    rows: list[dict[str, Any]] = facts.tables["telemetry_subscriptions"].to_pylist()
    return rows


@pytest.fixture
def given(golden: Path) -> list[dict[str, Any]]:
    text = (golden / "lines" / "get_telemetry_subscriptions.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_every_golden_answer_is_a_row_with_the_id_of_the_formula(
    given: list[dict[str, Any]],
) -> None:
    rows = answers(given)
    assert len(rows) == len(given) > 3
    for line, row in zip(given, rows, strict=True):
        response = line["response"]
        assert row["subscription_id"] == response["subscriptionId"]
        assert row["requested_metrics"] == response["requestedMetrics"]
        assert row["push_interval_ms"] == response["pushIntervalMs"]
        assert row["delta_temporality"] == response["deltaTemporality"]
        assert len(row["accepted_compression"]) == len(response["acceptedCompressionTypes"])
        if not response["errorCode"]:
            assert row["expected_subscription_id"] == response["subscriptionId"]


@pytest.mark.parametrize(
    "changed",
    [
        {"errorCode": 42},
        {"clientInstanceId": None},
        {"clientInstanceId": "; DROP TABLE"},
        {"requestedMetrics": None},
        {"requestedMetrics": ["a", None]},
        {"pushIntervalMs": None},
    ],
    ids=str,
)
def test_an_answer_that_cannot_have_an_id_has_none(
    given: list[dict[str, Any]], changed: dict[str, Any]
) -> None:
    (line,) = [each for each in given if not each["response"]["errorCode"]][:1]
    (row,) = answers([line | {"response": line["response"] | changed}])
    assert row["expected_subscription_id"] is None
