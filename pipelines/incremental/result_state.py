"""The state of results between batches, in a file beside the checkpoint of their query.

A result whose rule failed is not up to date since some time. It is computed again with the next
batch, while other results go on. The state also holds how far lookup tables have been read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True)
class ResultState:
    """One result: since when it is not up to date, why, and how far lookups are read."""

    dirty_since: datetime | None = None
    failure: str | None = None
    context_seen: Mapping[str, datetime] = field(default_factory=dict)


_STATES = TypeAdapter(dict[str, ResultState])


def load(checkpoint: Path) -> dict[str, ResultState]:
    """The state of each result, by the name of its table."""
    file = _file(checkpoint)
    return _STATES.validate_json(file.read_bytes()) if file.exists() else {}


def save(checkpoint: Path, states: Mapping[str, ResultState]) -> None:
    """Replace the stored states, all or none."""
    remembered = {name: state for name, state in states.items() if state != ResultState()}
    if remembered == load(checkpoint):
        return
    file = _file(checkpoint)
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(".new")
    fresh.write_bytes(_STATES.dump_json(remembered))
    fresh.replace(file)


def not_up_to_date(checkpoint: Path) -> list[str]:
    """A line for each result whose rule failed, and that is computed again with the next batch."""
    return [
        f"{name} is not up to date since {state.dirty_since:%Y-%m-%d %H:%M:%S} UTC and is tried "
        f"again with the next batch: {state.failure}"
        for name, state in load(checkpoint).items()
        if state.dirty_since
    ]


def _file(checkpoint: Path) -> Path:
    return checkpoint.with_suffix(".results.json")
