"""The environment of the gate, drawn by the hash of what is tested."""

import locale
import subprocess
from pathlib import Path

import pytest

from .release_tools import tool

draw = tool("draw", ".ci")
TREES = [f"{number:040x}" for number in range(100)]


def test_the_same_tree_draws_the_same() -> None:
    assert all(draw.draw(tree) == draw.draw(tree) for tree in TREES)
    # So it is on another machine and in a later Python.
    assert draw.draw("4b825dc642cb6eb9a060e54bf8d69288fbee4904") == {
        "TZ": "America/St_Johns",
        "LC_ALL": "C.UTF-8",
        "COLUMNS": "80",
        "HOME": "",
        "umask": "077",
        "PYTHONHASHSEED": "3461050671",
    }


def test_every_value_comes_up() -> None:
    drawn = [draw.draw(tree) for tree in TREES]
    for name, values in draw.VALUES.items():
        assert {each[name] for each in drawn} == set(values)
    assert len({each["PYTHONHASHSEED"] for each in drawn}) == len(TREES)


def test_a_shell_takes_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locale, "setlocale", lambda _category, _name: None)
    drawn = {name: values[-1] for name, values in draw.VALUES.items()} | {"PYTHONHASHSEED": "7"}
    script = f'{draw.line(drawn, str(tmp_path))}\nprintf "%s|" "$HOME" "$TZ" "$LC_ALL"; umask'
    printed = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, check=True).stdout
    assert printed.decode() == (f"{tmp_path}/home of Jörg|Pacific/Kiritimati|tr_TR.UTF-8|0077\n")


def test_a_locale_that_is_not_installed_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_category: int, _name: str) -> None:
        raise locale.Error

    monkeypatch.setattr(locale, "setlocale", refused)
    drawn = {name: values[0] for name, values in draw.VALUES.items()}
    assert draw.line(drawn | {"LC_ALL": "tr_TR.UTF-8"}, "/t") == (
        "umask 022; export TZ=UTC LC_ALL=C.UTF-8 COLUMNS=80 # tr_TR.UTF-8 is not installed"
    )
