"""What a query of results remembers between batches, beside its checkpoint.

A result whose rule failed is not up to date since some time, and is tried again with the next
batch while the others go on. And of tables a rule looks things up in, how far they were seen.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True)
class ResultState:
    """Of one result: since when it is not up to date and why, and the newest context it saw."""

    dirty_since: datetime | None = None
    failure: str | None = None
    context_seen: Mapping[str, datetime] = field(default_factory=dict)


_STATES = TypeAdapter(dict[str, ResultState])


def load(checkpoint: Path) -> dict[str, ResultState]:
    """What is remembered of each result, by the name of its table."""
    file = _file(checkpoint)
    return _STATES.validate_json(file.read_bytes()) if file.exists() else {}


def save(checkpoint: Path, states: Mapping[str, ResultState]) -> None:
    """Replace what is remembered, whole or not at all."""
    remembered = {name: memory for name, memory in states.items() if memory != ResultState()}
    if remembered == load(checkpoint):
        return
    file = _file(checkpoint)
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(".new")
    fresh.write_bytes(_STATES.dump_json(remembered))
    fresh.replace(file)


def not_up_to_date(checkpoint: Path) -> list[str]:
    """A line for each result whose rule failed, and is to be tried again."""
    return [
        f"{name} is not up to date since {state.dirty_since:%Y-%m-%d %H:%M:%S} UTC and is tried "
        f"again with the next batch: {state.failure}"
        for name, state in load(checkpoint).items()
        if state.dirty_since
    ]


def _file(checkpoint: Path) -> Path:
    return checkpoint.with_suffix(".results.json")
