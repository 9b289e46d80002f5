"""Writes a plan entity by entity: records all changes, writes each, reads it back, records the end.

This holds even after kill -9 between any two steps: a record precedes each write, and the next run
checks for every record without an end whether its write was made. So no write of ours is ever
forgotten, and no write is made twice with a different effect.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count, groupby
from typing import Protocol

from quotaflow.pipelines.feedback.configs.change import RENEW, Change, expires_at
from quotaflow.pipelines.feedback.configs.cluster_facts import ClusterFacts
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.pipelines.feedback.ledger.journal import Journal
from quotaflow.pipelines.feedback.ledger.ledger import (
    DONE,
    MOVED,
    REFUSED,
    STARTED,
    UNDONE,
    Key,
    Ledger,
    Record,
)
from quotaflow.pipelines.feedback.ledger.outcome import (
    ALREADY_SET,
    OPEN,
    Outcome,
    is_made,
    previewed,
    resolve,
)
from quotaflow.pipelines.kafka import rights
from quotaflow.pipelines.kafka.cluster_state import UnansweredError

_READS, _PAUSE_S = 6, 0.1
_ENDS_PER_COMMIT = 50
_RECORD_WITHIN = timedelta(seconds=30)
"""Ends are recorded together. The last record of a killed run shows until when a write of it may
still land, so it must not be much older than the last write (outcome.MAY_LAND_FOR)."""


class Configs(Protocol):
    """The cluster's dynamic configs. All methods raise UnansweredError."""

    def read(self, entity: ConfigEntity) -> dict[str, str]:
        """What is set on an entity."""
        ...

    def refusal(self, changes: Sequence[Change]) -> str | None:
        """Why the cluster would refuse changes of one entity; None if it would not."""

    def write(self, changes: Sequence[Change]) -> str | None:
        """Make changes of one entity. Returns why they were refused; None if they were made."""

    def facts(self) -> ClusterFacts:
        """What the cluster says of itself now."""
        ...


Distrust = Callable[[Sequence[Change], Mapping[str, str]], str | None]
"""Why changes of an entity break a bound that no table can move, by what it has now; None if not.
Raises UnansweredError."""


@dataclass(frozen=True, slots=True)
class ChangeWriter:
    """One run of apply or restore.

    `stop_reason` says why nothing more may be written, `veto` why changes of one entity may not be
    written any more, and `distrust` the same by what the entity has just before its write.
    `on_step` is called after each step.
    `leased_elsewhere`: configs that another deployment has a lease of, and which.
    """

    configs: Configs
    journal: Journal
    run_id: str
    clock: Callable[[], datetime]
    stop_reason: Callable[[], str | None] = lambda: None
    veto: Callable[[Sequence[Change]], str | None] = lambda _: None
    distrust: Distrust = lambda *_: None
    on_step: Callable[[str], None] = lambda _: None
    sleep: Callable[[float], None] = time.sleep
    leased_elsewhere: Mapping[Key, str] = field(default_factory=dict)

    def finish(self, ledger: Ledger) -> list[Record]:
        """End the open records of earlier runs by what the cluster has now. Returns the ends.

        A record stays open if its entity does not answer, or its write may still be made.
        """
        ended = resolve_open(self.configs, ledger, self.clock)
        if ended:
            self.journal.add(ended)
            self.on_step("finished")
        return ended

    def run(self, plan_id: str, changes: Sequence[Change]) -> list[Outcome]:
        """Write changes in their order, except for those that are refused or no longer fit."""
        outcomes: list[Outcome] = []
        writable: list[list[Change]] = []
        for _, changed in groupby(changes, key=lambda change: change.entity):
            seen = preview(self.configs, list(changed), self.distrust)
            now, later = _parted([self._unless_leased(each) for each in seen])
            outcomes += now
            writable += [later] if later else []
        self.on_step("looked")
        records = _Records(self, plan_id)
        self.journal.add(
            [
                *(records.record(o.change, o.step, o.detail) for o in outcomes if o.step in _KEPT),
                *(records.record(change, STARTED) for part in writable for change in part),
            ]
        )
        self.on_step("begun")
        ends: list[Record] = []
        recorded_at = self.clock()
        for group in writable:
            written = self._write(group)
            self.on_step("written")
            ends += [records.record(o.change, *_end(o)) for o in written if o.step != OPEN]
            outcomes += written
            if len(ends) >= _ENDS_PER_COMMIT or self.clock() - recorded_at >= _RECORD_WITHIN:
                self._record(ends)
                ends, recorded_at = [], self.clock()
        if ends:
            self._record(ends)
        return outcomes

    def _record(self, ends: Sequence[Record]) -> None:
        self.journal.add(ends)
        self.on_step("recorded")

    def _unless_leased(self, outcome: Outcome) -> Outcome:
        """REFUSED if another deployment has a lease of the config."""
        why = self.leased_elsewhere.get(outcome.change.desired.key)
        if why is None or outcome.step != STARTED:
            return outcome
        return replace(outcome, step=REFUSED, detail=why)

    def _write(self, group: Sequence[Change]) -> list[Outcome]:
        stopped = self.stop_reason() or self.veto(group)
        if stopped is not None:
            return [Outcome(change, UNDONE, stopped) for change in group]
        try:
            # A write that somebody else made since the preview must not be overwritten.
            actual = self.configs.read(group[0].entity)
            stopped = self.distrust(group, actual)
        except UnansweredError as error:
            return [Outcome(change, UNDONE, _unreached(error)) for change in group]
        if stopped is not None:
            return [Outcome(change, UNDONE, stopped) for change in group]
        ended, writable = _parted([previewed(change, actual) for change in group])
        return [*ended, *(self._send(writable) if writable else [])]

    def _send(self, group: Sequence[Change]) -> list[Outcome]:
        written = [change for change in group if change.operation.name != RENEW]
        try:
            refusal = self.configs.write(written) if written else None
            self.on_step("sent")
        except UnansweredError as error:
            return [Outcome(change, OPEN, f"no answer: {error}") for change in group]
        if refusal is not None:
            return [Outcome(change, REFUSED, refusal) for change in group]
        return self._read_back(group)

    def _read_back(self, group: Sequence[Change]) -> list[Outcome]:
        """Read until the change shows, for some seconds: not all brokers learn of it at once."""
        actual: Mapping[str, str] = {}
        for attempt in range(_READS):
            try:
                actual = self.configs.read(group[0].entity)
            except UnansweredError as error:
                return [Outcome(change, OPEN, f"not read back: {error}") for change in group]
            if all(is_made(change, actual) for change in group):
                return [Outcome(change, DONE) for change in group]
            self.sleep(_PAUSE_S * 2**attempt)
        shown = [(change, is_made(change, actual)) for change in group]
        unseen = "it was taken, and does not show yet"
        return [Outcome(c, DONE) if is_done else Outcome(c, OPEN, unseen) for c, is_done in shown]


def resolve_open(configs: Configs, ledger: Ledger, clock: Callable[[], datetime]) -> list[Record]:
    """The ends of open records, as far as the cluster shows them. Nothing is written."""
    ended = []
    for record in ledger.open_records:
        try:
            actual = configs.read(record.entity).get(record.config_key)
        except UnansweredError:
            continue
        now = clock()
        how = resolve(
            record,
            actual,
            now - ledger.last_record_by_run[record.run_id],
            ledger.later_writes(record),
        )
        if how is not None:
            detail = f"an earlier run did not come to record it: {how[1]}"
            ended.append(replace(record, event_time=now, step=how[0], number=-1, detail=detail))
    return ended


def preview(
    configs: Configs, group: Sequence[Change], distrust: Distrust = lambda *_: None
) -> list[Outcome]:
    """BEGUN for each change of an entity that can be made, else why not. Nothing is written."""
    try:
        actual = configs.read(group[0].entity)
        why = distrust(group, actual)
        if why is not None:
            return [Outcome(change, REFUSED, why) for change in group]
        seen = [previewed(change, actual) for change in group]
        writable = [
            o.change for o in seen if o.step == STARTED and o.change.operation.name != RENEW
        ]
        refusal = configs.refusal(writable) if writable else None
    except UnansweredError as error:
        return [Outcome(c, UNDONE, _unreached(error)) for c in group]
    if refusal is None:
        return seen
    return [Outcome(o.change, REFUSED, refusal) if o.step == STARTED else o for o in seen]


def _unreached(error: UnansweredError) -> str:
    return f"not reached: {error}{rights.hint('apply', str(error))}"


_KEPT = (REFUSED, MOVED)


def _parted(seen: Sequence[Outcome]) -> tuple[list[Outcome], list[Change]]:
    """Outcomes that are final, and the changes to write. One entity is written whole or not."""
    if all(o.step in {STARTED, ALREADY_SET} for o in seen):
        ended = [o for o in seen if o.step == ALREADY_SET]
        return ended, [o.change for o in seen if o.step == STARTED]
    why = next(o.detail for o in seen if o.step not in {STARTED, ALREADY_SET})
    return [Outcome(o.change, UNDONE, why) if o.step == STARTED else o for o in seen], []


def _end(outcome: Outcome) -> tuple[str, str | None]:
    """The step and detail that end a change. A value that others set meanwhile is not ours."""
    if outcome.step == ALREADY_SET:
        return UNDONE, "it was so before it was written"
    return outcome.step, outcome.detail


@dataclass(slots=True)
class _Records:
    """Numbers the records of one run."""

    run: ChangeWriter
    plan_id: str
    numbers: Iterator[int] = field(default_factory=count)

    def record(self, change: Change, step: str, detail: str | None = None) -> Record:
        row, now = change.desired, self.run.clock()
        return Record(
            event_time=now,
            run_id=self.run.run_id,
            number=next(self.numbers),
            plan_id=self.plan_id,
            change_id=change.change_id,
            purpose=change.purpose,
            step=step,
            entity=change.entity,
            config_key=row.config_key,
            operation=change.operation.name,
            operand=change.operation.operand,
            prior_value=row.prior_value,
            config_value=change.value,
            expires_at=expires_at(change, now),
            reason=row.reason,
            evidence_table=row.evidence_table,
            evidence_key=row.evidence_key,
            detail=detail,
            observed=row.observed,
            direction=row.direction,
        )
