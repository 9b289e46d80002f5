"""Values as text: cut, with units, and without characters that do not print."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines.terminal import readable, texts

from ...cases import cases
from ...delta_tables import NOON


@cases(
    ("name", "shown"),
    ("none", None, "not known"),
    ("plain", "az-a", "az-a"),
    ("what does not print", "a\u202eb\n", "a\ufffdb\ufffd"),
    ("too long", "x" * 60, "x" * 23 + "…"),
    ("what marks our commands", "`quotaflow`", "&#x27;quotaflow&#x27;"),
    ("markup", "<b>&amp;", "&lt;b&gt;&amp;amp;"),
)
def test_labels_are_bounded_text(name: str | None, shown: str) -> None:
    assert texts.label(name) == shown


@pytest.mark.parametrize(
    ("show", "value", "shown"),
    [
        (texts.number, None, ""),
        (texts.number, 1_234_567.8, "1,234,568"),
        (texts.number, 0.5, "0.5"),
        (texts.number, 3.0, "3"),
        (texts.number, 20.0, "20"),
        (texts.number, 0.001377, "0.0014"),
        (texts.number, 2e-6, "0.000002"),
        (texts.number, -0.002, "-0.002"),
        (texts.number, 1e-9, "0.000000001"),
        (texts.number, 1e-12, "1e-12"),
        (texts.number, float("nan"), "not known"),
        (texts.number, float("inf"), "not known"),
        (texts.share, 0.126, "13 %"),
        (texts.share, 0.004, "0.4 %"),
        (texts.size, 1_500, "1.5 kB"),
        (texts.size, 1, "1 byte"),
        (texts.size, 0.4, "0.4 bytes"),
        (texts.size, None, "not known"),
        (texts.rate, 2e6, "2.0 MB/s"),
        (texts.rate, 20_000, "20.0 kB/s"),
        (texts.rate, None, ""),
        (texts.duration, None, ""),
        (texts.duration, 0.03, "0.03 ms"),
        (texts.duration, 850, "850 ms"),
        (texts.duration, 12_340, "12 s"),
        (texts.duration, 7_400, "7.4 s"),
        (texts.duration, 180_000, "3 min"),
        (texts.duration, 86_400_000, "24 h"),
        (texts.duration, 864_000_000, "10 days"),
    ],
)
def test_values_have_units_people_read(show: Callable[[Any], str], value: Any, shown: str) -> None:
    assert show(value) == shown


UNITS = {
    **dict.fromkeys(["", "byte", "bytes", "ms"], 1.0),
    **{f"{prefix}B": 10.0 ** (3 * n) for n, prefix in enumerate("kMGTPEZY", 1)},
    **{"%": 0.01, "s": 1e3, "min": 6e4, "h": 36e5, "days": 864e5},
}


def parsed(text: str) -> float:
    """The number that a text says: of bytes, of ms, or of the whole."""
    digits, _, unit = text.removesuffix("/s").partition(" ")
    return float(digits.replace(",", "")) * UNITS[unit]


@pytest.mark.parametrize(
    "show",
    [
        texts.number,
        texts.precise,
        partial(texts.precise, digits=3),
        texts.fixed,
        partial(texts.fixed, decimals=3, group=","),
        texts.share,
        texts.size,
        texts.rate,
        texts.duration,
        partial(readable.whole, "value"),
    ],
)
@given(st.floats(-1e24, 1e24).filter(bool) | st.floats(-1e3, 1e3).filter(bool))
def test_no_number_is_shown_as_zero_or_off_by_more_than_five_per_cent(
    show: Callable[[float], str], value: float
) -> None:
    assert parsed(show(value)) == pytest.approx(value, rel=0.05, abs=0.0)


@cases(
    ("names", "shown"),
    ("nobody", [], ""),
    ("one", ["a"], "a"),
    ("each once", ["a", "b", "a"], "a and b"),
    ("as many as are shown", list("abcde"), "a, b, c, d and e"),
    ("more than are shown", list("abcdefg"), "a, b, c, d, e and 2 more"),
    ("bounded", ["x" * 99], "x" * 47 + "…"),
)
def test_names_in_a_sentence(names: list[str], shown: str) -> None:
    assert texts.names(names) == shown


@pytest.mark.parametrize(
    ("last", "shown"),
    [
        (NOON + timedelta(hours=1), "2026-11-21 12:00:00 to 13:00:00 UTC"),
        (NOON + timedelta(days=1), "2026-11-21 12:00:00 to 2026-11-22 12:00:00 UTC"),
        (None, ""),
    ],
)
def test_spans_name_a_day_once(last: datetime | None, shown: str) -> None:
    assert texts.time_range(NOON, last) == shown


def test_money_needs_prices() -> None:
    assert texts.money(None, "EUR") == ""
    assert texts.money(1_234.5, "EUR") == "1,234.50 EUR"
    assert texts.money(0.0, "EUR") == "0.00 EUR"
    assert texts.money(0.000_026, "EUR") == "less than 0.01 EUR"
