"""Charts: what is drawn, and names that are long, equal or unknown."""

import re
from datetime import timedelta

import pytest

from quotaflow.pipelines.report import svg
from quotaflow.pipelines.report.charts import (
    TimelineEvent,
    bars,
    gauges,
    heat_map,
    period_line,
    timeline,
    worst,
)
from quotaflow.pipelines.report.plots import areas, by_name, lines, sparkline

from ...delta_tables import NOON

NAN = float("nan")


def words(figure: str) -> list[str]:
    """Texts of a drawing, in order."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", figure)


def tints(figure: str) -> dict[str, str]:
    """How bright each cell of a heat map is, by the text at the pointer."""
    cells = re.findall(r'fill-opacity="([^"]*)"><title>([^<]*)</title>', figure)
    return {hint: tint for tint, hint in cells}


def hints(figure: str) -> list[str]:
    """What steps of time show at the pointer."""
    return re.findall(r'class="step"><title>([^<]*)<', figure)


def widths(figure: str, css: str) -> list[str]:
    """Widths in per cent of rectangles of a class."""
    return re.findall(rf'width="([^"]*)%" height="[^"]*" class="{css}"', figure)


def test_areas_stack_their_parts_and_mark_events() -> None:
    series = {"quota": [(0, 30.0), (60, None)], "broker": [(0, 10.0), (60, 20.0)]}
    events = [(30.0, "one was altered"), (31.0, "two was altered"), (999.0, "later")]
    figure = areas(series, 60, str, events)
    shapes = re.findall(r'<polygon points="([^"]*)" class="area ([^"]*)"', figure)
    assert shapes == [
        ("0.0,100.0 500.0,100.0 500.0,220.0 1000.0,220.0 1000.0,220.0 500.0,220.0 500.0,220.0 "
         "0.0,220.0", "fill-0"),
        ("0.0,60.0 500.0,60.0 500.0,140.0 1000.0,140.0 1000.0,220.0 500.0,220.0 500.0,100.0 "
         "0.0,100.0", "fill-1"),
    ]  # fmt: skip
    assert hints(figure) == [
        "01-01 00:00: quota 30.0, broker 10.0",
        "01-01 00:01: broker 20.0",
    ]
    assert figure.count("one was altered; two was altered") == 1, "marks do not hide each other"
    assert "later" not in figure
    assert "a config changed" not in areas(series, 60, str)
    assert "<polygon" not in areas({}, 60, str)


def test_a_missing_step_is_a_gap_of_areas_and_a_part_without_values_keeps_its_colour() -> None:
    figure = areas({"none": [], "some": [(0, 1.0), (120, 1.0)]}, 60, str)
    assert re.findall(r'class="area ([^"]*)"', figure) == ["fill-1", "fill-1"]
    assert "</svg> none</span>" not in figure
    assert "</svg> some</span>" in figure
    drawn = bars(["a"], {"none": [None], "some": [1.0]}, "n")
    assert "</svg> none</span>" not in drawn
    assert widths(drawn, "bar fill-1") == ["78.00"]


def test_a_sparkline_is_drawn_over_the_whole_time() -> None:
    figure = sparkline([(60, 5.0)], 60, str, (0, 240))
    assert 'points="250.0,0.0 500.0,0.0 500.0,40.0 250.0,40.0"' in figure
    assert hints(figure) == ["01-01 00:01: 5.0"]
    assert sparkline([], 60, str, (0, 240)) == ""


def test_a_gauge_is_full_at_its_limit_and_says_what_is_left() -> None:
    figure = gauges([("a", 0.5, "half"), ("b", 0.8, "nearly"), ("c", 1.2, "over"), ("d", NAN, "?")])
    assert widths(figure, "bar well") == ["50.00", "0.00"]
    assert widths(figure, "bar soon") == ["80.00"]
    assert widths(figure, "bar now") == ["100.00"]
    assert words(figure) == ["a", "half", "b", "nearly", "c", "over", "d", "?"]


def test_a_period_is_within_its_time_line_and_never_too_short_to_see() -> None:
    assert widths(period_line((0, 100), (20, 60), "", "an hour"), "period ") == ["40.00"]
    assert widths(period_line((0, 100), (-50, 10), "", "since before"), "period ") == ["10.00"]
    end = period_line((0, 100), (100, 100), "rank1", "now")
    assert re.findall(r'x="([^"]*)" y="1" width="([^"]*)"', end) == [("98.50%", "1.50%")]


def test_bytes_between_racks_are_brighter_the_more_there_are() -> None:
    cells = {("a", "a"): 9e9, ("a", "b"): 1e6, ("b", "a"): 2e6, (None, "a"): 5e9}
    assert worst(cells) == 2e6, "bytes within a rack have no part in the scale"
    assert list(tints(heat_map(cells, "from", "to")).values()) == ["0.00", "0.56", "1.00", "0.00"]
    side_by_side = tints(heat_map(cells, "from", "to", 4e6))
    assert list(side_by_side.values()) == ["0.00", "0.34", "0.56", "0.00"]
    assert "4.0 MB" in heat_map(cells, "from", "to", 4e6).rpartition("crossed racks: 0")[2]


def test_pairs_without_bytes_stay_blank_and_unknown_racks_come_last() -> None:
    figure = heat_map({(None, "x"): 5.0, ("b", "y"): 1_500_000.0, ("a", "x"): 0.0}, "from", "to")
    assert words(figure) == ["x", "y", "a", "0 bytes", "b", "1.5 MB", "not known", "5 bytes"]
    assert len(tints(figure)) == 3


def test_names_that_look_alike_once_they_are_cut_keep_lanes_of_their_own() -> None:
    names = ["x" * 100 + "1", "x" * 100 + "2"]
    figure = bars(names, {"bytes": [1.0, 2.0]}, "bytes")
    assert words(figure) == ["x" * 59 + "…", "1", "x" * 59 + "…", "2"]
    heat = heat_map({(name, "r"): 2.0 for name in names}, "from", "to")
    assert words(heat).count("2 bytes") == 2


def test_parts_of_bars_have_a_legend_and_a_limit_is_a_line() -> None:
    figure = bars(["a"], {"one": [1.0], "two": [None]}, "n", limit=2.0)
    assert words(figure) == ["a", "1"]
    assert re.findall(r'class="(?:bar|limit)[^"]*"', figure) == [
        'class="bar fill-0"',
        'class="limit"',
    ]
    assert "legend" in figure
    assert "legend" in bars(["a"], {"one": [1.0]}, "n"), "of what, the axis does not say"
    assert "legend" not in bars(["a"], {"n": [1.0]}, "n")


def test_a_missing_step_breaks_a_line() -> None:
    figure = lines({"a": [(20, 2.0), (0, 1.0), (10, 3.0), (50, 4.0)]}, "n", 10)
    assert figure.count("<polyline") == 1
    assert figure.count("<circle") == 4
    assert len(re.findall('points="([^"]*)"', figure)[0].split()) == 3
    assert hints(figure)[0] == "01-01 00:00:00: a 1"
    assert words(figure)[-3:] == ["00:00:00", "00:00:25", "00:00:50"]


def test_an_axis_has_each_time_once() -> None:
    assert words(lines({"a": [(0, 1.0), (1, 2.0)]}, "n", 1))[-2:] == ["00:00:00", "00:00:01"]
    assert words(lines({"a": [(5, 1.0)]}, "n", 1))[-1:] == ["00:00:05"]


def test_lines_are_few_and_differ_in_more_than_colours() -> None:
    series = {f"{n}": [(0, 1.0), (1, 2.0)] for n in range(9)}
    figure = lines(series, "n", 1, ("limit", 2.0))
    assert figure.count("<polyline") == 6
    drawn = re.findall(r'<polyline[^>]*class="([^"]*)" stroke-dasharray="([^"]*)"', figure)
    assert len({dash for _, dash in drawn}) == len({colour for colour, _ in drawn}) == 6
    assert "limit: 2" in words(figure)


def test_lines_without_a_point_say_so() -> None:
    assert lines({}, "n", 1, ("limit", 2.0)) == lines({"a": []}, "n", 1)
    assert "No whole step" in lines({}, "n", 1)


def test_points_come_by_the_name_of_their_line() -> None:
    rows = [{"who": name, "second": 1, "rate": 2.0} for name in ("b", None, "b")]
    assert by_name(rows, "who", "rate") == {"b": [(1, 2.0), (1, 2.0)], "not known": [(1, 2.0)]}


def test_moments_lie_in_lanes_in_the_order_they_come_and_in_marks_by_kind() -> None:
    kinds = ["set", "set", "gone"]
    events = [
        TimelineEvent(NOON + timedelta(seconds=n), f"lane {n % 2}", kind, "<b>")
        for n, kind in enumerate(kinds)
    ]
    figure = timeline(events)
    assert words(figure)[:2] == ["lane 0", "lane 1"]
    marks = re.findall(r'<svg x="[^"]*" y="([^"]*)".*?class="(mark-.)"', figure)
    assert marks == [("30", "mark-0"), ("74", "mark-0"), ("30", "mark-1")]
    assert "12:00:00: &lt;b&gt;" in figure


@pytest.mark.parametrize("value", [NAN, float("inf"), -float("inf")])
def test_values_that_are_no_numbers_are_not_drawn(value: float) -> None:
    assert "<circle" not in lines({"a": [(0, value)]}, "n", 1)
    assert "<rect" not in bars(["a"], {"n": [value]}, "n")


def test_names_are_escaped_everywhere() -> None:
    name = "</svg><script>alert(1)</script>\x00"
    time = TimelineEvent(NOON, name, name, name)
    figures = (
        bars([name], {name: [1.0]}, name),
        lines({name: [(0, 1.0)]}, name, 1, (name, 1.0)),
        heat_map({(name, name): 1.0}, name, name),
        timeline([time]),
        areas({name: [(0, 1.0)]}, 1, str, [(0, name)]),
        gauges([(name, 1.0, name)]),
        period_line((0, 1), (0, 1), "", name),
        svg.legend([name], "mark"),
    )
    for figure in figures:
        assert "<script" not in figure
        assert "\x00" not in figure
