"""Which rows of a table are new since its last check."""

from datetime import datetime, timedelta

from quotaflow.pipelines.quality import new_rows
from quotaflow.pipelines.quality.new_rows import LastCheck, NewRows
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import CLIENT_METRICS

from ...cases import cases
from ...delta_tables import NOON

HOUR = timedelta(hours=1)


def last(*, is_critical: bool = False, until: datetime | None = NOON) -> LastCheck:
    return LastCheck(at=NOON, from_time=NOON - 5 * HOUR, until=until, is_critical=is_critical)


@cases(
    ("before", "start"),
    ("the first check: all", None, None),
    ("then what may have come late", last(), NOON - HOUR),
    ("what failed, until it is fixed", last(is_critical=True), NOON - 5 * HOUR),
    ("nothing was there", last(until=None), None),
)
def test_since(before: LastCheck | None, start: datetime | None) -> None:
    assert new_rows.since(before, HOUR) == start


@cases(
    ("before", "written", "is_new"),
    ("an empty table is checked once", None, None, True),
    ("and not again", last(), None, False),
    ("nothing written since", last(), NOON - HOUR, False),
    ("written since, be it a result replaced", last(), NOON + HOUR, True),
    ("what failed is looked at again", last(is_critical=True), None, True),
)
def test_is_new(before: LastCheck | None, written: datetime | None, is_new: bool) -> None:
    assert NewRows(rows=1, written=written).is_new(before) is is_new


@cases(
    ("newest", "until"),
    ("the newest row", NOON - HOUR, NOON - HOUR),
    ("a clock that runs ahead leaves nothing out later", NOON + HOUR, NOON),
    ("nothing new: as it was", None, NOON - 2 * HOUR),
)
def test_until(newest: datetime | None, until: datetime) -> None:
    assert NewRows(newest=newest).until(NOON, last(until=NOON - 2 * HOUR)) == until


def test_a_client_s_clock_does_not_tell_what_is_new() -> None:
    assert new_rows.clock(CLIENT_METRICS) == "record_time"
    assert new_rows.clock(TABLES["quota_usage"]) == "event_time"
