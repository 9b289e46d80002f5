"""Lines of a file in a zone whose clocks go back: their times go forward, as the file was written.

In Berlin 02:00 to 02:59 of 2026-10-25 come twice: at 00:00Z to 00:59Z, and an hour later.
"""

import io
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines.config import Conf, IngestSection
from quotaflow.pipelines.facts import request_lines
from quotaflow.pipelines.facts.request_lines import Lines

from ... import case_tables
from ...cases import cases
from ...examples import EXPENSIVE

ZONE = "Europe/Berlin"
CONF = Conf(ingest=IngestSection(time_zone=ZONE))
NOW = datetime(2027, 2, 3, tzinfo=UTC)
BARE = {
    "isForwarded": False,
    "requestHeader": {"requestApiKey": 0, "requestApiKeyName": "PRODUCE", "correlationId": 1},
    "request": {},
    "response": {},
}


def read(texts: Iterable[str]) -> tuple[list[str], Lines]:
    """The event times of lines with these local times; `-` is a line without a time."""
    line = json.dumps(BARE)
    whole = (
        line if text == "-" else f"[{text}] DEBUG Completed request:{line} (k)" for text in texts
    )
    lines = Lines(CONF, "file", NOW, print)
    rows = list(lines.rows(io.BytesIO("\n".join(whole).encode())))
    return [str(row["event_time"])[11:19] for row in rows], lines


def night(*times: str) -> list[str]:
    return [each if each == "-" else f"2026-10-25 {each},000" for each in times]


@cases(
    ("local", "instants", "ambiguous"), *case_tables.rows(__file__, "times_of_a_file_go_forward")
)
def test_times_of_a_file_go_forward(
    local: Sequence[str], instants: Sequence[str], ambiguous: int
) -> None:
    times, lines = read(night(*local))
    assert times == list(instants)
    assert lines.doubtful == ({"ambiguous_time": ambiguous} if ambiguous else {})


def test_a_line_of_another_day_does_not_decide() -> None:
    times, lines = read([*night("01:50:00"), "2026-10-29 10:00:00,000", *night("02:10:00")])
    assert times == ["23:50:00", "09:00:00", "00:10:00"]
    assert lines.doubtful == {"ambiguous_time": 1}


def test_a_file_that_is_read_in_the_night_has_no_time_of_the_future() -> None:
    now = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    text = "\n".join(f"[{each}] DEBUG Completed request:{json.dumps(BARE)} (k)"
                     for each in night("01:50:00", "02:29:00", "02:00:00"))  # fmt: skip
    lines = Lines(CONF, "file", now, print)
    times = [row["event_time"] for row in lines.rows(io.BytesIO(text.encode()))]
    assert [each[11:19] for each in times] == ["23:50:00", "00:29:00", "00:31:00"]


@EXPENSIVE
@given(steps=st.lists(st.integers(1, 3_539), min_size=1, max_size=30), chunk=st.integers(1, 7))
def test_each_instant_of_a_night_comes_back_in_any_chunks(steps: list[int], chunk: int) -> None:
    """If no two lines are further apart than the hour that comes twice, less the skew."""
    start = datetime(2026, 10, 24, 22, tzinfo=UTC)
    instants = [start + timedelta(seconds=s) for s in accumulate(steps, initial=0)]
    local = [f"{each.astimezone(ZoneInfo(ZONE)):%Y-%m-%d %H:%M:%S},000" for each in instants]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(request_lines, "_CHUNK_LINES", chunk)
        times, lines = read(local)
    assert times == [f"{each:%H:%M:%S}" for each in instants]
    assert not lines.doubtful
