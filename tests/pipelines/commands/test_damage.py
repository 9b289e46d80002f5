"""Every kind of file of a warehouse is damaged in every way, and no command breaks."""

import itertools
import json
import re
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path

import pytest

from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.commands.plan import CHANGES_WAITING
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...cases import first_of
from ...command_line import Command
from ...delta_tables import Fill
from ...rows import Row, request, row
from ...schemas.views.view_tables import make_tables
from ..serve.serving_pages import site

_DAVE = {"principal": "User:dave", "client_id": "exports"}
_USED = {"usage": 1.0, "broker_id": 2, "quota_type": "producer_byte_rate", "enforcement": "stock"}
_JOB = "request_results"
_NATIVE = re.compile(r"<unknown>|Traceback|\bat \./|RUST_")
_STRUCT = re.compile(r"\w+ \{ \w+:")


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def garbled(path: Path) -> None:
    path.write_bytes(b"\xff\x00 no JSON {")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def of_another_shape(path: Path) -> None:
    path.write_text("[1]", encoding="utf-8")


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


WAYS: list[Callable[[Path], None]] = [
    *(emptied, garbled, cut, of_another_shape, a_folder),
    Path.unlink,
]


def first(folder: Path, pattern: str) -> Path:
    return sorted(folder.glob(pattern))[0]


KINDS: dict[str, Callable[[Path], Path]] = {
    "newest commit": lambda root: sorted((root / "requests/_delta_log").glob("*.json"))[-1],
    "first commit": lambda root: first(root, "quota_usage/_delta_log/*.json"),
    "data file": lambda root: first(root, "requests/**/*.parquet"),
    "data file of a result": lambda root: first(root, "quota_usage/**/*.parquet"),
    "commit of progress": lambda root: first(root, "pipeline_progress/_delta_log/*.json"),
    "commit of the ledger": lambda root: first(root, "config_changes/_delta_log/*.json"),
    "commit of answers' state": lambda root: first(root, "answer_state/_delta_log/*.json"),
    "answers' state": lambda root: first(root, "answer_state/*.parquet"),
    "commit of an answer": lambda root: first(root, "quota_advice/_delta_log/*.json"),
    "query's id": lambda root: root / f"_checkpoints/{_JOB}/metadata",
    "offsets": lambda root: root / f"_checkpoints/{_JOB}/offsets/0",
    "commit of a batch": lambda root: root / f"_checkpoints/{_JOB}/commits/0",
    "state of a stream": lambda root: root / f"_checkpoints/{_JOB}/state/0/0/1.delta",
    "state of results": lambda root: root / f"_checkpoints/{_JOB}.results.json",
    "topic": lambda root: root / f"_checkpoints/{_JOB}.topic.json",
    "lock": lambda root: root / ".lock",
}
OF_JOBS = [*KINDS][[*KINDS].index("query's id") :]
"""What jobs leave beside tables: of the commands here only those about jobs read it."""
COMMANDS = [
    ["why", "dave", "--all"],
    ["status"],
    ["report", "--out", "-"],
    ["show", "requests"],
    ["tables"],
    ["describe", "quota_usage"],
    ["metrics"],
    ["plan"],
    ["sql", "SELECT count(*) FROM quota_usage"],
    ["upkeep", "--dry-run"],
    ["upkeep", "--repair", "--dry-run"],
]
PAGES = ["/", "/client?name=exports", "/principal?name=User:dave", "/find?q=dave"]
ENDS = {0, 1, ConfigError.exit_code, CHANGES_WAITING}
"""The exit codes of what says in words how it ended."""


@pytest.fixture
def root(warehouse: Warehouse) -> Path:
    """Tables with a few rows, and what a run leaves beside them."""
    content: dict[str, list[Row]] = {
        "requests": [request(5, "PRODUCE", **_DAVE)],
        "quota_usage": [row("quota_usage", 0, _USED | _DAVE)],
        "pipeline_progress": [row("pipeline_progress", 0, {"job": _JOB, "row_count": 1})],
        "config_changes": [],
    }
    make_tables(warehouse, content)
    folder = warehouse.conf.folder
    checkpoint = folder / "_checkpoints" / _JOB
    for name in ("offsets", "commits", "state/0/0"):
        (checkpoint / name).mkdir(parents=True)
    (checkpoint / "metadata").write_text(json.dumps({"id": "q"}))
    (checkpoint / "offsets" / "0").write_text('v1\n{}\n{"reservoirId": "x", "reservoirVersion": 1}')
    (checkpoint / "commits" / "0").write_text('v1\n{"nextBatchWatermarkMs":0}')
    (checkpoint / "state/0/0/1.delta").write_bytes(bytes(40))
    checkpoint.with_suffix(".results.json").write_text("{}")
    checkpoint.with_suffix(".topic.json").write_text('{"topic": "logs"}')
    (folder / ".lock").write_text("{}")
    return folder


def checked(
    kind: str,
    damage: Callable[[Path], None],
    root: Path,
    command: Command,
    every: list[list[str]] = COMMANDS,
) -> None:
    damage(KINDS[kind](root))
    for words in every:
        command.capsys.readouterr()
        ended = execute([*words, *command.options])
        out, err = command.capsys.readouterr()
        assert ended in ENDS, (words, err)
        assert not _NATIVE.search(out + err), (words, out[-2_000:] + err)
        assert not _STRUCT.search(err), (words, err)


def check_pages(warehouse: Warehouse, paths: list[str] = PAGES) -> None:
    pages = site(warehouse)
    for path in paths:
        text = pages.answer(path).body.decode()
        assert not _NATIVE.search(text), (path, text)
        assert not _STRUCT.search(text), (path, text)


@pytest.mark.parametrize("kind", KINDS)
def test_one_damage_of_each_kind_is_no_traceback(
    kind: str, root: Path, warehouse: Warehouse, table_command: Command
) -> None:
    way = WAYS[list(KINDS).index(kind) % len(WAYS)]
    if kind in OF_JOBS:
        checked(kind, way, root, table_command, [["status"]])
        return
    checked(kind, way, root, table_command, COMMANDS[:2])
    check_pages(warehouse, PAGES[-1:])


@pytest.mark.faults
@pytest.mark.parametrize(
    ("kind", "way"),
    [*itertools.product(KINDS, WAYS)],
    ids=lambda each: getattr(each, "__name__", each),
)
def test_no_damage_is_a_traceback(
    kind: str,
    way: Callable[[Path], None],
    root: Path,
    warehouse: Warehouse,
    table_command: Command,
) -> None:
    checked(kind, way, root, table_command)
    check_pages(warehouse)


@pytest.mark.parametrize("way", first_of(WAYS, 2))
def test_a_damaged_data_file_is_named_with_its_rows_and_costs_no_other_table(
    way: Callable[[Path], None], root: Path, table_command: Command
) -> None:
    file = KINDS["data file"](root)
    way(file)
    line = table_command.error("show", "requests", code=1)
    assert f"table requests is damaged: {file} is " in line
    assert "with 1 row from 2026-11-21 12:00:05" in line
    assert "put it back from a backup, or `quotaflow upkeep --repair requests` reads the" in line
    assert table_command("show", "quota_usage", "--json").rows
    assert "was limited" not in table_command("why", "dave", "--all").out


def test_a_gap_in_the_log_is_named(root: Path, table_command: Command) -> None:
    commit = KINDS["newest commit"](root)
    commit.rename(commit.with_name(f"{int(commit.stem) + 5:020d}.json"))
    line = table_command.error("show", "requests", code=1)
    assert f"{commit} is missing, so that 6 commits cannot be read: put it back" in line


def test_a_lost_file_is_named_with_both_dates_of_its_rows(
    root: Path, fill: Fill, table_command: Command
) -> None:
    fill("requests", [request(3 * 86_400, "PRODUCE", **_DAVE)])
    for file in root.glob("requests/*.parquet"):
        file.unlink()
    line = table_command.error("show", "requests", code=1)
    assert "with 2 rows from 2026-11-21 12:00:05 to 2026-11-24 12:00:00 UTC" in line


def test_upkeep_names_a_damaged_file_of_what_it_rolls_up(
    root: Path, table_command: Command
) -> None:
    emptied(KINDS["data file of a result"](root))
    line = table_command.error("upkeep", "--dry-run", code=1)
    assert "table quota_usage is damaged: " in line


def test_an_empty_newest_commit_is_no_commit_without_rows(
    root: Path, table_command: Command
) -> None:
    emptied(KINDS["newest commit"](root))
    line = table_command.error("show", "requests", code=1)
    assert "is empty, so that 1 commit cannot be read" in line


@pytest.mark.parametrize("kind", first_of(["data file", "commit of progress"]))
def test_a_report_and_its_pages_go_on_without_a_damaged_table(
    kind: str, root: Path, warehouse: Warehouse, table_command: Command
) -> None:
    damaged = KINDS[kind](root)
    emptied(damaged)
    table = damaged.relative_to(root).parts[0]
    pages = site(warehouse)
    read = {path: pages.answer(path) for path in PAGES}
    assert {page.status for page in read.values()} == {HTTPStatus.OK}
    report = table_command("report", "--out", "-").out
    # A data file is damaged for who reads it.
    paths = PAGES if "commit" in kind else ["/"]
    for text in (*(read[path].body.decode() for path in paths), report):
        assert text.count(f"without {table}, which is damaged: see quotaflow status") == 1
    for text in (read["/"].body.decode(), report):
        assert "Client quotas" in text
    assert "exports" in read["/client?name=exports"].body.decode()
