"""Commands that sentences print: a shell and the command line give the name back as it is."""

import shlex

import typer
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines import __main__ as cli
from quotaflow.pipelines.areas import diagnoses
from quotaflow.pipelines.terminal import texts

from ...cases import cases

STREAMS = "orders-0f9a4c2e-7d1b-4f0e-9a53-1c2d3e4f5a6b-StreamThread-1-consumer"
_GROUP = typer.main.get_command(cli.app())
assert isinstance(_GROUP, typer.core.TyperGroup)
_WHY = _GROUP.commands["why"]
NAMES = st.none() | st.text(max_size=400) | st.from_regex(r"\A-{0,2}[a-z'\"$ *;]{1,80}\Z")


def named(command: str) -> str:
    """The name that a command asks about, as a shell and the command line read it."""
    program, why, *words = shlex.split(command)
    assert (program, why) == ("quotaflow", "why")
    (name,) = _WHY.make_context("why", words).params["name"]
    assert isinstance(name, str)
    return name


@cases(
    ("name", "options"),
    ("a Streams client", STREAMS, ""),
    ("with an option", STREAMS, "--all"),
    ("an option of ours", "-h", ""),
    ("an option with one", "--all", "--all"),
    ("a program", "app-*", ""),
    ("quotes", 'it\'s "$HOME"; ls', ""),
)
def test_a_name_is_whole_in_a_command(name: str, options: str) -> None:
    assert named(texts.why(name, options)) == name


@cases(
    ("name",),
    ("nothing", None),
    ("no characters", ""),
    ("what ends a command in text", "a`b"),
    ("what does not print", "a\x1b[2J"),
    ("what a sentence cuts", "x" * 301),
)
def test_what_names_nothing_in_a_shell_has_no_command(name: str | None) -> None:
    assert texts.why(name) == ""
    assert texts.run_why([name], "what to do", "diagnoses") == "see `quotaflow show diagnoses`"
    step = texts.run_why([name, "User:app"], "what to do", "diagnoses")
    assert step == "run `quotaflow why User:app`: it says what to do"


@given(st.lists(NAMES, max_size=4))
def test_a_printed_command_names_one_of_the_names(names: list[str | None]) -> None:
    _, code, *_ = texts.run_why(names, "what to do", "diagnoses").split("`")
    assert code == "quotaflow show diagnoses" or named(code) in names


@cases(
    ("names", "step"),
    ("a name behind another", ["a`b", "app"], "Run `quotaflow why app`: it says what to do."),
    ("no name", ["a`b"], "See `quotaflow show diagnoses`."),
)
def test_an_incident_names_what_can_be_asked_about(names: list[str], step: str) -> None:
    assert diagnoses.SUFFERS.action([{"names": names}]) == step
