"""Acts of the demo: their lines get a minute each, and no other line is moved."""

from collections.abc import Iterator
from typing import Any

import pytest

from quotaflow.demo import request_lines
from quotaflow.demo.request_lines import MINUTE_MS, Acts, Line

NOW_MS = 1_000 * MINUTE_MS + 59_500
"""Half a second before a minute ends."""


class Clock:
    """This machine's clock, which a test moves on."""

    def __init__(self) -> None:
        self.ms = NOW_MS

    def now_ms(self) -> int:
        return self.ms


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(request_lines, "now_ms", made.now_ms)
    monkeypatch.setattr(request_lines, "LOGGED_AFTER_S", 0.0)
    return made


def played(clock: Clock, acts: Acts, count: int) -> list[int]:
    """Acts of 400 ms, one after the other; when each began."""
    began = []
    for _ in range(count):
        began.append(clock.ms)
        with acts.act():
            clock.ms += 400
    return began


def moved(monkeypatch: pytest.MonkeyPatch, acts: Acts, lines: list[Line]) -> list[int]:
    def logged(_: object) -> Iterator[Line]:
        yield from lines

    monkeypatch.setattr(request_lines, "logged", logged)
    cluster: Any = None
    return [line["ts"] for line in acts.lines(cluster, lambda request: bool(request["ours"]))]


def test_each_act_has_the_next_minute_also_where_a_minute_ends_between_two(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    acts = Acts(first_minutes_ago=4)
    began = played(clock, acts, 3)
    lines = [{"ts": at + 10, "r": {"ours": True}} for at in began]
    first = (1_000 - 4) * MINUTE_MS + 10
    assert moved(monkeypatch, acts, lines) == [first, first + MINUTE_MS, first + 2 * MINUTE_MS]


def test_lines_of_others_and_of_other_times_are_left_out(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    acts = Acts(first_minutes_ago=4)
    (began,) = played(clock, acts, 1)
    others = [
        {"ts": began, "r": {"ours": False}},
        {"ts": began - 1, "r": {"ours": True}},
        {"ts": began + 400, "r": {"ours": True}},
    ]
    assert moved(monkeypatch, acts, others) == []


def test_an_act_of_a_minute_is_an_error(clock: Clock) -> None:
    acts = Acts(first_minutes_ago=4)
    with pytest.raises(TimeoutError), acts.act():
        clock.ms += MINUTE_MS
