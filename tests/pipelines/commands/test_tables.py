"""tables, show, sql and ddl over real Delta tables, with hostile text in them."""

import base64
import io
import os
import re
import subprocess
import sys
import tomllib
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quotaflow.pipelines import reference
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.reference import search
from quotaflow.pipelines.terminal import grid
from quotaflow.pipelines.warehouse import browsing, spark_reader, views
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.areas import AREAS
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import EVENTS, TABLES
from quotaflow.schemas.tables.declared import CLIENT_METRICS
from quotaflow.schemas.view import View

from ...cases import cases
from ...command_line import Command, read_in_part
from ...conftest import GOLDEN
from ...delta_tables import NOON, Fill, violation
from ...documented_commands import ROOT
from ...rows import FAR_AHEAD, at, counted, limited, quota, times
from ...schemas.views.view_tables import make_tables, make_tables_and_answers

QUESTIONS = tomllib.loads((GOLDEN / "questions.toml").read_text("utf-8"))
SEARCHES = tomllib.loads((GOLDEN / "searches.toml").read_text("utf-8"))
AGE = "How old is the data (its age, freshness)? `quotaflow status`\n"
FEW = ("show", "requests", "--where", "broker_id < 30")
HOSTILE = "[bold]a[/bold]\x1b[31m\x9b2J\r\n\u202eb"


def test_tables_of_all_kinds_are_listed_with_what_they_hold(
    table_command: Command, fill: Fill
) -> None:
    fill("quarantine", [{"event_time": NOON}, {"event_time": NOON - timedelta(1)}])
    rows = {row["name"]: row for row in table_command("tables", "--all", "--json").rows}
    assert rows.keys() == {*TABLES, *views.load()}
    assert rows["quarantine"]["rows"] == 2
    assert rows["quarantine"]["last_event_time"] == "2026-11-21T12:00:00.000000Z"
    assert rows["requests"]["rows"] is None
    assert "quarantine" in table_command("tables").out


def test_a_terminal_lists_tables_by_area_with_their_meaning(
    table_command: Command, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grid, "screen_width", lambda: 100)
    fill("quarantine", [{"event_time": NOON}] * 12_345)
    lines = table_command("tables", "--all").out.splitlines()
    (header,) = (line for line in lines if line.startswith("The pipeline: "))
    listed = lines[lines.index(header) + 1 :]
    assert listed[0].split()[:4] == ["quarantine", "12,345", "2026-11-21", "12:00"]
    assert max(map(len, lines)) <= 100
    assert {line.split()[0] for line in lines if re.match("  [a-z]", line)} == {
        *TABLES,
        *views.load(),
    }


def test_tables_that_answer_questions_are_listed_and_others_only_with_all(
    table_command: Command,
) -> None:
    rows = table_command("tables", "--json").rows
    described: dict[str, Table | View] = {**TABLES, **views.load()}
    answering = {name for name, each in described.items() if each.question}
    assert {row["name"] for row in rows} == answering
    assert all(row["question"].endswith("?") for row in rows)
    assert {row["area"] for row in rows} == {area.title for area in AREAS}
    labels = [row["question"].partition(". ")[0] for row in rows]
    assert len(set(labels)) == len(labels)


def test_rows_of_a_view_with_a_time_are_the_newest_first_and_can_be_limited_by_it(
    table_command: Command, warehouse: Warehouse
) -> None:
    set_at = [limited(second, "producer_byte_rate", str(second)) for second in (60, 180, 120)]
    make_tables(warehouse, {"config_alterations": set_at})
    show = ("show", "config_value_changes", "--json")
    rows = table_command(*show).rows
    assert [row["value_after"] for row in rows] == ["180", "120", "60"]
    rows = table_command(*show, "--since", at(100).isoformat()).rows
    assert [row["value_after"] for row in rows] == ["180", "120"]


def test_rows_that_a_head_puts_first_come_first(
    table_command: Command, warehouse: Warehouse
) -> None:
    """The newest hour comes first, and in it the longest waits; names do not decide the order."""
    waited = [
        times(second, "PRODUCE", each={"local": ms}, client_id=client)
        for second, client, ms in ((0, "d", 900.0), (3_600, "a", 5.0), (3_600, "b", 80.0))
    ]
    unknown = times(3_600, "PRODUCE", each={}, client_id="c") | {"timed_requests": 0}
    make_tables(warehouse, {"request_times": [*waited, unknown]})
    rows = table_command("show", "latency_by_hour", "--json").rows
    assert [row["client_id"] for row in rows] == ["b", "a", "c", "d"]


def test_the_state_of_a_cluster_comes_with_the_time_of_its_snapshot(
    table_command: Command, warehouse: Warehouse
) -> None:
    taken = [
        counted(second, 0, "in", 1, job="snapshot", target=target)
        for second, target in ((0, "topics"), (60, "topics"), (90, "brokers"))
    ]
    topics = [{"event_time": at(0), "topic": "a", "topic_id": "a", "is_removed": False}]
    make_tables(warehouse, {"pipeline_progress": taken, "topics": topics})
    noted = f"as of the snapshot at {at(60):%Y-%m-%d %H:%M:%S} UTC\n"
    assert table_command("show", "current_topics").err == noted
    assert table_command("show", "current_topics", "--json").err == ""


@cases(
    ("seconds", "newest_s", "behind"),
    ("tables of about one time", {"request_times": 0, "fetch_sizes": 59}, 59, []),
    (
        "two tables that are behind",
        {"telemetry_pushes": 0, "fetch_sizes": 120, "request_times": 240},
        240,
        ["telemetry_pushes", "fetch_sizes"],
    ),
    ("no change for weeks", {"config_alterations": -2e6, "request_times": 0}, 0, []),
    (
        "a change after the requests",
        {"config_alterations": 120, "request_times": 0},
        120,
        ["request_times"],
    ),
)
def test_a_view_comes_with_the_time_of_the_newest_data_behind_it(
    table_command: Command,
    warehouse: Warehouse,
    seconds: dict[str, float],
    newest_s: float,
    behind: list[str],
) -> None:
    made = {name: [_dated(at(second))] for name, second in seconds.items()}
    make_tables(warehouse, made)
    noted = table_command("show", "clients_without_telemetry").err.splitlines()[-1]
    also = [f"of {name}: {at(seconds[name]):%Y-%m-%d %H:%M:%S} UTC" for name in behind]
    newest = f"{at(newest_s):%Y-%m-%d %H:%M:%S} UTC"
    assert noted == "; ".join([f"newest data: {newest}", *also])
    assert "newest" not in table_command("show", "clients_without_telemetry", "--json").err
    # A view of the snapshots alone has no rows of any time.
    assert "newest data" not in table_command("show", "topic_retentions").err


def _dated(time: datetime) -> dict[str, Any]:
    return {"event_time": time, "event_date": time.date()}


def test_a_clock_that_is_ahead_makes_no_data_newer_than_now(
    table_command: Command, warehouse: Warehouse
) -> None:
    content = {"client_metrics": [_dated(FAR_AHEAD)], "request_times": [_dated(at(0))]}
    make_tables(warehouse, content)
    noted = table_command("show", "client_latency").err.splitlines()[-1]
    assert f"; of request_times: {at(0):%Y-%m-%d %H:%M:%S} UTC" in noted
    assert str(FAR_AHEAD.year) not in noted


def test_tables_that_come_steadily_are_facts_and_results() -> None:
    assert browsing._STEADY <= EVENTS


def test_a_view_of_events_and_snapshots_comes_with_both_times(
    table_command: Command, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = [
        counted(60 + n, 0, "in", 1, job="snapshot", target=target)
        for n, target in enumerate(("group_offsets", "active_producers", "settings"))
    ]
    uses = {"producer_id_uses": [_dated(at(0))], "traffic": [_dated(at(0))]}
    make_tables_and_answers(warehouse, {"pipeline_progress": taken} | uses)
    newest, snapshot = f"newest data: {at(0):%Y-%m-%d %H:%M:%S} UTC", "as of the snapshot at "
    noted = table_command("show", "producer_id_heap").err.splitlines()
    assert noted[-2:] == [newest, f"{snapshot}{at(61):%Y-%m-%d %H:%M:%S} UTC"]
    # No request log.
    noted = table_command("show", "lag_by_hour").err.splitlines()
    assert noted[-1] == f"{snapshot}{at(60):%Y-%m-%d %H:%M:%S} UTC"
    # What reads settings alone shows no state of a cluster.
    assert table_command("show", "traffic_by_hour").err.splitlines()[-1] == newest
    # An answer reads neither.
    monkeypatch.delattr(browsing, "last_snapshot")
    assert snapshot not in table_command("show", "diagnoses").err


def test_the_state_of_configs_comes_with_what_changed_since(
    table_command: Command, warehouse: Warehouse
) -> None:
    taken = [counted(60, 0, "in", 1, job="snapshot", target="client_quotas")]
    quotas = [quota(0, "producer_byte_rate", 1e6, user="alice")]
    since = [limited(second, "producer_byte_rate", str(second)) for second in (30, 90, 120)]
    content = {"pipeline_progress": taken, "client_quotas": quotas}
    make_tables(warehouse, content | {"config_alterations": since})
    noted = table_command("show", "current_client_quotas").err
    command = f"quotaflow show config_value_changes --since {at(60):%Y-%m-%dT%H:%M:%SZ}"
    assert f"2 changes of configs and quotas came since: `{command}`\n" in noted
    make_tables(warehouse, {"config_alterations": since[:1]})
    assert "came since" not in table_command("show", "current_client_quotas").err


def test_no_rows_come_with_the_reason_of_the_head(
    table_command: Command, warehouse: Warehouse
) -> None:
    make_tables_and_answers(warehouse, {})
    show = ("show", "why_groups_lag")
    reason = "why_groups_lag is empty while no group is more than a minute behind"
    assert table_command(*show, "--json") == ("", f"{reason}\n")
    assert reason not in table_command(*show, "--where", "lag > 5").err


def test_a_word_finds_tables_and_columns_by_name_and_meaning(table_command: Command) -> None:
    rows = table_command("tables", "THROTTLE", "time", "--json").rows
    hits = {(row["name"], row["column"]) for row in rows}
    assert {("requests", "throttle_time_ms"), ("throttled_clients", "throttle_time_ms")} <= hits
    text = table_command("tables", "throttle", "time").out
    assert "\n    throttle_time_ms  throttle time in the answer\n" in text


@cases(
    ("words", "first"),
    ("a word of a name", "headroom", "quota_headroom"),
    ("in another form", "lags", "group_lag"),
    ("a verb", "rebalancing", "rebalances"),
    ("the beginning of a word alone", "hot", "partition_write_rates"),
    ("a synonym", "retries", "client_metrics"),
    ("a synonym before a meaning", "commits", "group_commits"),
    ("and what has it as a column too", "latency", "client_latency"),
    ("what no table names", "upgrades", "client_versions"),
    ("two words", "disk money", "storage_by_hour"),
)
def test_the_best_match_is_first(command: Command, words: str, first: str) -> None:
    assert command("tables", *words.split(), "--json").rows[0]["name"] == first


@pytest.mark.parametrize(("words", "answer"), QUESTIONS.values(), ids=QUESTIONS)
def test_a_reader_finds_the_table_that_answers(words: str, answer: str) -> None:
    assert answer in names_of(words)[:3]


@pytest.mark.parametrize(("words", "answers"), SEARCHES["searches"].items())
def test_one_of_the_first_two_tables_answers(words: str, answers: list[str]) -> None:
    assert {*names_of(words)[:2]} & {*answers}


def test_most_searches_that_nothing_was_written_for_find_a_table() -> None:
    missed = [
        words
        for words, answers in SEARCHES["paraphrases"].items()
        if not {*names_of(words)[:2]} & {*answers}
    ]
    assert len(missed) <= 2, missed


def test_prose_that_has_all_words_does_not_hide_a_title_that_has_all_but_one() -> None:
    """Columns of other tables have alice as an example, and throttle_leftovers has none."""
    assert names_of("throttle left alice")[0] == "throttle_leftovers"
    assert "throttle_leftovers" not in names_of("alice")
    assert "group_membership" in names_of("throttle left alice")


def test_words_of_questions_that_say_nothing_are_not_searched() -> None:
    assert names_of("which alerts are firing now?") == names_of("alerts firing")
    notes: list[str] = []
    search.search(["how does it xyzzy the throttled clients?"], notes.append)
    assert notes[0].startswith("no table, view or column has 'xyzzy' and 'throttled' and 'clients'")


@cases(
    ("words", "other"),
    ("a plural", "errors", "error"),
    ("of more endings", "connections", "connect"),
    ("how much", "slowest", "slow"),
    ("a verb with a double letter", "lagging", "lags"),
)
def test_forms_of_a_word_find_the_same(words: str, other: str) -> None:
    assert names_of(words)[:3] == names_of(other)[:3]


def names_of(words: str) -> list[str]:
    """Names of tables and views that a search finds, the best first."""
    return [*dict.fromkeys(hit.name for hit in search.search([words]))]


@cases(
    ("words", "ends"),
    (
        "a query of a page",
        "aborted transactions",
        "docs/questions.md has a query: Who aborts transactions?\n",
    ),
    (
        "a query that compares",
        "brokers differ config",
        "docs/questions.md has a query: Which brokers have configs that differ from the rest?\n",
    ),
    (
        "a query of what is missing",
        "users without a quota",
        "docs/questions.md has a query: Which users (principals) have no quota of their own?\n",
    ),
    ("a command", "how old data", AGE),
    (
        "a command, in another noun",
        "freshness",
        AGE,
    ),
    (
        "a command, in a noun",
        "data age",
        AGE,
    ),
    ("a table answers", "unused quotas", ""),
)
def test_a_search_ends_with_the_query_or_command_of_its_question(
    table_command: Command, words: str, ends: str
) -> None:
    assert table_command("tables", *words.split()).err.endswith(ends)
    assert (table_command("tables", *words.split()).err == "") == (ends == "")


def test_questions_are_those_of_the_page() -> None:
    page = (ROOT / "docs" / "questions.md").read_text("utf-8")
    rows = re.findall(r"^\| ([A-Z].+?) \| (.+?) \| .*\|$", page, re.MULTILINE)
    text = (files(reference) / "questions.toml").read_text("utf-8")
    assert tomllib.loads(text) == dict(rows)


def test_each_synonym_names_tables() -> None:
    text = (files(reference) / "synonyms.toml").read_text("utf-8")
    for word, names in tomllib.loads(text)["tables"].items():
        for name in names:
            assert browsing.checked_name(name) == name, word


def test_a_search_on_a_terminal_is_short(table_command: Command) -> None:
    lines = table_command("tables", "time").out.splitlines()
    assert sum(not line.startswith(" ") for line in lines) <= 16
    assert lines[-1].startswith("and ")
    assert lines[-1].endswith("tables more: --json has all")


def test_a_wrong_name_comes_with_what_is_about_it(table_command: Command) -> None:
    for wrong in ("client", "clients"):
        error = table_command.error("show", wrong)
        assert f"no table {wrong} (about {wrong}: client_coverage, client_diagnoses, " in error
        assert f"`quotaflow tables {wrong}`" in error
    assert "did you mean requests?" in table_command.error("show", "request")
    assert "did you mean quota_usage?" in table_command.error("describe", "quota_usge")
    assert "zzz" in table_command.error("show", "zzz")


def test_a_word_that_nothing_has_is_an_error(command: Command) -> None:
    assert "did you mean quota_usage?" in command.error("tables", "quota_usge", code=1)
    assert "`quotaflow show TABLE --since 24h`" in command.error("tables", "yesterday", code=1)


@cases(
    ("words", "noted"),
    ("a name", ["dave"], "`quotaflow why dave` asks about a client, group, topic or broker"),
    ("no word of anything", ["zzz", "yyy"], "; `quotaflow --help` lists commands\n"),
    ("the summary of a command", ["html"], "`quotaflow report` may help"),
    ("a hostile name", ["$(zzz)"], "`quotaflow why '$(zzz)'`"),
)
def test_what_no_table_has_may_be_answered_by_a_command(
    command: Command, words: list[str], noted: str
) -> None:
    assert noted in command.error("tables", *words, code=1)


def test_a_command_that_is_not_there_comes_with_the_search(command: Command) -> None:
    error = command.error("docs", "throttle", code=2)
    assert "No such command 'docs'" in error
    assert "quotaflow tables WORD" in error
    assert "quotaflow tables" not in command.error("show", code=2)


def test_where_nothing_has_all_words_what_has_most_is_listed(command: Command) -> None:
    printed = command("tables", "throttled", "clients", "yesterday")
    assert printed.out.startswith("throttled_clients ")
    assert "has 'throttled' and 'clients' and 'yesterday' in" in printed.err
    assert "--since" in printed.err


def test_a_long_sentence_ends(command: Command) -> None:
    """Each choice of twenty words would be tried for minutes."""
    words = [f"zz{number}" for number in range(20)]
    assert command("tables", *words, "throttled", "clients").out.startswith("throttled_clients ")


def test_a_column_of_many_tables_is_described_once(command: Command) -> None:
    text = command("tables", "p99").out
    assert text.count("99th percentile of its usage in the windows with usage at its") == 1
    assert "\n    usage_p99, offence  as above\n" in text


def test_a_table_and_a_view_are_described(table_command: Command, fill: Fill) -> None:
    rows = table_command("describe", "requests", "--json").rows
    assert rows[0] == {
        "column": "cluster_id",
        "type": "STRING",
        "meaning": TABLES["requests"].columns[0].comment,
    }
    assert [row["column"] for row in rows] == TABLES["requests"].column_names
    described = table_command("describe", "requests").out
    assert "filled by   quotaflow run ingest_request_log" in described
    unmade = table_command("describe", "topic_ids", "--json").rows
    assert {row["type"] for row in unmade} == {None}
    fill("topics", [{"topic": "a"}])
    fill("topic_names", [{"topic": "a"}])
    made = table_command("describe", "topic_ids", "--json").rows
    assert {row["type"] for row in made if row["column"] == "topic"} == {"STRING"}
    assert "reads " in table_command("describe", "topic_ids").out


def test_show_prints_valid_json_whatever_a_client_sent(table_command: Command, fill: Fill) -> None:
    point = {
        "event_time": NOON,
        "metric": HOSTILE,
        "value": float("nan"),
        "quantiles": [{"quantile": 0.5, "value": float("-inf")}],
        "exemplars": [{"time": NOON, "filtered_attributes": [("k", "v")]}],
        "attributes": [("topic", "x"), ("odd", None)],
    }
    fill("client_metrics", [point])
    printed = table_command("show", "client_metrics", "--json")
    assert printed.out.isascii()
    assert printed.out.count("\n") == 1
    (row,) = printed.rows
    assert list(row) == CLIENT_METRICS.column_names
    assert row["event_time"] == "2026-11-21T12:00:00.000000Z"
    assert row["metric"] == HOSTILE
    assert row["value"] == "NaN"
    assert row["quantiles"] == [{"quantile": 0.5, "value": "-Infinity"}]
    assert row["attributes"] == {"topic": "x", "odd": None}
    assert row["exemplars"][0]["time"] == "2026-11-21T12:00:00.000000Z"
    assert row["exemplars"][0]["filtered_attributes"] == {"k": "v"}


def test_bytes_are_base64(table_command: Command, fill: Fill) -> None:
    fill("quarantine", [{"head": b"\x00\xff"}])
    (row,) = table_command("show", "quarantine", "--json").rows
    assert base64.b64decode(row["head"]) == b"\x00\xff"


def test_a_terminal_shows_hostile_text_harmlessly(
    table_command: Command, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grid, "screen_width", lambda: 120)
    fill(
        "requests",
        [
            {"event_time": NOON, "client_id": HOSTILE, "principal": f"User:{i}" + "x" * 9999}
            for i in range(2)
        ],
    )
    text = table_command("show", "requests").out
    assert all(line.isprintable() for line in text.splitlines())
    assert r"[bold]a[/bold]\x1b[31m\x9b2J\r\n\u202eb" in text
    assert "x…" in text
    assert max(map(len, text.splitlines())) <= 120


def test_csv_is_one_line_a_row_and_runs_nothing_in_a_spreadsheet(
    table_command: Command, fill: Fill
) -> None:
    names = ["=1+1", "+x", "-x", "@x", "\tx", 'a,"b"', HOSTILE]
    fill("requests", [{"client_id": name, "total_time_ms": -1.5} for name in names])
    printed = table_command("show", "requests", "--csv")
    rows = printed.csv_rows
    assert len(printed.out.splitlines()) == len(names) + 1
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


def test_rows_go_to_a_file_of_parquet_with_their_types(
    table_command: Command, fill: Fill, tmp_path: Path
) -> None:
    fill("requests", [{"event_time": NOON, "api": HOSTILE}, {"event_time": NOON, "api": "FETCH"}])
    of_show, of_sql = tmp_path / "a.parquet", tmp_path / "b.parquet"
    assert "2 rows in" in table_command("show", "requests", "--out", str(of_show)).err
    table_command("sql", "SELECT event_time, api FROM requests", "--out", str(of_sql))
    shown, answered = pq.read_table(of_show), pq.read_table(of_sql)
    assert shown.schema.field("event_time").type == pa.timestamp("us", "UTC")
    assert answered.column_names == ["event_time", "api"]
    assert {HOSTILE, "FETCH"} == {*shown["api"].to_pylist()} == {*answered["api"].to_pylist()}
    assert sorted(tmp_path.glob("*.parquet*")) == [of_show, of_sql]


@cases(
    ("options", "message"),
    ("another file", ["--out", "a.csv"], "name a file FILE.parquet"),
    ("no place", ["--out", "/no/such/a.parquet"], "cannot be written: No such file"),
    ("a file and text", ["--out", "a.parquet", "--json"], "exclude each other"),
    ("a chart and a file", ["--chart", "weight", "--out", "a.parquet"], "exclude each other"),
    ("a chart of no column", ["--chart", "weights"], r"no column weights \(did you mean weight"),
    ("a chart of names", ["--chart", "api"], "api has no numbers"),
)
def test_ways_to_show_that_are_refused(
    table_command: Command, fill: Fill, options: list[str], message: str
) -> None:
    fill("requests", [{"event_time": NOON, "api": "FETCH"}])
    error = table_command.error("show", "requests", *options, code=ConfigError.exit_code)
    assert re.search(message, error)


def test_a_folder_is_no_file_of_parquet(table_command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "a.parquet"
    folder.mkdir()
    error = table_command.error("sql", "SELECT 1", "--out", str(folder), code=ConfigError.exit_code)
    assert "cannot be written: Is a directory" in error
    assert list(tmp_path.glob("*a.parquet*")) == [folder]


def test_a_chart_has_a_bar_per_row(table_command: Command, fill: Fill) -> None:
    sizes = {"a": 100, "b": 25, HOSTILE: 0, "d": None}
    fill("requests", [{"event_time": NOON, "api": k, "max_bytes": n} for k, n in sizes.items()])
    lines = table_command("show", "requests", "--chart", "max_bytes").out.splitlines()
    assert sorted(line.count("█") for line in lines)[:2] == [0, 0]
    quarter, whole = sorted(line.count("█") for line in lines)[2:]
    assert 0 <= whole - 4 * quarter < 4
    assert all(line.isprintable() for line in lines)


def test_show_takes_the_newest_and_filters(table_command: Command, fill: Fill) -> None:
    now = datetime.now(UTC)
    rows = [{"event_time": now - timedelta(minutes=m), "broker_id": m} for m in (30, 1, 5, 90)]
    fill("requests", [*rows, {"event_time": None, "broker_id": 0}])

    def brokers(*words: str) -> list[int]:
        rows = table_command("show", "requests", "--json", *words).rows
        return [row["broker_id"] for row in rows]

    assert brokers() == [1, 5, 30, 90, 0]
    assert brokers("--limit", "2") == [1, 5]
    assert brokers("--since", "10m") == [1, 5]
    assert brokers("--since", (now - timedelta(minutes=31)).isoformat()) == [1, 5, 30]
    assert brokers("--where", "broker_id > 4 -- not few", "--since", "1h") == [5, 30]


@pytest.mark.parametrize("step", [1, -1])
def test_rows_of_one_time_come_in_one_order(table_command: Command, fill: Fill, step: int) -> None:
    rows = [{"source_offset": i, "principal": f"User:p{i}"} for i in range(9)][::step]
    fill("requests", rows)
    shown = table_command("show", "requests", "--csv", "--limit", "3").csv_rows
    assert [row["source_offset"] for row in shown] == ["0", "1", "2"]


def test_columns_that_a_view_shows_can_be_ordered(warehouse: Warehouse) -> None:
    make_tables_and_answers(warehouse, {})
    for name in views.load():
        types = FolderReader(warehouse).query(f"SELECT * FROM {name} LIMIT 0").schema
        maps = {field.name for field in types if "map" in str(field.type)}
        assert not maps - browsing._UNORDERED, name


def test_without_a_format_twenty_rows_are_enough(table_command: Command, fill: Fill) -> None:
    fill("requests", [{"broker_id": i} for i in range(50)])
    printed = table_command("show", "requests")
    assert len(printed.out.splitlines()) == 21
    assert "20 of 50 rows: --limit has more, --json and --csv have all\n" in printed.err
    assert "5 of 30 rows" in table_command(*FEW, "--limit", "5").err
    assert "20 of 30 rows" in table_command(*FEW, "--chart", "broker_id").err
    for words in ((*FEW, "--limit", "30"), (*FEW, "--json", "--limit", "5")):
        assert "rows" not in table_command(*words).err
    assert len(table_command("show", "requests", "--csv").out.splitlines()) == 51


def test_rows_of_a_day_come_by_their_rank(table_command: Command, warehouse: Warehouse) -> None:
    talkers = [{"day": NOON, "talker_rank": n, "client_id": name} for n, name in enumerate("cab")]
    make_tables(warehouse, {"top_talkers": talkers})
    rows = table_command("show", "top_talkers", "--json").rows
    assert [row["client_id"] for row in rows] == ["c", "a", "b"]


def test_times_no_calendar_has_are_shown_as_numbers(table_command: Command) -> None:
    far = "SELECT make_timestamp(9000000000000000000) AS t"
    (row,) = table_command("sql", far, "--json").rows
    assert row == {"t": "9000000000000000000 us since 1970"}


def test_a_query_may_come_from_stdin(
    table_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT 1 AS n;\n-- the end\n"))
    assert table_command("sql", "-", "--json").rows == [{"n": 1}]


def test_a_query_may_come_from_a_file(
    command: Command, table_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "q.sql"
    file.write_text("SELECT 2 AS n;\n", encoding="utf-8")
    assert table_command("sql", "-f", str(file), "--json").rows == [{"n": 2}]
    monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT 3 AS n"))
    assert table_command("sql", "--json").rows == [{"n": 3}]
    command("sql", "SELECT 1", "-f", str(file), code=2)
    assert "cannot read" in command("sql", "-f", str(tmp_path / "nowhere.sql"), code=2).err


def test_sql_keeps_the_order_and_names_of_its_columns(table_command: Command, fill: Fill) -> None:
    fill("requests", [{"api": "FETCH"}, {"api": "FETCH"}, {"api": "PRODUCE"}])
    query = "SELECT count(*) AS n, api FROM requests GROUP BY api ORDER BY n"
    assert table_command("sql", query, "--csv").out.split() == ["n,api", "1,PRODUCE", "2,FETCH"]


def test_two_columns_of_one_name_are_refused(table_command: Command, fill: Fill) -> None:
    fill("requests", [{"api": "FETCH"}])
    query = "SELECT a.api, b.api FROM requests a, requests b"
    assert "two columns are named api" in table_command("sql", query, code=2).err


@pytest.mark.parametrize("form", [(), ("--csv",)], ids=["table", "csv"])
def test_output_is_utf_8_whatever_the_locale(
    command: Command, tmp_path: Path, form: tuple[str, ...]
) -> None:
    command = [sys.executable, "-m", "quotaflow.pipelines", "sql", "SELECT chr(233) AS name"]
    place = ["--set", f"warehouse.path={tmp_path}"]
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    process = subprocess.run(
        [*command, *place, *form], env=os.environ | ascii_only, capture_output=True, check=False
    )
    assert (process.returncode, process.stderr) == (0, b"")
    assert process.stdout.decode("utf-8").split() == ["name", "\u00e9"]


def test_nobody_reading_on_is_quiet(table_command: Command, fill: Fill) -> None:
    fill("requests", [{"body": "x" * 10_000}] * 2_000)
    process = read_in_part("show", "requests", "--json", *table_command.options)
    assert (process.returncode, process.stderr) == (0, "")


@pytest.mark.parametrize("name", ["requests", "desired_configs"])
def test_ddl_prints_the_one_that_is_named(command: Command, name: str) -> None:
    assert f" {name} " in command("ddl", name).out.splitlines()[0] + " "


@pytest.mark.spark
@pytest.mark.faults
def test_views_answer_alike_in_spark(
    table_command: Command, warehouse: Warehouse, spark: object
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
    without = table_command("sql", query, "--json").out
    assert spark is not None
    assert table_command("sql", query, "--spark", "--json").out == without
    unknown = table_command("sql", "SELECT nope FROM producer_id_rates", "--spark", code=2)
    assert "UNRESOLVED_COLUMN" in unknown.err
    assert spark_reader.__doc__
