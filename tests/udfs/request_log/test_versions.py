"""Lines of brokers of each release, as tests/live/version_traffic.py captured them."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ...record_batches import parsed
from ...rows import Row
from .test_parser import SEVEN, assert_is_what_json_says

OLDEST, NEWEST = "3.9.2", "4.4.0"
VERSIONS = (OLDEST, "4.0.2", "4.1.2", "4.2.2", "4.3.1", NEWEST)
ARRIVED = datetime(2026, 11, 27, tzinfo=UTC)
STOCK = re.compile(r"\[(.*?)\] DEBUG Completed request:(.*) \(kafka\.request\.logger\)")
OF_CLIENTS = {"PRODUCE", "FETCH", "INIT_PRODUCER_ID", "END_TXN", "TXN_OFFSET_COMMIT", "JOIN_GROUP"}
OF_ALL = OF_CLIENTS | {"PUSH_TELEMETRY", "GET_TELEMETRY_SUBSCRIPTIONS", "ALTER_CLIENT_QUOTAS"}
TXN = "TXN_OFFSET_COMMIT"


def captured(golden: Path, version: str) -> list[str]:
    return (golden / "versions" / f"{version}.jsonl").read_text(encoding="utf-8").splitlines()


def json_of(text: str) -> dict[str, Any]:
    stock = STOCK.fullmatch(text)
    whole: dict[str, Any] = json.loads(stock[2] if stock else text)
    return whole


def rows_of(golden: Path, version: str) -> list[Row]:
    values = [line.encode() for line in captured(golden, version)]
    return parsed(values, headers=SEVEN, time=ARRIVED)


@pytest.mark.parametrize("version", VERSIONS)
def test_lines_of_each_release_are_what_a_plain_json_reader_says(
    golden: Path, version: str
) -> None:
    rows = rows_of(golden, version)
    for row, text in zip(rows, captured(golden, version), strict=True):
        assert_is_what_json_says(row, json_of(text))
        assert row["broker_id"] == json_of(text).get("broker", 7)
        assert not row["implausible_time"]
        assert not row["unreadable_numbers"]
    assert {row["api"] for row in rows} >= OF_ALL
    software = {row["client_software_version"] for row in rows if row["api"] in OF_CLIENTS}
    assert software == {version}


def test_the_layout_for_reload4j_dates_lines_with_their_zone(golden: Path) -> None:
    for row, text in zip(rows_of(golden, OLDEST), captured(golden, OLDEST), strict=True):
        stock = STOCK.fullmatch(text)
        assert stock
        assert row["form"] == "stock layout"
        stated = row["stated_time"].astimezone(UTC).isoformat(timespec="milliseconds")
        assert stated.replace("+00:00", "Z") == stock[1]


def test_offsets_of_a_transaction_have_topic_ids_from_version_6_on(golden: Path) -> None:
    """KIP-1319: no topic names, and another name of the generation."""
    rows = {version: rows_of(golden, version) for version in VERSIONS}
    commits = {
        version: next(row for row in of_version if row["api"] == TXN)
        for version, of_version in rows.items()
    }
    bodies = {version: json.loads(row["body"]) for version, row in commits.items()}
    assert commits[NEWEST]["api_version"] == 6
    (topic,) = bodies[NEWEST]["request"]["topics"]
    assert (len(topic["topicId"]), "name" in topic) == (22, False)
    for version, row in commits.items():
        assert (row["group_id"], row["transactional_id"]) == ("version-group", "version-tx")
        assert (row["producer_id"], row["producer_epoch"]) == (
            bodies[version]["request"]["producerId"],
            bodies[version]["request"]["producerEpoch"],
        )
        assert row["partitions"] is None
