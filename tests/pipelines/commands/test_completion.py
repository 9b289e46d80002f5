"""What a shell completes, and the sections of the help."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.commands import index

from ...cases import cases
from ...command_line import Command
from ...documented_commands import ROOT

_BASH = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_quotaflow_completion quotaflow
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("completion") / "quotaflow"
    with pytest.MonkeyPatch.context() as patch:
        written = file.open("w", encoding="utf-8")
        patch.setattr("sys.stdout", written)
        assert execute(["completion", "bash"]) == 0
        written.close()
    return file


def completed(script: Path, *words: str) -> list[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    process = subprocess.run(
        ["bash", "-c", _BASH, "bash", str(script), "quotaflow", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PATH": path},
    )
    assert (process.returncode, process.stderr) == (0, "")
    return process.stdout.split()


@cases(
    ("words", "expected"),
    ("a table", ["show", "quota_usa"], ["quota_usage"]),
    ("an option after a table", ["show", "requests", "--wid"], ["--wide"]),
    ("a value", ["ddl", "--dialect", ""], ["spark", "duckdb"]),
    ("a file, which bash completes itself", ["report", "--out", "x"], []),
    more=[
        ("a command", ["sho"], ["show"]),
        ("an option of all", ["--ver"], ["--version"]),
        ("an option", ["show", "--col"], ["--columns"]),
        ("a part of a value", ["ddl", "--dialect", "d"], ["duckdb"]),
        ("an argument", ["completion", "z"], ["zsh"]),
        ("no command", ["nothing", "x"], []),
    ],
)
def test_bash_completes(script: Path, words: list[str], expected: list[str]) -> None:
    assert completed(script, *words) == expected


def test_bash_knows_every_command(script: Path) -> None:
    assert set(completed(script, "")) >= index.COMMANDS.keys()


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_ask_quotaflow(command: Command, shell: str) -> None:
    assert f"_QUOTAFLOW_COMPLETE=complete_{shell}" in command("completion", shell).out


def test_the_sections_of_the_help_are_those_of_the_page(command: Command) -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    of_page = {
        title: set(re.findall(r"^quotaflow ([a-z-]+)", text, re.M))
        for title, text in re.findall(r"(?ms)^## (.+?)\n(.*?)(?=^## |\Z)", page)
    }
    for title, commands in index.SECTIONS.items():
        assert of_page[title] - {"demo"} == commands.keys(), title
    printed = command().out
    assert all(f"\n{title}:\n" in printed for title in index.SECTIONS)
    assert "Other:" not in printed
    assert "..." not in printed.replace("[ARGS]...", "")
