"""README and docs: every command they tell is one, with options it has."""

import re

import pytest
import typer

from quotaflow.demo import command as demo
from quotaflow.pipelines import __main__ as cli

from .told_commands import PAGES, in_blocks, in_text, words

ALL = sorted({(page.name, told) for page in PAGES for told in (*in_blocks(page), *in_text(page))})


@pytest.fixture(scope="module")
def app() -> typer.core.TyperGroup:
    made = cli.app()
    demo.register(made)
    group = typer.main.get_command(made)
    assert isinstance(group, typer.core.TyperGroup)
    return group


@pytest.mark.parametrize(("page", "told"), ALL)
def test_a_command_of_a_page_is_one(app: typer.core.TyperGroup, page: str, told: str) -> None:
    name, *rest = words(told)
    command = app.commands.get(name)
    assert command, f"{page}: no command {name}"
    known = {option for parameter in command.params for option in parameter.opts}
    used = {word.split("=")[0] for word in rest if re.fullmatch(r"--?[a-z][a-z-]*(=.*)?", word)}
    assert used <= known | {"--help", "-h"}, f"{page}: {told}"


def test_every_command_is_told(app: typer.core.TyperGroup) -> None:
    assert {words(told)[0] for _, told in ALL} >= set(app.commands) - {"demo"}
