"""Charts: the drawn values, and names that are long, equal or unknown."""

import json
from datetime import timedelta
from typing import Any

import pytest

from quotaflow.pipelines.report.charts import (
    TimelineEvent,
    bars,
    by_name,
    heat_map,
    lines,
    timeline,
)

from .pages import NOON

NAN = float("nan")


def drawn(figure: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    parsed = json.loads(figure)
    return parsed["data"], parsed["layout"]


def test_pairs_without_bytes_stay_blank_and_unknown_racks_come_last() -> None:
    cells = {(None, "x"): 5.0, ("b", "y"): 1_500_000.0, ("a", "x"): 0.0}
    (data,), layout = drawn(heat_map(cells, "from", "to"))
    assert layout["yaxis"]["ticktext"] == ["a", "b", "not known"]
    assert data["text"] == [["0 bytes", ""], ["", "1.5 MB"], ["5 bytes", ""]]
    assert (data["zmin"], data["zmax"]) == (0, 1_500_000.0), "colours begin at nothing"


def test_names_that_look_alike_once_they_are_cut_keep_lanes_of_their_own() -> None:
    names = ["x" * 100 + "1", "x" * 100 + "2"]
    (data,), layout = drawn(bars(names, {"bytes": [1.0, 2.0]}, "bytes"))
    assert data["y"] == [0, 1]
    assert layout["yaxis"]["ticktext"] == ["x" * 23 + "…"] * 2
    (heat,), _ = drawn(heat_map({(name, "r"): 1.0 for name in names}, "from", "to"))
    assert heat["y"] == [0, 1]


def test_parts_of_bars_are_told_apart_by_a_legend_and_a_limit_is_a_line() -> None:
    data, layout = drawn(bars(["a"], {"one": [1.0], "two": [None]}, "n", limit=2.0))
    assert [trace.get("name") for trace in data] == ["one", "two", None]
    assert [trace["x"] for trace in data] == [[1.0], [0], [2.0, 2.0]]
    assert layout["showlegend"]
    assert drawn(bars(["a"], {"one": [1.0]}, "n"))[1]["showlegend"], (
        "of what, the axis does not say"
    )
    assert not drawn(bars(["a"], {"n": [1.0]}, "n"))[1]["showlegend"]


def test_a_step_that_nobody_told_breaks_a_line() -> None:
    (data,), _ = drawn(lines({"a": [(20, 2.0), (0, 1.0), (10, 3.0), (50, 4.0)]}, "n", 10))
    assert data["y"] == [1.0, 3.0, 2.0, None, 4.0]
    assert data["x"][0] == "1970-01-01 00:00:00"


def test_lines_are_few_and_differ_in_more_than_colours() -> None:
    data, _ = drawn(lines({f"{n}": [(0, 1.0)] for n in range(9)}, "n", 1, ("limit", 2.0)))
    assert [trace["name"] for trace in data] == ["0", "1", "2", "3", "4", "5", "limit"]
    marks = {(trace["line"]["dash"], trace["marker"]["symbol"]) for trace in data[:-1]}
    assert len(marks) == 6


def test_points_come_by_the_name_of_their_line() -> None:
    rows = [{"who": name, "second": 1, "rate": 2.0} for name in ("b", None, "b")]
    assert by_name(rows, "who", "rate") == {"b": [(1, 2.0), (1, 2.0)], "not known": [(1, 2.0)]}


def test_moments_lie_in_lanes_in_the_order_they_come_and_in_marks_by_kind() -> None:
    kinds = ["set", "set", "gone"]
    events = [
        TimelineEvent(NOON + timedelta(seconds=n), f"lane {n % 2}", kind, "<b>")
        for n, kind in enumerate(kinds)
    ]
    data, layout = drawn(timeline(events))
    assert layout["yaxis"]["ticktext"] == ["lane 0", "lane 1"]
    assert [(trace["name"], trace["y"]) for trace in data] == [("set", [0, 1]), ("gone", [0])]
    assert data[0]["text"] == ["&lt;b&gt;", "&lt;b&gt;"]


@pytest.mark.parametrize("value", [NAN, float("inf")])
def test_values_that_are_no_numbers_stay_valid_json(value: float) -> None:
    (data,), _ = drawn(lines({"a": [(0, value)]}, "n", 1))
    assert data["y"] == [None]
