"""`answer_state`: what each answer was computed from, and whether it is up to date."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from quotaflow.pipelines.results.answers.answer import Answer
from quotaflow.schemas.tables.declared import ANSWER_STATE

Stamps = Mapping[str, str | None]
"""The version of each table; None for one that does not exist."""

_ALL_CLUSTERS = "*"


@dataclass(frozen=True, slots=True)
class AnswerState:
    """A row of the table. `inputs` has the stamps of what the answer read, and its own."""

    answer: str
    time: datetime
    fingerprint: str
    inputs: Stamps
    expires_at: datetime | None = None
    error: str | None = None

    def is_of(self, answer: Answer, stamps: Stamps, now: datetime) -> bool:
        """Whether the answer would have the same rows now, so that it need not be computed."""
        return (
            self.was_computed_as(answer)
            and self.inputs == stamps
            and (self.expires_at is None or now < self.expires_at)
        )

    def was_computed_as(self, answer: Answer) -> bool:
        """Whether the answer's rows were written, and computed by the texts that it has now."""
        return self.error is None and self.fingerprint == answer.fingerprint

    def row(self) -> dict[str, Any]:
        """The state as a row of the table."""
        return {
            "cluster_id": _ALL_CLUSTERS,
            "answer": self.answer,
            "event_time": self.time,
            "fingerprint": self.fingerprint,
            "inputs": json.dumps(dict(self.inputs), sort_keys=True),
            "expires_at": self.expires_at,
            "error": self.error,
        }


def from_rows(rows: list[dict[str, Any]]) -> dict[str, AnswerState]:
    """States by answer."""
    return {
        row["answer"]: AnswerState(
            row["answer"],
            row["event_time"],
            row["fingerprint"],
            json.loads(row["inputs"]),
            row["expires_at"],
            row["error"],
        )
        for row in rows
    }


def to_rows(states: Mapping[str, AnswerState]) -> pa.Table:
    """The whole table."""
    rows = [states[name].row() for name in sorted(states)]
    return pa.Table.from_pylist(rows, schema=ANSWER_STATE.arrow)
