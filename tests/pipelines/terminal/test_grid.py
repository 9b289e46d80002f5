"""Tables as a terminal of some width shows them, and as a pipe gets them."""

from typing import Any

import pytest

from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.terminal import grid, layout, output, readable
from quotaflow.pipelines.terminal.layout import Layout
from quotaflow.pipelines.warehouse import views
from quotaflow.schemas.tables.catalog import TABLES

from ...cases import cases

ROWS = [
    {"cluster_id": "c1", "client": "a", "sent_bytes": 14_492_421, "broker_id": 10_001},
    {"cluster_id": "c1", "client": "b", "sent_bytes": 7, "broker_id": 10_002},
]
NAMES = list(ROWS[0])


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the width of the terminal."""

    def set_width(width: int | None) -> None:
        monkeypatch.setattr(grid, "screen_width", lambda: width)

    return set_width


@cases(
    ("name", "value", "expected"),
    ("digits in groups", "sent_bytes", 14_492_421, "14,492,421"),
    ("a number that is short enough", "requests", 999, "999"),
    ("a number that is a name", "broker_id", 10_001, "10001"),
    ("a code", "error_code", 10_001, "10001"),
    ("a count of ids", "producer_ids", 10_001, "10,001"),
    ("a large decimal", "rate", 14_492_421.25, "14,492,421"),
    ("thousands", "rate", 2_500.4, "2,500"),
    ("hundreds", "rate", 650.34, "650.3"),
    ("no decimals", "rate", 100.0, "100"),
    ("small", "rate", 0.009, "0.009"),
    ("below zero", "rate", -67.70331, "-67.7"),
    ("no number", "rate", "NaN", "NaN"),
    ("a truth", "is_over", True, "true"),
    ("a second", "t", "2026-11-21T12:00:00.000000Z", "2026-11-21 12:00:00Z"),
    ("ms", "t", "2026-11-21T12:00:00.500000Z", "2026-11-21 12:00:00.500Z"),
    ("us", "t", "2026-11-21T12:00:00.500001Z", "2026-11-21 12:00:00.500001Z"),
    ("text", "t", "about 2026-11-21T12:00:00.5Z", "about 2026-11-21T12:00:00.5Z"),
    ("control characters", "t", "\x1b[2J", r"\x1b[2J"),
    ("nested", "partitions", [{"n": 1_000_000}], '[{"n": 1000000}]'),
)
def test_a_cell_is_what_people_read(name: str, value: Any, expected: str) -> None:
    assert readable.cell(name, value) == expected


def test_a_column_with_one_value_stands_above(terminal: Any) -> None:
    terminal(80)
    assert grid.draw(ROWS, NAMES, Layout()).lines == [
        "In every row: cluster_id c1",
        "client  sent_bytes  broker_id",
        "a       14,492,421      10001",
        "b                7      10002",
    ]


@pytest.mark.parametrize(
    ("width", "expected"),
    [(80, NAMES), (30, ["client", "sent_bytes", "broker_id"]), (20, ["client", "sent_bytes"])],
)
def test_columns_that_a_query_names_stay_while_they_fit(
    terminal: Any, width: int, expected: list[str]
) -> None:
    terminal(width)
    drawing = grid.draw(ROWS, NAMES, Layout(), by_importance=False)
    header = next(line for line in drawing.lines if line.lstrip().startswith(expected[0]))
    assert header.split() == expected
    assert max(map(len, drawing.lines)) <= width + len("In every row: ")


def test_measures_come_before_names_that_mean_nothing(terminal: Any) -> None:
    terminal(40)
    rows = [
        {"client_instance_id": "8oob3WjUQt-nm9oi62UoyQ", "principal": name, "latency_ms": 1.5 * n}
        for n, name in enumerate("ab")
    ]
    drawing = grid.draw(rows, list(rows[0]), Layout())
    assert drawing.left_out == []
    rows[1]["client_instance_id"] = "another"
    assert grid.draw(rows, list(rows[0]), Layout()).left_out == ["client_instance_id"]


@pytest.mark.parametrize(
    ("view", "answer"),
    [
        ("config_value_changes", {"changed_at", "config_key", "value_before", "value_after"}),
        ("client_racks", {"client_id", "verdict", "read_rack", "cross_rack_bytes"}),
        ("metric_alerts", {"rule", "is_open", "metric", "client_id"}),
        ("client_latency", {"latency_max_ms", "broker_total_max_ms", "slowest_outside_ms"}),
        ("client_versions", {"client_software_name", "client_software_version"}),
    ],
)
def test_the_columns_that_answer_are_on_a_terminal(
    terminal: Any, view: str, answer: set[str]
) -> None:
    terminal(140)
    described = views.load().get(view) or TABLES[view]
    names = [column.name for column in described.columns]
    rows = [{name: f"{name}-{row}"[-20:] for name in names} for row in range(2)]
    assert answer <= {*names} - {*grid.draw(rows, names, Layout()).left_out}


def test_a_pipe_gets_every_column_and_whole_cells(terminal: Any) -> None:
    terminal(None)
    rows = [row | {"text": "x" * 500, "empty": None} for row in ROWS]
    header, first, _ = grid.draw(rows, [*NAMES, "text", "empty"], Layout()).lines
    assert header.split() == [*NAMES, "text", "empty"]
    assert first.split() == ["c1", "a", "14492421", "10001", "x" * 500]


def test_wide_and_vertical_show_all_on_a_terminal(terminal: Any) -> None:
    terminal(20)
    wide = grid.draw(ROWS, NAMES, Layout(is_wide=True))
    assert wide.lines[0].split() == NAMES
    assert wide.left_out == []
    assert grid.draw(ROWS, NAMES, Layout(is_vertical=True)).lines == [
        "cluster_id  c1",
        "client      a",
        "sent_bytes  14,492,421",
        "broker_id   10001",
        "",
        "cluster_id  c1",
        "client      b",
        "sent_bytes  7",
        "broker_id   10002",
    ]


def test_a_block_says_how_much_of_a_long_cell_it_leaves_out(terminal: Any) -> None:
    row = {"head": "x" * 4_096, "reason": "no_json"}
    terminal(20)
    long, reason = grid.draw([row], ["head", "reason"], Layout(is_vertical=True)).lines
    assert long == f"head    {'x' * 1_000} … and 3,096 more: --json has all"
    assert reason == "reason  no_json"
    assert grid.draw([row], ["head", "reason"], Layout()).lines[0] == long
    terminal(None)
    assert grid.draw([row], ["head"], Layout(is_vertical=True)).lines == [f"head  {'x' * 4_096}"]


def test_one_row_that_is_too_wide_is_a_block(terminal: Any) -> None:
    terminal(20)
    drawing = grid.draw(ROWS[:1], NAMES, Layout())
    assert drawing.lines[2] == "sent_bytes  14,492,421"
    assert drawing.left_out == []


def test_columns_are_chosen_in_every_form(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ("broker_id", "client")
    output.write(ROWS, NAMES, Layout(columns=chosen))
    assert capsys.readouterr().out.splitlines()[0].split() == list(chosen)
    output.write(ROWS, NAMES, Layout(columns=chosen, as_csv=True))
    assert capsys.readouterr().out.splitlines()[1] == "10001,a"
    output.write(ROWS, NAMES, Layout(columns=chosen, as_json=True))
    assert capsys.readouterr().out.splitlines()[0] == '{"broker_id":10001,"client":"a"}'


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match=r"no column brokr_id \(did you mean broker_id"):
        output.write(ROWS, NAMES, Layout(columns=("brokr_id",)))


def test_forms_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="--csv and --vertical exclude each other"):
        layout.from_options(
            as_json=False, as_csv=True, columns=None, is_wide=False, is_vertical=True
        )


def test_lines_for_people_have_digits_in_groups_on_no_terminal_too(terminal: Any) -> None:
    terminal(None)
    assert list(grid.lines(ROWS, NAMES))[1].split() == ["c1", "a", "14,492,421", "10001"]
    assert grid.draw(ROWS, NAMES, Layout()).lines[1].split()[2] == "14492421"
