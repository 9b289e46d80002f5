"""What the head of an answer's file says (`schemas/derived.py`), and its lookbacks.

    -- lookbacks:
    --   fetch_sizes: 7 d
    --   quota_usage: 7 d, quotas.advice_days * 1 d
    --   group_commits: at most 1 d
    -- expiry: SELECT min(event_time) AS expires_at FROM metric_alert_events

An answer reads so much of a table before its newest row; tables that are not named it reads whole.
After the comma is a setting, and what one of it is: it counts where a snapshot stored it. No row
before a lookback changes the answer, except for `at most`: there the text takes all that it reads,
as the longest pause of a producer, and the lookback says how long that is remembered.
`expiry` is SQL for the time from which the rows differ though no input changed. The `*` or
`table.*` of a SELECT at the start of a line is the columns of the head that this SELECT does not
make itself.
A proposal is an answer with a head of its own (`schemas/proposal_head.py`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from quotaflow.schemas import derived, head, programs, proposal_head
from quotaflow.schemas.head import HeadError
from quotaflow.schemas.table import Table

KIND = "answer"
_FIELDS = (*derived.DESCRIBED, *derived.STORED, "lookbacks", "expiry", "columns")
_OPTIONAL = (*derived.OPTIONAL, "lookbacks", "expiry")
_LOOKBACK = re.compile(r"(\w+): (at most )?([^,]+)(?:, ([\w.]+) \* (.+))?")


@dataclass(frozen=True, slots=True)
class Lookback:
    """How far back an answer reads an input, before the newest row of that input.

    `setting` names a setting with a number of `unit`, which counts where a snapshot stored it. With
    `is_memory` rows from before it would change the answer, which remembers no more.
    """

    default: timedelta
    setting: str | None = None
    unit: timedelta = timedelta(seconds=1)
    is_memory: bool = False

    def length(self, settings: Mapping[str, float]) -> timedelta:
        """The time to read, by the settings of the last snapshot."""
        stored = settings.get(self.setting) if self.setting else None
        return self.default if stored is None else stored * self.unit


@dataclass(frozen=True, slots=True)
class AnswerHead:
    """One answer: its table, its text in Spark's SQL, and how far back it reads each input."""

    table: Table
    sql: str
    lookbacks: Mapping[str, Lookback]
    expiry: str | None


def parse(name: str, text: str, described: derived.Described) -> AnswerHead:
    """The answer of a file. Raises HeadError."""
    lines, sql = head.split(text)
    try:
        is_proposal = lines[:1] == [f"kind: {proposal_head.KIND}"]
        fields = proposal_head.fields(lines) if is_proposal else _fields(lines)
        table = derived.table(name, fields, described)
        sql = (
            proposal_head.written_out(sql, fields, table)
            if is_proposal
            else head.without_star(sql, table.column_names)
        )
        return AnswerHead(
            table,
            programs.expanded(sql),
            dict(map(_lookback, head.entries("lookbacks", fields.get("lookbacks", [""])))),
            head.text(fields.get("expiry", [])) or None,
        )
    except HeadError as error:
        raise HeadError(f"answer {name}: {error}") from None


def _fields(lines: list[str]) -> head.Fields:
    fields = head.fields(lines, _FIELDS, _OPTIONAL)
    head.one_of("kind", fields["kind"], (KIND, proposal_head.KIND))
    return fields


def _lookback(entry: str) -> tuple[str, Lookback]:
    match = _LOOKBACK.fullmatch(entry)
    if not match:
        raise HeadError(
            f"expected 'table: [at most] time' or 'table: time, setting * time', got: {entry}"
        )
    table, memory, default, setting, unit = match.groups()
    lookback = Lookback(derived.duration(default), is_memory=memory is not None)
    if setting is None:
        return table, lookback
    return table, replace(lookback, setting=setting, unit=derived.duration(unit))
