"""The command completion: a script that lets a shell complete commands, options and names."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from quotaflow.pipelines.commands import conf, decode, metrics, tables
from quotaflow.pipelines.terminal import output
from quotaflow.pipelines.warehouse import views
from quotaflow.schemas.tables.catalog import TABLES


class Shell(StrEnum):
    """A shell that completes."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_LISTED: dict[str, tuple[str, ...]] = {
    "SHELL": tuple(Shell),
    "ACTION": tuple(conf.Action),
    "--dialect": tuple(tables.Dialect),
    "--codec": decode.CODECS,
    "--client": metrics.CLIENTS,
    "--kind": metrics.KINDS,
    "--kip": metrics.KIPS,
}
"""The values of options, and of arguments by what help calls them."""


@dataclass(frozen=True, slots=True)
class Choice:
    """An option of a command: its names, its help, what its value is called, and which there are.

    `metavar` is None for one without a value.
    """

    names: tuple[str, ...]
    help: str
    metavar: str | None
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Completed:
    """A command, and what may come after it; `values` are those of its arguments."""

    name: str
    summary: str
    options: tuple[Choice, ...]
    values: tuple[str, ...]


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("completion")(completion)


def completion(
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
    context: typer.Context,
) -> None:
    """Print a script with which a shell completes commands, options and names of tables.

    The script is of this version: print it again after an upgrade. For bash, put the line
    `source <(quotaflow completion bash)` into ~/.bashrc. For zsh, write it to a file _quotaflow in
    a folder of $fpath. For fish, write it to ~/.config/fish/completions/quotaflow.fish.

    Example: quotaflow completion bash > ~/.local/share/bash-completion/completions/quotaflow
    """
    root: Any = context.find_root().command
    commands = [_completed(name, command) for name, command in root.commands.items()]
    output.lines(_SCRIPTS[shell](commands))


def _completed(name: str, command: Any) -> Completed:
    options = [each for each in command.params if each.param_type_name == "option"]
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    values = dict.fromkeys(value for each in arguments for value in _values(each))
    choices = [_choice(each) for each in options]
    helped = Choice(("-h", "--help"), "Show the help and exit.", None, ())
    return Completed(name, command.get_short_help_str(200), (*choices, helped), tuple(values))


def _choice(option: Any) -> Choice:
    metavar = None if option.is_flag else (option.metavar or option.name)
    return Choice(tuple(option.opts), option.help or "", metavar, _values(option))


def _values(parameter: Any) -> tuple[str, ...]:
    """The values that a parameter can have; none if they are not known."""
    for name in (*parameter.opts, parameter.metavar):
        if name in _LISTED:
            return _LISTED[name]
    if re.search(r"\bTABLE\b", parameter.metavar or "") is None:
        return ()
    return (*TABLES, *views.load())


def _bash(commands: Sequence[Completed]) -> Iterator[str]:
    yield "_quotaflow() {"
    yield "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}"
    yield "    local command='' options='' values='' at"
    yield "    for ((at = 1; at < COMP_CWORD; at++)); do"
    yield "        [[ ${COMP_WORDS[at]} == -* ]] || { command=${COMP_WORDS[at]}; break; }"
    yield "    done"
    yield "    case $command in"
    names = " ".join(each.name for each in commands)
    yield f"        '') options='--version --help' values='{names}' ;;"
    for each in commands:
        options = " ".join(name for option in each.options for name in option.names)
        yield f"        {each.name}) options='{options}' values='{' '.join(each.values)}' ;;"
    yield "    esac"
    yield '    case "$command $before" in'
    for each in commands:
        for option in each.options:
            if option.metavar is not None:
                cases = "|".join(f"'{each.name} {name}'" for name in option.names)
                yield f"        {cases}) options='' values='{' '.join(option.values)}' ;;"
    yield "    esac"
    yield "    [[ $word == -* ]] && values=$options"
    yield '    mapfile -t COMPREPLY < <(compgen -W "$values" -- "$word")'
    yield "}"
    yield "complete -o default -F _quotaflow quotaflow"


def _zsh(commands: Sequence[Completed]) -> Iterator[str]:
    yield "#compdef quotaflow"
    yield "_quotaflow() {"
    yield "    local -a commands=("
    for each in commands:
        yield f"        {_quoted(f'{each.name}:{each.summary}')}"
    yield "    )"
    yield "    if (( CURRENT == 2 )); then"
    yield "        _describe command commands"
    yield "        return"
    yield "    fi"
    yield "    local command=$words[2]"
    yield "    shift words; (( CURRENT-- ))"
    yield "    case $command in"
    for each in commands:
        specs = [spec for option in each.options for spec in _zsh_options(option)]
        specs.append(
            _quoted(f"*:value:({' '.join(each.values)})" if each.values else "*:file:_files")
        )
        yield f"        {each.name}) _arguments {' '.join(specs)} ;;"
    yield "    esac"
    yield "}"
    # In a folder of $fpath the file is the body of the function; sourced, it declares it.
    yield "if [[ $funcstack[1] == _quotaflow ]]; then"
    yield '    _quotaflow "$@"'
    yield "else"
    yield "    compdef _quotaflow quotaflow"
    yield "fi"


def _zsh_options(option: Choice) -> Iterator[str]:
    text = re.sub(r"([\[\]:\\])", r"\\\1", option.help)
    value = ""
    if option.metavar is not None:
        action = f"({' '.join(option.values)})" if option.values else "_files"
        value = f":{re.sub(r'[^A-Za-z0-9_ -]', '', option.metavar)}:{action}"
    for name in option.names:
        yield _quoted(f"*{name}[{text}]{value}")


def _fish(commands: Sequence[Completed]) -> Iterator[str]:
    for each in commands:
        summary = _quoted(each.summary)
        yield f"complete -c quotaflow -n __fish_use_subcommand -f -a {each.name} -d {summary}"
    for each in commands:
        head = f"complete -c quotaflow -n '__fish_seen_subcommand_from {each.name}'"
        if each.values:
            yield f"{head} -f -a '{' '.join(each.values)}'"
        for option in each.options:
            names = " ".join(_fish_name(name) for name in option.names)
            value = "" if option.metavar is None else " -r"
            value += f" -f -a '{' '.join(option.values)}'" if option.values else ""
            yield f"{head} {names}{value} -d {_quoted(option.help)}"


def _fish_name(name: str) -> str:
    return f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"


def _quoted(text: str) -> str:
    """A word in single quotes, as zsh and, with a backslash before it, fish take a quote in it."""
    return "'" + text.replace("'", "'\\''") + "'"


_SCRIPTS: dict[Shell, Callable[[Sequence[Completed]], Iterator[str]]] = {
    Shell.BASH: _bash,
    Shell.ZSH: _zsh,
    Shell.FISH: _fish,
}
