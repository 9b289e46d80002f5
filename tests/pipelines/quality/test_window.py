"""Which rows of a table are new since its last check."""

from datetime import UTC, datetime, timedelta

from quotaflow.pipelines.quality import new_rows
from quotaflow.pipelines.quality.new_rows import LastCheck, NewRows
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import CLIENT_METRICS

from ...cases import cases
from ...delta_tables import NOON, Fill
from ...rows import Row
from ...schemas.views.view_tables import no_session

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
    ("before", "written_at", "is_new"),
    ("never written", last(), None, False),
    ("nothing written since", last(), NOON - HOUR, False),
    ("written since, be it a result replaced", last(), NOON + HOUR, True),
    ("what failed is looked at again", last(is_critical=True), None, True),
)
def test_is_new(before: LastCheck, written_at: datetime | None, is_new: bool) -> None:
    assert new_rows.is_new(before, written_at) is is_new


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


YEAR_10_030 = 8_060 * 365 * 86_400 * 10**6
"""In microseconds: Python has no later year than 9999."""


def pushed(cluster_id: str, record_time: datetime | int | None) -> Row:
    times = {"event_time": NOON, "event_date": NOON.date(), "record_time": record_time}
    return {"cluster_id": cluster_id} | times


EARLY, LATE = pushed("c1", NOON - HOUR), pushed("c1", NOON)


@cases(
    ("stored", "start", "extent"),
    ("no rows", [], None, NewRows()),
    ("all", [EARLY, LATE], None, NewRows(2, NOON, "c1")),
    ("since a time", [EARLY, LATE], NOON, NewRows(1, NOON, "c1")),
    ("a record may have no time", [EARLY, pushed("c1", None)], NOON, NewRows(1, None, "c1")),
    ("two clusters", [EARLY, pushed("c2", NOON)], None, NewRows(2, NOON, None)),
    (
        "a clock past the years of Python",
        [EARLY, pushed("c1", YEAR_10_030)],
        None,
        NewRows(2, datetime.max.replace(tzinfo=UTC), "c1"),
    ),
)
def test_the_extent_of_the_rows_since_a_time(
    warehouse: Warehouse, fill: Fill, stored: list[Row], start: datetime | None, extent: NewRows
) -> None:
    fill("client_metrics", stored)
    assert new_rows.extent(FolderReader(warehouse), CLIENT_METRICS, start) == extent


def test_when_a_table_was_written(warehouse: Warehouse, fill: Fill) -> None:
    fill("client_metrics", [])
    assert warehouse.detail(no_session, "client_metrics").written_at is None
    before = datetime.now(UTC)
    fill("client_metrics", [EARLY])
    written_at = warehouse.detail(no_session, "client_metrics").written_at
    assert written_at is not None
    # Files have times in milliseconds.
    assert before - timedelta(milliseconds=1) <= written_at <= datetime.now(UTC)
