"""The help of `quotaflow`: its commands in sections, each with its whole summary."""

from collections.abc import Mapping
from typing import Any

import typer.core

SECTIONS: Mapping[str, tuple[str, ...]] = {
    "Set up": ("init", "conf", "doctor", "capture", "completion", "demo"),
    "Fill tables": ("jobs", "run", "snapshot", "backfill"),
    "Read tables": (
        *(
            "tables",
            "describe",
            "show",
            "sql",
            "ddl",
            "why",
            "what-if",
            "report",
            "serve",
            "status",
            "metrics",
        ),
    ),
    "Change configs": (
        *("plan", "apply", "restore", "adopt", "release", "throttle-advice", "troubleshoot"),
    ),
    "Run it for years": ("check", "notify", "upkeep", "rebuild", "pseudonym"),
    "Look at captured bytes": ("decode", "parse"),
}
"""The sections and their commands, as docs/commands.md has them."""
_OTHER = "Other"
_WHOLE = 1_000


class Sections(typer.core.TyperGroup):
    """A group whose help has its commands in `SECTIONS`; commands of other packages come last."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002  Typer's signature
        """Write the sections that have commands."""
        placed = {name for names in SECTIONS.values() for name in names}
        others = tuple(name for name in self.commands if name not in placed)
        for title, names in [*SECTIONS.items(), (_OTHER, others)]:
            rows = [
                (name, self.commands[name].get_short_help_str(_WHOLE))
                for name in names
                if name in self.commands
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
