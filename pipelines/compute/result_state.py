"""The state of results between batches, in a file beside the checkpoint of their query.

A result whose rule failed is not up to date since some time. It is computed again with the next
batch, while other results go on. The state also holds how far lookup tables have been read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pydantic import TypeAdapter

from quotaflow.pipelines.errors import CheckpointError
from quotaflow.pipelines.warehouse import state_files


@dataclass(frozen=True, slots=True)
class ResultState:
    """One result: since when it is not up to date, why, and how far lookups are read.

    `names_seen` is the digest of the topic ids that had names when its rows got theirs.
    """

    dirty_since: datetime | None = None
    failure: str | None = None
    context_seen: Mapping[str, datetime] = field(default_factory=dict)
    names_seen: str | None = None


_STATES = TypeAdapter(dict[str, ResultState])
_REMEDY = (
    "it said which results are not up to date. Remove it, and compute the results of this job "
    "again with quotaflow rebuild TABLE --from TIME, from some days before the last good run on"
)


def load(checkpoint: Path) -> dict[str, ResultState]:
    """The state of each result, by the name of its table.

    Raises CheckpointError if the file is broken: without it no result is known to be up to date.
    """
    return state_files.load(_file(checkpoint), _STATES.validate_json, _REMEDY) or {}


def save(checkpoint: Path, states: Mapping[str, ResultState]) -> None:
    """Replace the stored states, all or none."""
    remembered = {name: state for name, state in states.items() if state != ResultState()}
    if remembered == load(checkpoint):
        return
    state_files.replace(_file(checkpoint), _STATES.dump_json(remembered).decode())


def not_up_to_date(checkpoint: Path) -> list[str]:
    """A line for each result whose rule failed, and that is computed again with the next batch.

    One line if the state is broken.
    """
    try:
        states = load(checkpoint)
    except CheckpointError as error:
        return [str(error)]
    return [
        f"{name} is not up to date since {state.dirty_since:%Y-%m-%d %H:%M:%S} UTC and is tried "
        f"again with the next batch: {state.failure}"
        for name, state in states.items()
        if state.dirty_since
    ]


def _file(checkpoint: Path) -> Path:
    return checkpoint.with_suffix(".results.json")
