"""All commands: the section of each in the help, its module and its summary.

The module of a command is imported when the command is called, so that the help, and each command,
waits only for what it needs.
"""

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Any, NamedTuple

import typer.core


class Listed(NamedTuple):
    """A command of this folder; its summary is the first sentence of its docstring."""

    module: str
    summary: str


SECTIONS: Mapping[str, Mapping[str, Listed]] = {
    "Set up": {
        "init": Listed(
            "init", "Write the files that connect a cluster: conf, topics, rights, broker files."
        ),
        "conf": Listed(
            "conf", "Check conf, show where each value comes from, or print its JSON Schema."
        ),
        "doctor": Listed("doctor", "Check what is missing, and say how to fix it."),
        "capture": Listed(
            "capture", "Switch brokers' request logs on for a while, and show the lines per second."
        ),
        "completion": Listed(
            "completion",
            "Print a script with which a shell completes commands, options and names of tables.",
        ),
    },
    "Fill tables": {
        "jobs": Listed("jobs", "List the jobs: what each reads, fills and does."),
        "run": Listed("jobs", "Fill the tables from Kafka, once or until Ctrl-C."),
        "snapshot": Listed(
            "snapshot",
            "Read the cluster's state and configs, and write what changed since the last snapshot.",
        ),
        "backfill": Listed(
            "upkeep", "Add records of a past time to the tables that lack them, from the topic."
        ),
    },
    "Read tables": {
        "tables": Listed(
            "tables", "List tables and views by area, or search them and their columns."
        ),
        "describe": Listed(
            "tables",
            "Describe a table or view: what a row is, what fills it, and what each column means.",
        ),
        "show": Listed("tables", "Show rows of a table or view, newest first."),
        "sql": Listed(
            "sql", "Answer one SQL query over tables and views, or open a shell for many."
        ),
        "ddl": Listed(
            "tables",
            "Print CREATE TABLE and CREATE VIEW with the meaning of each column, or GRANT "
            "statements.",
        ),
        "why": Listed(
            "why", "Show what is wrong with a client, group, topic or address, why, and what to do."
        ),
        "what-if": Listed(
            "what_if",
            "Replay new producer ids under a producer_ids_rate (KIP-936): who would have waited.",
        ),
        "report": Listed(
            "report",
            "Write one HTML file to read offline: the cluster, and what needs attention first.",
        ),
        "serve": Listed(
            "serve", "Serve the report as a live page, and a page for each name, to browsers."
        ),
        "status": Listed(
            "status",
            "Show the health of each job, who writes to the tables, and what waits for an "
            "operator.",
        ),
        "metrics": Listed(
            "metrics",
            "List or search metrics: name, unit, kind, clients, meaning, and names of the KIPs.",
        ),
    },
    "Change configs": {
        "plan": Listed("plan", "Show which configs should change, why, and how."),
        "apply": Listed(
            "apply",
            "Write the changes of a plan to the cluster: each is recorded, read back and has a "
            "lease.",
        ),
        "restore": Listed(
            "apply",
            "Restore configs whose lease is over to the values from before quotaflow wrote them.",
        ),
        "adopt": Listed(
            "adopt",
            "Take over configs that this deployment does not know as its own, so that they are "
            "restored.",
        ),
        "release": Listed(
            "release",
            "Allow plans to change a config that another login set last, or to go on after a halt.",
        ),
        "throttle-advice": Listed(
            "throttle_advice",
            "Advise a throttle for a move of replicas, and how long the move takes (KIP-73).",
        ),
        "troubleshoot": Listed(
            "troubleshoot",
            "Request metrics from one client for a while, and show what it pushes.",
        ),
    },
    "Run it for years": {
        "check": Listed("check", "Check new rows of the tables against the expectations on them."),
        "notify": Listed(
            "notify",
            "Notify a webhook of alerts, waiting plans, failed changes and critical checks.",
        ),
        "upkeep": Listed(
            "upkeep",
            "Remove rows past their retention, roll up old windows, compact and delete files.",
        ),
        "rebuild": Listed(
            "upkeep", "Compute rows of a result again from its facts, late ones included."
        ),
        "pseudonym": Listed(
            "decode", "Print what tables have for a client id or an address that privacy hides."
        ),
    },
    "Look at captured bytes": {
        "decode": Listed("decode", "Print the data points of one telemetry payload."),
        "parse": Listed("decode", "Parse lines of a request log to rows of the table requests."),
    },
}
"""The sections of the help, as docs/commands.md has them, and their commands."""
COMMANDS = {name: listed for commands in SECTIONS.values() for name, listed in commands.items()}
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
            self._made[name] = _imported(name, COMMANDS[name])
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**COMMANDS, **self._made})

    def __len__(self) -> int:
        return len({**COMMANDS, **self._made})


def _imported(name: str, listed: Listed) -> Any:
    commands = typer.Typer(rich_markup_mode=None, add_completion=False)
    import_module(f"{__package__}.{listed.module}").register(commands)
    return typer.main.get_group(commands).commands[name]


class Commands(typer.core.TyperGroup):
    """The group `quotaflow`: its help imports no command."""

    def __init__(self, **attrs: Any) -> None:
        super().__init__(**attrs)
        self.commands = _Commands(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002  Typer's signature
        """Write the sections, each command with its whole summary."""
        rows: dict[str, list[tuple[str, str]]] = {
            title: [(name, listed.summary) for name, listed in commands.items()]
            for title, commands in SECTIONS.items()
        }
        for name in self.commands:
            if name not in COMMANDS:
                summary = self.commands[name].get_short_help_str(_WHOLE)
                rows.setdefault(_OF_OTHERS.get(name, _OTHER), []).append((name, summary))
        for title, listed_rows in rows.items():
            with formatter.section(title):
                formatter.write_dl(listed_rows)
