"""What the demo says and shows: the sentences and commands of shown.yaml."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from quotaflow.demo.traffic_report import TrafficReport

Shown = tuple[str, Sequence[str]]
"""A sentence, and a command of quotaflow with its arguments."""


def _shown(given: Mapping[str, Any]) -> Shown:
    """`sql` has the query of that command, and `options` what follows the query."""
    query = ["sql", given["sql"], *given.get("options", ())] if "sql" in given else None
    return given["says"], query or given["command"]


_GIVEN = yaml.safe_load((files("quotaflow.demo") / "shown.yaml").read_text(encoding="utf-8"))
PAST, BEFORE, AMID, AFTER, AGAIN = (
    _GIVEN[name] for name in ("past", "before", "amid", "after", "again")
)
PLAN, TABLES, CHECKED, EFFECT, WRONG = (
    tuple(map(_shown, _GIVEN[name])) for name in ("plan", "tables", "checked", "effect", "wrong")
)


def clients(report: TrafficReport) -> str:
    """What the clients did, by their own counts."""
    acked = sum(sum(client.records_acked.values()) for client in report.clients)
    ids = sum(client.producer_ids for client in report.clients)
    return (
        f"The clients that came first wrote {acked:,} records. They were given {ids} producer ids, "
        f"mallory {report.producer_ids('User:mallory')} of them; frank came later."
    )


def last(page: Path) -> Shown:
    """What needs no cluster: the report as one file."""
    return "All of it is on one page, to read offline.", ("report", "--out", str(page))


def further(page: Path, place: str) -> str:
    """What to do next; `place`: what the commands need to find the tables."""
    commands = {
        "Why is it slow?": f"why dave{place}   (or another name: mallory, carol, orders)",
        "In a browser:": f"serve{place}   (or open {page})",
        "In tables:": f"tables{place}",
    }
    return "\n".join(f"{what:<17}quotaflow {words}" for what, words in commands.items())
