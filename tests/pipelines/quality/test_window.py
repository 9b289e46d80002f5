"""Which rows of a table are new since its last check."""

from datetime import datetime, timedelta

import pytest

from quotaflow.pipelines.quality import new_rows
from quotaflow.pipelines.quality.new_rows import LastCheck, NewRows
from quotaflow.schemas.tables.quotas import QUOTA_USAGE
from quotaflow.schemas.tables.telemetry import CLIENT_METRICS

from ...delta_tables import NOON

HOUR = timedelta(hours=1)


def last(*, is_critical: bool = False, until: datetime | None = NOON) -> LastCheck:
    return LastCheck(at=NOON, from_time=NOON - 5 * HOUR, until=until, is_critical=is_critical)


@pytest.mark.parametrize(
    ("before", "start"),
    [
        pytest.param(None, None, id="the first check: all"),
        pytest.param(last(), NOON - HOUR, id="then what may have come late"),
        pytest.param(last(is_critical=True), NOON - 5 * HOUR, id="what failed, until it is fixed"),
        pytest.param(last(until=None), None, id="nothing was there"),
    ],
)
def test_since(before: LastCheck | None, start: datetime | None) -> None:
    assert new_rows.since(before, HOUR) == start


@pytest.mark.parametrize(
    ("before", "written", "is_new"),
    [
        pytest.param(None, None, True, id="an empty table is checked once"),
        pytest.param(last(), None, False, id="and not again"),
        pytest.param(last(), NOON - HOUR, False, id="nothing written since"),
        pytest.param(last(), NOON + HOUR, True, id="written since, be it a result replaced"),
        pytest.param(last(is_critical=True), None, True, id="what failed is looked at again"),
    ],
)
def test_is_new(before: LastCheck | None, written: datetime | None, is_new: bool) -> None:
    assert NewRows(rows=1, written=written).is_new(before) is is_new


@pytest.mark.parametrize(
    ("newest", "until"),
    [
        pytest.param(NOON - HOUR, NOON - HOUR, id="the newest row"),
        pytest.param(NOON + HOUR, NOON, id="a clock that runs ahead leaves nothing out later"),
        pytest.param(None, NOON - 2 * HOUR, id="nothing new: as it was"),
    ],
)
def test_until(newest: datetime | None, until: datetime) -> None:
    assert NewRows(newest=newest).until(NOON, last(until=NOON - 2 * HOUR)) == until


def test_a_client_s_clock_does_not_tell_what_is_new() -> None:
    assert new_rows.clock(CLIENT_METRICS) == "record_time"
    assert new_rows.clock(QUOTA_USAGE) == "event_time"
