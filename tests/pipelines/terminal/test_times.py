"""Times and durations as people write them."""

from datetime import UTC, datetime

import pytest

from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.terminal import times

NOW = datetime(2026, 10, 25, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("10m", "2026-10-25T12:20:00"),
        (" 1d ", "2026-10-24T12:30:00"),
        ("2026-01-31T12:00", "2026-01-31T12:00:00"),
        ("2026-01-31 12:00:00.5", "2026-01-31T12:00:00.500000"),
        ("2026-01-31T12:00Z", "2026-01-31T12:00:00"),
        ("2026-01-31T12:00+05:30", "2026-01-31T06:30:00"),
        ("2026-01-31", "2026-01-31T00:00:00"),
        ("20260131T120000Z", "2026-01-31T12:00:00"),
        ("12:29", "2026-10-25T12:29:00"),
        ("12:30", "2026-10-25T12:30:00"),
        ("12:31", "2026-10-24T12:31:00"),
        ("19:45+02:00", "2026-10-24T17:45:00"),
        ("14:15+02:00", "2026-10-25T12:15:00"),
        ("02:29:59+14:00", "2026-10-25T12:29:59"),
        ("03:00-03:30", "2026-10-25T06:30:00"),
        ("23:59:59Z", "2026-10-24T23:59:59"),
    ],
)
def test_a_time_without_a_zone_is_utc(text: str, meant: str) -> None:
    assert times.since(text, NOW) == datetime.fromisoformat(meant).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        *("", "yesterday", "25:00", "12:60", "7:45", "12:00+25:00", "2026-02-30"),
        *("10 m", "0m", "-5m", "999999999d"),
        *("0001-01-01T00:00+14:00", "9999-12-31T23:00-14:00"),
    ],
)
def test_what_is_no_time_is_one_error_that_shows_times(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--at|no duration"):
        times.since(text, NOW, "--at")
