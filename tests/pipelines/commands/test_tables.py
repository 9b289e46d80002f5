"""tables, show, sql and ddl over real Delta tables, with hostile text in them."""

import base64
import csv
import io
import json
import os
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.terminal import grid
from quotaflow.pipelines.warehouse import spark_reader, views
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.telemetry import CLIENT_METRICS

from ...delta_tables import NOON, Fill, violation
from ...rows import at, limited
from ...schemas.views.view_tables import make_tables, make_tables_and_answers

HOSTILE = "[bold]a[/bold]\x1b[31m\x9b2J\r\n\u202eb"


def run(capsys: pytest.CaptureFixture[str], warehouse: Warehouse, *words: str) -> str:
    """stdout of a command that succeeds."""
    assert execute([*words, "--set", f"warehouse.path={warehouse.conf.folder}"]) == 0
    return capsys.readouterr().out


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line, parse_constant=pytest.fail) for line in text.splitlines()]


def test_tables_lists_all_with_what_they_hold(
    capsys: pytest.CaptureFixture[str], warehouse: Warehouse, fill: Fill
) -> None:
    fill("quarantine", [{"event_time": NOON}, {"event_time": NOON - timedelta(1)}])
    rows = {row["name"]: row for row in objects(run(capsys, warehouse, "tables", "--json"))}
    assert rows.keys() == {*TABLES, *views.load()}
    assert rows["quarantine"]["rows"] == 2
    assert rows["quarantine"]["last_event_time"] == "2026-11-21T12:00:00.000000Z"
    assert rows["requests"]["rows"] is None
    assert "quarantine" in run(capsys, warehouse, "tables")


def test_a_terminal_lists_tables_by_area_with_their_meaning(
    capsys: pytest.CaptureFixture[str],
    warehouse: Warehouse,
    fill: Fill,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grid, "screen_width", lambda: 100)
    fill("quarantine", [{"event_time": NOON}] * 12_345)
    lines = run(capsys, warehouse, "tables").splitlines()
    (header,) = (line for line in lines if line.startswith("The pipeline: "))
    listed = lines[lines.index(header) + 1 :]
    assert listed[0].split()[:4] == ["quarantine", "12,345", "2026-11-21", "12:00"]
    assert max(map(len, lines)) <= 100
    assert {line.split()[0] for line in lines if re.match("  [a-z]", line)} == {
        *TABLES,
        *views.load(),
    }


def test_rows_of_a_view_with_a_time_are_the_newest_first_and_can_be_limited_by_it(
    capsys: pytest.CaptureFixture[str], warehouse: Warehouse
) -> None:
    set_at = [limited(second, "producer_byte_rate", str(second)) for second in (60, 180, 120)]
    make_tables(warehouse, {"config_alterations": set_at})
    show = ("show", "config_value_changes", "--json")
    rows = objects(run(capsys, warehouse, *show))
    assert [row["value_after"] for row in rows] == ["180", "120", "60"]
    rows = objects(run(capsys, warehouse, *show, "--since", at(100).isoformat()))
    assert [row["value_after"] for row in rows] == ["180", "120"]


def test_no_rows_come_with_the_reason_of_the_head(
    capsys: pytest.CaptureFixture[str], warehouse: Warehouse
) -> None:
    make_tables_and_answers(warehouse, {})
    show = ["show", "why_groups_lag", "--set", f"warehouse.path={warehouse.conf.folder}"]
    reason = "why_groups_lag is empty while no group is more than a minute behind"
    assert execute([*show, "--json"]) == 0
    assert capsys.readouterr() == ("", f"{reason}\n")
    assert execute([*show, "--where", "lag > 5"]) == 0
    assert reason not in capsys.readouterr().err


def test_a_word_finds_tables_and_columns_by_name_and_meaning(
    capsys: pytest.CaptureFixture[str], warehouse: Warehouse
) -> None:
    rows = objects(run(capsys, warehouse, "tables", "THROTTLE", "time", "--json"))
    hits = {(row["name"], row["column"]) for row in rows}
    assert {("requests", "throttle_time_ms"), ("throttled_clients", "throttle_time_ms")} <= hits
    text = run(capsys, warehouse, "tables", "throttle", "time")
    assert "\n    throttle_time_ms  throttle time in the answer\n" in text


def test_a_word_that_nothing_has_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["tables", "quota_usge"]) == 1
    assert "did you mean quota_usage?" in capsys.readouterr().err


def test_a_table_and_a_view_are_described(
    capsys: pytest.CaptureFixture[str], warehouse: Warehouse, fill: Fill
) -> None:
    rows = objects(run(capsys, warehouse, "describe", "requests", "--json"))
    assert rows[0] == {
        "column": "cluster_id",
        "type": "STRING",
        "meaning": TABLES["requests"].columns[0].comment,
    }
    assert [row["column"] for row in rows] == TABLES["requests"].column_names
    assert "filled by   quotaflow run ingest_request_log" in run(
        capsys, warehouse, "describe", "requests"
    )
    unmade = objects(run(capsys, warehouse, "describe", "topic_ids", "--json"))
    assert {row["type"] for row in unmade} == {None}
    fill("topics", [{"topic": "a"}])
    fill("topic_names", [{"topic": "a"}])
    made = objects(run(capsys, warehouse, "describe", "topic_ids", "--json"))
    assert {row["type"] for row in made if row["column"] == "topic"} == {"STRING"}
    assert "reads " in run(capsys, warehouse, "describe", "topic_ids")


def test_show_prints_valid_json_whatever_a_client_sent(
    capsys: pytest.CaptureFixture[str], warehouse: Warehouse, fill: Fill
) -> None:
    point = {
        "event_time": NOON,
        "metric": HOSTILE,
        "value": float("nan"),
        "quantiles": [{"quantile": 0.5, "value": float("-inf")}],
        "exemplars": [{"time": NOON, "filtered_attributes": [("k", "v")]}],
        "attributes": [("topic", "x"), ("odd", None)],
    }
    fill("client_metrics", [point])
    text = run(capsys, warehouse, "show", "client_metrics", "--json")
    assert text.isascii()
    assert text.count("\n") == 1
    (row,) = objects(text)
    assert list(row) == CLIENT_METRICS.column_names
    assert row["event_time"] == "2026-11-21T12:00:00.000000Z"
    assert row["metric"] == HOSTILE
    assert row["value"] == "NaN"
    assert row["quantiles"] == [{"quantile": 0.5, "value": "-Infinity"}]
    assert row["attributes"] == {"topic": "x", "odd": None}
    assert row["exemplars"][0]["time"] == "2026-11-21T12:00:00.000000Z"
    assert row["exemplars"][0]["filtered_attributes"] == {"k": "v"}


def test_bytes_are_base64(
    capsys: pytest.CaptureFixture[str], warehouse: Warehouse, fill: Fill
) -> None:
    fill("quarantine", [{"head": b"\x00\xff"}])
    (row,) = objects(run(capsys, warehouse, "show", "quarantine", "--json"))
    assert base64.b64decode(row["head"]) == b"\x00\xff"


def test_a_terminal_shows_hostile_text_harmlessly(
    capsys: pytest.CaptureFixture[str],
    warehouse: Warehouse,
    fill: Fill,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grid, "screen_width", lambda: 120)
    fill(
        "requests",
        [
            {"event_time": NOON, "client_id": HOSTILE, "principal": f"User:{i}" + "x" * 9999}
            for i in range(2)
        ],
    )
    text = run(capsys, warehouse, "show", "requests")
    assert all(line.isprintable() for line in text.splitlines())
    assert r"[bold]a[/bold]\x1b[31m\x9b2J\r\n\u202eb" in text
    assert "x…" in text
    assert max(map(len, text.splitlines())) <= 120


def test_csv_is_one_line_a_row_and_runs_nothing_in_a_spreadsheet(
    capsys: pytest.CaptureFixture[str], warehouse: Warehouse, fill: Fill
) -> None:
    names = ["=1+1", "+x", "-x", "@x", "\tx", 'a,"b"', HOSTILE]
    fill("requests", [{"client_id": name, "total_time_ms": -1.5} for name in names])
    text = run(capsys, warehouse, "show", "requests", "--csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(text.splitlines()) == len(names) + 1
    shown = {row["client_id"] for row in rows}
    visible = HOSTILE.replace("\x1b", r"\x1b").replace("\x9b", r"\x9b").replace("\r\n", r"\r\n")
    assert shown == {
        "'=1+1",
        "'+x",
        "'-x",
        "'@x",
        r"\tx",
        'a,"b"',
        visible.replace("\u202e", r"\u202e"),
    }
    assert {row["total_time_ms"] for row in rows} == {"-1.5"}


def test_show_takes_the_newest_and_filters(
    capsys: pytest.CaptureFixture[str], warehouse: Warehouse, fill: Fill
) -> None:
    now = datetime.now(UTC)
    rows = [{"event_time": now - timedelta(minutes=m), "broker_id": m} for m in (30, 1, 5, 90)]
    fill("requests", [*rows, {"event_time": None, "broker_id": 0}])

    def brokers(*words: str) -> list[int]:
        text = run(capsys, warehouse, "show", "requests", "--json", *words)
        return [row["broker_id"] for row in objects(text)]

    assert brokers() == [1, 5, 30, 90, 0]
    assert brokers("--limit", "2") == [1, 5]
    assert brokers("--since", "10m") == [1, 5]
    assert brokers("--since", (now - timedelta(minutes=31)).isoformat()) == [1, 5, 30]
    assert brokers("--where", "broker_id > 4 -- not few", "--since", "1h") == [5, 30]


def test_without_a_format_twenty_rows_are_enough(
    capsys: pytest.CaptureFixture[str], warehouse: Warehouse, fill: Fill
) -> None:
    fill("requests", [{"broker_id": i} for i in range(50)])
    assert len(run(capsys, warehouse, "show", "requests").splitlines()) == 21
    assert len(run(capsys, warehouse, "show", "requests", "--csv").splitlines()) == 51


def test_times_no_calendar_has_are_shown_as_numbers(
    capsys: pytest.CaptureFixture[str], warehouse: Warehouse
) -> None:
    far = "SELECT make_timestamp(9000000000000000000) AS t"
    (row,) = objects(run(capsys, warehouse, "sql", far, "--json"))
    assert row == {"t": "9000000000000000000 us since 1970"}


def test_a_query_may_come_from_stdin(
    capsys: pytest.CaptureFixture[str], warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT 1 AS n;\n-- the end\n"))
    assert objects(run(capsys, warehouse, "sql", "-", "--json")) == [{"n": 1}]


def test_a_query_may_come_from_a_file(
    capsys: pytest.CaptureFixture[str],
    warehouse: Warehouse,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "q.sql"
    file.write_text("SELECT 2 AS n;\n", encoding="utf-8")
    assert objects(run(capsys, warehouse, "sql", "-f", str(file), "--json")) == [{"n": 2}]
    monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT 3 AS n"))
    assert objects(run(capsys, warehouse, "sql", "--json")) == [{"n": 3}]
    assert execute(["sql", "SELECT 1", "-f", str(file)]) == 2
    assert execute(["sql", "-f", str(tmp_path / "nowhere.sql")]) == 2
    assert "cannot read" in capsys.readouterr().err


def test_sql_keeps_the_order_and_names_of_its_columns(
    capsys: pytest.CaptureFixture[str], warehouse: Warehouse, fill: Fill
) -> None:
    fill("requests", [{"api": "FETCH"}, {"api": "FETCH"}, {"api": "PRODUCE"}])
    query = "SELECT count(*) AS n, api FROM requests GROUP BY api ORDER BY n"
    assert run(capsys, warehouse, "sql", query, "--csv").splitlines() == [
        "n,api",
        "1,PRODUCE",
        "2,FETCH",
    ]


def test_two_columns_of_one_name_are_refused(
    capsys: pytest.CaptureFixture[str], warehouse: Warehouse, fill: Fill
) -> None:
    fill("requests", [{"api": "FETCH"}])
    query = "SELECT a.api, b.api FROM requests a, requests b"
    assert execute(["sql", query, "--set", f"warehouse.path={warehouse.conf.folder}"]) == 2
    assert "two columns are named api" in capsys.readouterr().err


@pytest.mark.parametrize("form", [(), ("--csv",)], ids=["table", "csv"])
def test_output_is_utf_8_whatever_the_locale(tmp_path: Path, form: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "quotaflow.pipelines", "sql", "SELECT chr(233) AS name"]
    place = ["--set", f"warehouse.path={tmp_path}"]
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    process = subprocess.run(
        [*command, *place, *form], env=os.environ | ascii_only, capture_output=True, check=False
    )
    assert (process.returncode, process.stderr) == (0, b"")
    assert process.stdout.decode("utf-8").split() == ["name", "\u00e9"]


def test_nobody_reading_on_is_quiet(warehouse: Warehouse, fill: Fill) -> None:
    fill("requests", [{"body": "x" * 10_000}] * 2_000)
    path = shlex.quote(f"warehouse.path={warehouse.conf.folder}")
    place = f"--set {path}"
    line = f"{shlex.quote(sys.executable)} -m quotaflow.pipelines show requests --json {place}"
    piped = ["bash", "-c", f"set -o pipefail; {line} | head -c 10 >/dev/null"]
    process = subprocess.run(piped, capture_output=True, text=True, timeout=120, check=False)
    assert (process.returncode, process.stderr) == (0, "")


@pytest.mark.parametrize("name", [*TABLES, "desired_configs"])
def test_ddl_prints_each_of_them(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert execute(["ddl", name]) == 0
    assert f" {name} " in capsys.readouterr().out.splitlines()[0] + " "


@pytest.mark.spark
@pytest.mark.faults
def test_views_answer_alike_in_spark(
    capsys: pytest.CaptureFixture[str], warehouse: Warehouse, spark: object
) -> None:
    rates = [violation("User:o'b\\", NOON), violation("User:b", NOON, quota_per_s=10_000.125)]
    make_tables(
        warehouse,
        {
            "producer_id_rates": rates,
            "topics": [{"event_time": NOON, "topic": name, "topic_id": name} for name in "ab"],
        },
    )
    query = "SELECT * FROM topic_ids ORDER BY topic"
    without = run(capsys, warehouse, "sql", query, "--json")
    assert spark is not None
    assert run(capsys, warehouse, "sql", query, "--spark", "--json") == without
    assert (
        execute(
            [
                "sql",
                "SELECT nope FROM producer_id_rates",
                "--spark",
                "--set",
                f"warehouse.path={warehouse.conf.folder}",
            ]
        )
        == 2
    )
    assert "UNRESOLVED_COLUMN" in capsys.readouterr().err
    assert spark_reader.__doc__
