"""README and docs: every command they tell is one, with options it has."""

import re
import tomllib
from typing import Any

import pytest
import typer

from quotaflow.demo import command as demo
from quotaflow.pipelines import __main__ as cli

from ..documented_commands import PAGES, ROOT, in_blocks, in_text, words

ALL = sorted({(page.name, line) for page in PAGES for line in (*in_blocks(page), *in_text(page))})


@pytest.fixture(scope="module")
def app() -> typer.core.TyperGroup:
    made = cli.app()
    demo.register(made)
    group = typer.main.get_command(made)
    assert isinstance(group, typer.core.TyperGroup)
    return group


def test_commands_of_pages_are_some_with_options_they_have(app: typer.core.TyperGroup) -> None:
    options = {
        name: {"--help", "-h", *(each for parameter in command.params for each in parameter.opts)}
        for name, command in app.commands.items()
    }
    wrong = []
    for page, line in ALL:
        name, *rest = words(line)
        used = {word.split("=")[0] for word in rest if re.fullmatch(r"--?[a-z][a-z-]*(=.*)?", word)}
        if not (name in options and used <= options[name]):
            wrong.append(f"{page}: {line}")
    assert wrong == []


def test_every_command_is_told(app: typer.core.TyperGroup) -> None:
    assert {words(line)[0] for _, line in ALL} >= set(app.commands) - {"demo"}


def test_commands_that_print_no_table_for_people_are_named(app: typer.core.TyperGroup) -> None:
    options = {
        name: {option for parameter in command.params for option in parameter.opts}
        for name, command in app.commands.items()
    }
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    match = re.search(r"has these options;(.*?)have `--json` and `--csv` alone", page, re.S)
    assert match
    assert set(re.findall(r"`(.+?)`", match[1])) == {
        name for name, names in options.items() if "--json" in names and "--wide" not in names
    }
    assert all("--csv" in names for names in options.values() if "--json" in names)


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return table


def test_the_wheel_that_is_told_is_the_one_that_is_built(project: dict[str, Any]) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    (wheel,) = re.findall(r"pip install 'dist/(\S+?)\[([\w,]+)\]'", page)
    assert wheel[0] == f"{project['name']}-{project['version']}-py3-none-any.whl"
    extras = re.findall(r"^\| `(\w+)` \| ", page[page.index("| extra |") :], re.M)
    assert set(extras) == project["optional-dependencies"].keys() - {"dev"}
    assert set(wheel[1].split(",")) <= set(extras)


def test_no_page_installs_from_an_index_that_lacks_it() -> None:
    install = re.compile(r"pip install\s+'?quotaflow")
    assert [page for page in PAGES if install.search(page.read_text(encoding="utf-8"))] == []
