"""Telemetry of a client: what an open alert asks to do, and what ended well enough."""

from datetime import timedelta
from pathlib import Path

from quotaflow.pipelines import config
from quotaflow.pipelines.areas.about import Period
from quotaflow.pipelines.areas.telemetry import group_of
from quotaflow.pipelines.areas.why import why
from quotaflow.pipelines.warehouse.folder_reader import FolderReader

from ...cases import cases
from ...rows import Row, alert, at, row, used
from ...schemas.views.view_tables import make_tables
from .test_why_answers import HOUR, at_folder, rows_of

READER = {"principal": "User:ivan", "client_id": "reader-1"}
WINDOW = used(0, "consumer_byte_rate", 9.0, **READER)
ASSIGNED = "org.apache.kafka.consumer.coordinator.assigned.partitions"
IDLE = "g has 2 members for 1 partition, so a member has none: stop it, or add partitions; to see"


def members(*partitions: int) -> list[Row]:
    """Members of a group; the last one is the client, and each has so many partitions."""
    return [
        row(
            "group_assignments",
            0,
            {},
            group_id="g",
            member_id=f"m{n}",
            client_id=f"reader-{n}",
            assigned_partitions=[{"topic": "t", "partition": p} for p in range(count)],
            is_removed=False,
        )
        for n, count in enumerate(partitions)
    ]


@cases(
    ("metric", "group", "expected"),
    ("more members than partitions", ASSIGNED, members(1, 0), IDLE),
    ("partitions enough, as before a rebalance", ASSIGNED, members(2, 0), "to see"),
    ("it has a partition", ASSIGNED, members(0, 1), "to see"),
    ("another alert", ASSIGNED.replace("assigned", "lost"), members(1, 0), "to see"),
)
def test_an_idle_member_is_told_of_too_few_partitions(
    metric: str, group: list[Row], expected: str, tmp_path: Path
) -> None:
    warehouse = at_folder(tmp_path)
    opened = alert(1, "opened", **READER, client_instance_id="i7", metric=metric)
    content = {"quota_usage": [WINDOW], "metric_alert_events": [opened]}
    make_tables(warehouse, content | {"group_assignments": group})
    steps = [
        each["next_step"]
        for each in rows_of(FolderReader(warehouse), "reader-1")
        if each["evidence_table"] == "metric_alerts"
    ]
    assert [step.startswith(f"{expected} ") for step in steps] == [True]


@cases(
    ("metric", "expected"),
    ("one of a group", ASSIGNED, "org.apache.kafka.consumer.coordinator."),
    (
        "with statistics of its own",
        "org.apache.kafka.producer.produce.throttle.time.avg",
        "org.apache.kafka.producer.",
    ),
    ("of an application", "com.shop.orders.late", "com.shop.orders."),
)
def test_more_metrics_are_more_than_the_one_that_is_known(metric: str, expected: str) -> None:
    assert group_of(metric) == expected


OPENED = alert(0, "opened", **READER, event_time=at(3), first_breach=at(0))
CLEARED = OPENED | {"state": "closed", "reason": "cleared", "event_time": at(20)}
STALE = CLEARED | {"reason": "stale", "last_reading": at(22), "event_time": at(3_622)}
HAS_BEEN = "has been open since 2026-11-21 12:00:03 UTC:"


@cases(
    ("closed", "second", "expected", "is_fine"),
    ("it is cleared", CLEARED, 30, "was open for 17 s from 2026-11-21 12:00:03 UTC:", True),
    ("before it is cleared", CLEARED, 19, HAS_BEEN, False),
    ("before it is stale", STALE, 40, HAS_BEEN, False),
    (
        "no reading came for an hour",
        STALE,
        3_630,
        "was open for 19 s from 2026-11-21 12:00:03 UTC, and then no reading came:",
        True,
    ),
)
def test_an_alert_is_open_at_a_time_before_its_end(
    closed: Row, second: float, expected: str, is_fine: bool, tmp_path: Path
) -> None:
    warehouse = at_folder(tmp_path)
    windows = [used(n, "consumer_byte_rate", 9.0, **READER) for n in (0, 3_600)]
    make_tables(warehouse, {"quota_usage": windows, "metric_alert_events": [OPENED, closed]})
    period = Period(at(second), timedelta(hours=2))
    answered = why(FolderReader(warehouse), "reader-1", period, None, config.Conf())
    (area,) = (area for area in answered.areas if area.name == "telemetry")
    (finding,) = (each for each in area.findings if each.evidence_table == "metric_alerts")
    assert f"alert slow {expected}" in finding.text
    assert area.is_fine == is_fine
    goes_on = closed is STALE and not is_fine
    assert (finding.next_step or "").startswith("to see more metrics") == goes_on


def test_a_client_that_ended_is_no_problem(tmp_path: Path) -> None:
    warehouse = at_folder(tmp_path)
    ended = READER | {"state": "vanished", "missing_pushes": 0, "client_pattern": "reader-#"}
    seen = {"first_seen": at(0), "last_seen": at(9)}
    coverage = [row("client_coverage", 9, ended | seen, client_instance_id="i7")]
    make_tables(warehouse, {"quota_usage": [WINDOW], "client_coverage": coverage})
    (finding,) = [
        each["finding"]
        for each in rows_of(FolderReader(warehouse), "reader-1")
        if each["evidence_table"] == "client_coverage"
    ]
    assert finding == "User:ivan as reader-1: 1 client instance ended without a last push."
    answered = why(FolderReader(warehouse), "reader-1", HOUR, None, config.Conf())
    headings = {area.name: area.heading for area in answered.with_findings}
    assert headings["telemetry"] == "telemetry (1 to improve)"
    assert answered.verdict.hints == 1
