"""Times without a zone, read in that of conf: the hour that comes twice, and the one that is none.

In Berlin 02:30 comes twice on 2026-10-25, at 00:30Z (summer time) and at 01:30Z, and never on
2026-03-29.
"""

import json
import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from quotaflow.pipelines.config import IngestSection

from ...cases import cases, first_of
from ...record_batches import parsed, parsed_cases
from .test_wrappers import LINE

BERLIN = IngestSection(time_zone="Europe/Berlin")
FIRST = datetime(2026, 10, 25, 0, 30, 0, 500_000, tzinfo=UTC)
SECOND = FIRST + timedelta(hours=1)
NIGHT = "2026-10-25 02:30:00,500"
COLUMNS = ("event_time", "stated_time", "ambiguous_time", "implausible_time")


def line(local: str) -> bytes:
    return f"[{local}] DEBUG Completed request:{LINE} (kafka.request.logger)".encode()


TWICE = [
    ("just after the first", FIRST + timedelta(seconds=0.5), FIRST, False),
    ("later, before the second", FIRST + timedelta(minutes=58), FIRST, False),
    ("a clock that is ahead", FIRST - timedelta(seconds=59), FIRST, False),
    ("by the skew before it", SECOND - timedelta(seconds=59), SECOND, False),
    ("just after the second", SECOND + timedelta(seconds=0.5), SECOND, False),
    ("an hour after it", SECOND + timedelta(hours=1), SECOND, False),
    ("later: either", SECOND + timedelta(hours=1, seconds=1), SECOND, True),
    ("a record without a time", None, FIRST, True),
]


def test_a_time_that_comes_twice_is_the_instant_nearest_before_its_record() -> None:
    recorded = [at for _, at, *_ in TWICE]
    rows = parsed_cases({case: line(NIGHT) for case, *_ in TWICE}, BERLIN, time=recorded)
    assert [(case, *(row[name] for name in COLUMNS)) for case, row in rows.items()] == [
        (case, instant, instant, is_ambiguous, False) for case, _, instant, is_ambiguous in TWICE
    ]


def test_a_broker_far_ahead_of_its_record_is_bounded_as_at_any_time() -> None:
    recorded = FIRST - timedelta(minutes=10)
    (row,) = parsed([line(NIGHT)], BERLIN, time=recorded)
    bound = recorded + timedelta(seconds=BERLIN.max_clock_skew_s)
    assert (row["event_time"], row["stated_time"]) == (bound, FIRST)


def test_a_shipper_s_time_decides_where_the_record_s_cannot() -> None:
    read_at = {each: (each + timedelta(seconds=2)).isoformat() for each in (FIRST, SECOND)}
    values = [
        json.dumps({"@timestamp": text, "message": line(NIGHT).decode()}).encode()
        for text in read_at.values()
    ]
    rows = parsed(values * 2, BERLIN, time=[None] * 2 + [SECOND + timedelta(hours=9)] * 2)
    assert [tuple(row[name] for name in COLUMNS) for row in rows] == [
        (instant, instant, False, False) for instant in (*read_at, *read_at)
    ]


def test_a_record_s_time_counts_more_than_a_shipper_s() -> None:
    """A shipper may have read the line's own time, in the wrong zone or as the wrong instant."""
    message = line(NIGHT).decode()
    values = [
        json.dumps({"@timestamp": read_at, "message": message}).encode()
        for read_at in ("2026-10-25T02:30:00.500Z", FIRST.isoformat(), NIGHT)
    ]
    for instant in (FIRST, SECOND):
        rows = parsed(values, BERLIN, time=instant + timedelta(seconds=2))
        assert {row["event_time"] for row in rows} == {instant}


@cases(
    ("zone", "local"),
    ("an hour in spring", "Europe/Berlin", "2026-03-29 02:30:00"),
    ("its first instant", "Europe/Berlin", "2026-03-29 02:00:00"),
    ("half an hour", "Australia/Lord_Howe", "2026-10-04 02:15:00"),
    ("the day that Samoa left out", "Pacific/Apia", "2011-12-30 12:00:00"),
)
def test_a_time_that_its_zone_does_not_have_is_unreadable(zone: str, local: str) -> None:
    recorded = datetime(2026, 3, 29, 1, 30, 7, tzinfo=UTC)
    (row,) = parsed([line(local)], IngestSection(time_zone=zone), time=recorded)
    assert tuple(row[name] for name in COLUMNS) == (recorded, None, False, True)


def test_no_other_time_is_ambiguous() -> None:
    texts = [b"x", line("2026-10-25 01:59:59,999"), line("2026-10-25 03:00:00"), LINE.encode()]
    zoned = [line(f"{NIGHT}{zone}") for zone in ("Z", "+0200", "+01:00")]
    envelope = json.dumps({"ts": 1_792_888_200_500, "r": json.loads(LINE)}).encode()
    rows = parsed([*texts, *zoned, envelope], BERLIN, time=None)
    assert not any(row["ambiguous_time"] for row in rows)
    assert [row["stated_time"] for row in rows[4:]] == [
        datetime(2026, 10, 25, 2, 30, 0, 500_000, tzinfo=UTC), FIRST, SECOND, FIRST
    ]  # fmt: skip
    (row,) = parsed([line(NIGHT)], time=SECOND)
    assert (row["event_time"], row["ambiguous_time"]) == (SECOND, False)


def test_a_time_of_no_year_that_counts_costs_only_itself() -> None:
    texts = ["infinity", "-infinity", "294247-01-10 04:00:54", "290309-12-22 (BC) 00:00:00"]
    texts += ["2009-12-31 23:59:59", "2100-01-01 02:00:00", "9999-12-31 23:59:59"]
    values = [json.dumps({"ts": text, "r": json.loads(LINE)}).encode() for text in texts]
    rows = parsed(values, BERLIN, time=SECOND)
    assert {tuple(row[name] for name in COLUMNS) for row in rows} == {(SECOND, None, False, True)}


ZONES = {
    "America/St_Johns": 60,
    "Antarctica/Troll": 120,
    "Australia/Lord_Howe": 30,
    "Europe/Berlin": 60,
    "America/New_York": 60,
    "America/Santiago": 60,
    "Asia/Kolkata": 60,
    "UTC": 60,
}
"""Zones, and the minutes by which their clocks go back."""


def _instants(zone: ZoneInfo) -> list[datetime]:
    """Each sixth hour of a year, and every other minute of the hours around a change."""
    start = datetime(2026, 1, 1, 0, 0, 7, 250_000, tzinfo=UTC)
    coarse = [start + timedelta(hours=n, minutes=n % 60) for n in range(0, 24 * 365, 6)]
    offsets = [each.astimezone(zone).utcoffset() for each in coarse]
    changes = [
        later
        for (_, later), (old, new) in zip(pairwise(coarse), pairwise(offsets), strict=True)
        if old != new
    ]
    fine = [each + timedelta(minutes=n) for each in changes for n in range(-600, 240, 2)]
    return sorted({*coarse, *fine})


@pytest.mark.parametrize("name", first_of(ZONES, 3))
def test_each_instant_of_a_year_comes_back_from_its_local_time_and_its_record(name: str) -> None:
    """In any order and any batch, because no record affects another."""
    draw, zone, shift_s = random.Random(name), ZoneInfo(name), ZONES[name] * 60
    instants = _instants(zone)
    draw.shuffle(instants)
    most_s = shift_s - BERLIN.max_clock_skew_s - 1
    delays = [draw.choice((0.001, 1, 5, draw.uniform(0, most_s), most_s)) for _ in instants]
    values = [line(f"{each.astimezone(zone):%Y-%m-%d %H:%M:%S,%f}"[:-3]) for each in instants]
    times = [each + timedelta(seconds=s) for each, s in zip(instants, delays, strict=True)]
    ingest, cut = IngestSection(time_zone=name), draw.randrange(len(instants))
    rows = parsed(values[:cut], ingest, time=times[:cut])
    rows += parsed(values[cut:], ingest, time=times[cut:])
    wrong = [
        (each, row["event_time"])
        for each, row in zip(instants, rows, strict=True)
        if row["event_time"] != each or row["ambiguous_time"] or row["implausible_time"]
    ]
    assert not wrong[:3]
