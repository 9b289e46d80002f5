"""Values as text: cut, with units, and without characters that do not print."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from quotaflow.pipelines.areas import texts

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
        (texts.number, 1e-9, "0"),
        (texts.number, float("nan"), "not known"),
        (texts.number, float("inf"), "not known"),
        (texts.share, 0.126, "13 %"),
        (texts.size, 1_500, "1.5 kB"),
        (texts.size, None, "not known"),
        (texts.rate, 2e6, "2.0 MB/s"),
        (texts.rate, None, ""),
        (texts.duration, None, ""),
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
