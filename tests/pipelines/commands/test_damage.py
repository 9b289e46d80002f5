"""Every kind of file of a warehouse is damaged in every way, and no command breaks."""

import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...command_line import Command
from ...rows import Row, request, row
from ...schemas.views.view_tables import make_tables

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
    "query's id": lambda root: root / f"_checkpoints/{_JOB}/metadata",
    "offsets": lambda root: root / f"_checkpoints/{_JOB}/offsets/0",
    "state of results": lambda root: root / f"_checkpoints/{_JOB}.results.json",
    "topic": lambda root: root / f"_checkpoints/{_JOB}.topic.json",
    "lock": lambda root: root / ".lock",
}
COMMANDS = [
    ["why", "dave", "--all"],
    ["status"],
    ["report", "--out", "-"],
    ["show", "requests"],
    ["tables"],
    ["describe", "quota_usage"],
    ["metrics"],
]


@pytest.fixture
def root(warehouse: Warehouse) -> Path:
    """Tables with a few rows, and what a run leaves beside them."""
    content: dict[str, list[Row]] = {
        "requests": [request(5, "PRODUCE", **_DAVE)],
        "quota_usage": [row("quota_usage", 0, _USED | _DAVE)],
        "pipeline_progress": [row("pipeline_progress", 0, {"job": _JOB, "row_count": 1})],
        "config_changes": [],
        "answer_state": [],
    }
    make_tables(warehouse, content)
    folder = warehouse.conf.folder
    checkpoint = folder / "_checkpoints" / _JOB
    (checkpoint / "offsets").mkdir(parents=True)
    (checkpoint / "metadata").write_text(json.dumps({"id": "q"}))
    (checkpoint / "offsets" / "0").write_text('v1\n{}\n{"reservoirId": "x", "reservoirVersion": 1}')
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
        assert ended in {0, 1}, (words, err)
        assert not _NATIVE.search(out + err), (words, out[-2_000:] + err)
        assert not _STRUCT.search(err), (words, err)


@pytest.mark.parametrize("kind", KINDS)
def test_one_damage_of_each_kind_is_no_traceback(
    kind: str, root: Path, table_command: Command
) -> None:
    way = WAYS[list(KINDS).index(kind) % len(WAYS)]
    checked(kind, way, root, table_command, COMMANDS[:2])


@pytest.mark.faults
@pytest.mark.parametrize(
    ("kind", "way"),
    [*itertools.product(KINDS, WAYS)],
    ids=lambda each: getattr(each, "__name__", each),
)
def test_no_damage_is_a_traceback(
    kind: str, way: Callable[[Path], None], root: Path, table_command: Command
) -> None:
    checked(kind, way, root, table_command)


@pytest.mark.parametrize("way", WAYS)
def test_a_damaged_data_file_is_named_with_its_rows_and_costs_no_other_table(
    way: Callable[[Path], None], root: Path, table_command: Command
) -> None:
    file = KINDS["data file"](root)
    way(file)
    line = table_command.error("show", "requests", code=1)
    assert f"table requests is damaged: {file} is " in line
    assert "with 1 row from 2026-11-21 12:00:05" in line
    assert "put it back from a backup of the folder" in line
    assert table_command("show", "quota_usage", "--json").rows
    assert "was limited" not in table_command("why", "dave", "--all").out


def test_the_version_before_a_broken_commit_comes_back_as_the_error_says(
    root: Path, table_command: Command
) -> None:
    commit = KINDS["newest commit"](root)
    lines = table_command("show", "requests", "--json").rows
    broken = commit.with_name(f"{int(commit.stem) + 1:020d}.json")
    broken.write_bytes(commit.read_bytes()[:40])
    line = table_command.error("show", "requests", code=1)
    assert f"{broken} is no JSON, so that 1 commit cannot be read" in line
    words = re.search(r"mv (\S+) (\S+?)\. Then", line)
    assert words
    Path(words[1]).rename(words[2])
    assert table_command("show", "requests", "--json").rows == lines


def test_a_gap_in_the_log_is_named(root: Path, table_command: Command) -> None:
    commit = KINDS["newest commit"](root)
    commit.rename(commit.with_name(f"{int(commit.stem) + 5:020d}.json"))
    line = table_command.error("show", "requests", code=1)
    assert f"{commit} is missing, so that 6 commits cannot be read: put it back" in line
