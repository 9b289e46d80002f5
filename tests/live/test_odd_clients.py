"""Refused requests, clients with changed subscriptions, share groups: in the tables."""

from pathlib import Path

import pytest

from quotaflow.demo import raw_pushes

from .drive import Run
from .odd_clients import FIRST_INTERVAL_MS, RESUBSCRIBED, SHARING, THEN_INTERVAL_MS
from .tables_read import query


@pytest.mark.parametrize("client_id", raw_pushes.PUSHES)
@pytest.mark.shows("decodes all metric types of OTLP, integers and exemplars")
def test_a_push_as_no_library_makes_it(filled: Path, run: Run, client_id: str) -> None:
    wrong = raw_pushes.PUSHES[client_id]
    assert run.report.push_errors[client_id] == wrong.error_code
    rows = query(
        filled,
        "SELECT error_code, accepted, unreadable_reason IS NULL AS is_readable "
        f"FROM telemetry_pushes WHERE client_id = '{client_id}' AND route = 'request_log' "
        "ORDER BY event_time DESC, source_offset DESC LIMIT 1",
    )
    accepted = wrong.error_code == 0
    assert rows == [
        {"error_code": wrong.error_code, "accepted": accepted, "is_readable": wrong.is_readable}
    ]


@pytest.mark.shows("counts what rejected pushes lost")
def test_rejected_pushes_are_told_by_error(filled: Path) -> None:
    rows = query(filled, "SELECT * FROM telemetry_rejections WHERE client_id LIKE 'raw-%'")
    codes = sorted(wrong.error_code for wrong in raw_pushes.PUSHES.values() if wrong.error_code)
    assert sorted(row["error_code"] for row in rows) == codes


@pytest.mark.shows("shows clients that never push again after an error")
def test_a_client_answered_invalid_request_or_record_is_cut_off_unless_it_had_ended(
    filled: Path,
) -> None:
    rows = query(
        filled, "SELECT client_id, state FROM client_coverage WHERE client_id LIKE 'raw-%'"
    )
    states = {row["client_id"]: row["state"] for row in rows}
    assert states["raw-no-zstd"] == "cut_off"
    assert states["raw-after-its-end"] == "terminated"


def test_a_subscription_changed_under_way(filled: Path) -> None:
    answers = query(
        filled,
        "SELECT push_interval_ms, subscription_id, expected_subscription_id "
        f"FROM telemetry_subscriptions WHERE client_id = '{RESUBSCRIBED}' AND error_code = 0 "
        "AND push_interval_ms IN (1000, 400) ORDER BY event_time",
    )
    intervals = [row["push_interval_ms"] for row in answers]
    assert intervals[0] == FIRST_INTERVAL_MS
    assert intervals[-1] == THEN_INTERVAL_MS
    assert all(row["subscription_id"] == row["expected_subscription_id"] for row in answers)
    refused = query(
        filled,
        f"SELECT error_code FROM telemetry_pushes WHERE client_id = '{RESUBSCRIBED}' "
        "AND route = 'request_log' AND NOT accepted",
    )
    # 117 UNKNOWN_SUBSCRIPTION_ID is how a client learns; librdkafka then pushes too early (89).
    assert 117 in {row["error_code"] for row in refused} <= {89, 117}


def test_what_resources_give_a_client_is_what_it_got(filled: Path) -> None:
    rows = query(
        filled,
        "SELECT subscriptions, predicted_metrics, predicted_interval_ms, state "
        f"FROM client_subscriptions WHERE client_id = '{RESUBSCRIBED}'",
    )
    assert rows == [
        {
            "subscriptions": ["everything", "resubscribed"],
            "predicted_metrics": ["*"],
            "predicted_interval_ms": THEN_INTERVAL_MS,
            "state": "as_predicted",
        }
    ]
    matched = query(
        filled,
        "SELECT subscription, matched_clients, mispredicted_clients FROM metric_subscriptions",
    )
    by_subscription = {row["subscription"]: row for row in matched}
    assert by_subscription["resubscribed"]["matched_clients"] == 1
    assert by_subscription["everything"]["matched_clients"] > 10
    assert by_subscription["everything"]["mispredicted_clients"] == 0


def test_a_share_consumer_tells_its_own_metrics(filled: Path) -> None:
    rows = query(
        filled,
        "SELECT count(DISTINCT metric) AS metrics, bool_and(in_catalogue) AS known "
        f"FROM client_metrics WHERE client_id = '{SHARING}' "
        "AND metric LIKE 'org.apache.kafka.consumer.share.%'",
    )
    assert rows[0]["metrics"] > 10
    assert rows[0]["known"]


def test_a_transactional_producer_is_known_by_its_id(filled: Path) -> None:
    rows = query(
        filled,
        "SELECT DISTINCT transactional_id, client_kind FROM client_instances "
        "WHERE client_id = 'java-payments-bob' AND transactional_id IS NOT NULL",
    )
    assert rows == [{"transactional_id": "java-payments-bob", "client_kind": "producer"}]
