"""All commands, by the sections and summaries of commands.toml.

A command is the function of its name, with `_` for `-`. Its module is imported when it is called,
so that the help, and each command, waits only for what it needs.
"""

import tomllib
from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from importlib.resources import files
from typing import Any

import typer.core

SECTIONS: Mapping[str, Mapping[str, str]] = tomllib.loads(
    files("quotaflow.pipelines.commands").joinpath("commands.toml").read_text(encoding="utf-8")
)
"""The sections of the help, and in each the summary of each command."""
COMMANDS = {name: text for commands in SECTIONS.values() for name, text in commands.items()}
"""Every command, with its summary."""
_MODULES = {
    **{"run": "jobs", "restore": "apply", "pseudonym": "decode", "parse": "decode"},
    **{"describe": "tables", "show": "tables", "ddl": "tables"},
    **{"rebuild": "upkeep", "backfill": "upkeep"},
}
"""Modules of this folder that have another name than their command."""
_OF_OTHERS = {"demo": "Set up"}
"""Commands of other packages, by their section; others come last."""
_OTHER = "Other"
_WHOLE = 1_000


class _Commands(MutableMapping[str, Any]):
    """The commands of this folder, each imported when it is read, and those that others add."""

    def __init__(self, added: Mapping[str, Any]) -> None:
        self._made = dict(added)

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            if name not in COMMANDS:
                raise KeyError(name)
            self._made[name] = _imported(name)
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**COMMANDS, **self._made})

    def __len__(self) -> int:
        return len({**COMMANDS, **self._made})


def _imported(name: str) -> Any:
    function = name.replace("-", "_")
    module = import_module(f"{__package__}.{_MODULES.get(name, function)}")
    from quotaflow.pipelines.commands.options import parsed  # noqa: PLC0415  imports conf

    commands = typer.Typer(rich_markup_mode=None, add_completion=False)
    commands.command(name)(parsed(getattr(module, function)))
    return typer.main.get_group(commands).commands[name]


class Commands(typer.core.TyperGroup):
    """The group `quotaflow`: its help imports no command."""

    def __init__(self, **attrs: Any) -> None:
        super().__init__(**attrs)
        self.commands = _Commands(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002  Typer's signature
        """Write the sections, each command with its whole summary."""
        rows = {title: list(commands.items()) for title, commands in SECTIONS.items()}
        for name in self.commands:
            if name not in COMMANDS:
                summary = self.commands[name].get_short_help_str(_WHOLE)
                rows.setdefault(_OF_OTHERS.get(name, _OTHER), []).append((name, summary))
        for title, listed_rows in rows.items():
            with formatter.section(title):
                formatter.write_dl(listed_rows)
