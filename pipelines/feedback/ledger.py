"""What this pipeline wrote to the cluster, told by its own records: what it holds, what is open.

The table config_changes is a journal: a record before each write and one after it. A write whose
end nobody recorded is open: the next run looks whether it was made.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from quotaflow.pipelines.feedback.change import (
    APPEND,
    APPLY,
    RENEW,
    RESTORE,
    SUBTRACT,
    is_same_value,
    list_entries,
)
from quotaflow.pipelines.feedback.desired_configs import ConfigEntity

BEGUN, DONE = "begun", "done"
UNDONE, REFUSED, MOVED, YIELDED = "undone", "refused", "moved", "yielded"
"""Steps that end a change. DONE: it was read back. UNDONE: it was never written. REFUSED: by the
broker. MOVED: the config was no longer what was planned on. YIELDED: somebody else changed what we
had written, so it is theirs."""


@dataclass(frozen=True, slots=True)
class Record:
    """One step of one change: a row of config_changes.

    `prior_value` and `config_value` are the whole config before and after; `operand` is the
    operation's. `run_id` tells one command from the next, `number` a record of it from the others.
    """

    event_time: datetime
    run_id: str
    number: int
    plan_id: str
    change_id: str
    purpose: str
    step: str
    entity: ConfigEntity
    config_key: str
    operation: str
    operand: str | None
    prior_value: str | None
    config_value: str | None
    expires_at: datetime | None
    reason: str
    evidence_table: str
    evidence_key: str
    detail: str | None = None

    @property
    def key(self) -> tuple[ConfigEntity, str]:
        """The config it is about."""
        return self.entity, self.config_key

    @property
    def write(self) -> tuple[str, str]:
        """The change of a run that it is a step of."""
        return self.run_id, self.change_id


@dataclass(frozen=True, slots=True)
class OwnedConfig:
    """A config we hold: what stood before us, what we wrote last, and until when.

    `named` tells when we named each entry of a list that is ours; others may stand beside them.
    `first` is the time of the oldest record that tells this.
    """

    prior_value: str | None
    value: str | None
    since: datetime
    expires_at: datetime | None
    record: Record
    first_recorded_at: datetime
    entry_times: Mapping[str, datetime] = field(default_factory=dict)

    @property
    def entries(self) -> frozenset[str]:
        """Those of a list that are ours."""
        return frozenset(self.entry_times)


@dataclass(frozen=True, slots=True)
class Baseline:
    """What stood before all that we wrote to a config, and the time of our oldest record of it."""

    prior_value: str | None
    first_recorded_at: datetime


@dataclass(frozen=True, slots=True)
class Ledger:
    """All records read together: what we hold, when we changed what, and what is still open.

    `done`: by plan id and change id, when it was written last. `ran`: by run id, the time of its
    newest record. `roots`: of writes, by run id and change id.
    """

    owned: Mapping[tuple[ConfigEntity, str], OwnedConfig] = field(default_factory=dict)
    last_writes: Mapping[tuple[ConfigEntity, str], Record] = field(default_factory=dict)
    open_records: tuple[Record, ...] = ()
    newest_at: datetime | None = None
    done_at: Mapping[tuple[str, str], datetime] = field(default_factory=dict)
    last_record_by_run: Mapping[str, datetime] = field(default_factory=dict)
    baselines: Mapping[tuple[str, str], Baseline] = field(default_factory=dict)

    @classmethod
    def from_records(cls, records: Iterable[Record]) -> "Ledger":
        """Read records, in whatever order they come."""
        owned: dict[tuple[ConfigEntity, str], OwnedConfig] = {}
        last: dict[tuple[ConfigEntity, str], Record] = {}
        roots: dict[tuple[str, str], Baseline] = {}
        begun: dict[tuple[str, str], Record] = {}
        in_order = sorted(records, key=lambda r: (r.event_time, r.run_id, r.number))
        for record in in_order:
            if record.step == BEGUN:
                earlier = [(of, roots[write]) for write, of in begun.items()]
                roots[record.write] = _root(record, owned.get(record.key), earlier)
                begun[record.write] = record
                continue
            begun.pop(record.write, None)
            if record.step == DONE and record.operation != RENEW:
                last[record.key] = record
            _hold(owned, record, roots)
        ended = {r.write for r in in_order if r.step != BEGUN}
        still = tuple(r for r in in_order if r.step == BEGUN and r.write not in ended)
        done = {(r.plan_id, r.change_id): r.event_time for r in in_order if r.step == DONE}
        ran = {r.run_id: r.event_time for r in in_order}
        newest = in_order[-1].event_time if in_order else None
        return cls(owned, last, still, newest, done, ran, roots)

    def restricted_to(self, keys: Collection[tuple[ConfigEntity, str]]) -> "Ledger":
        """The same, as if we held these configs and no others."""
        return replace(self, owned={key: of for key, of in self.owned.items() if key in keys})

    def assuming_open_done(self) -> "Ledger":
        """The same, as if every write without an end was made: what brokers say will tell."""
        return self.with_ends([replace(record, step=DONE) for record in self.open_records])

    def with_ends(self, ends: Collection[Record]) -> "Ledger":
        """What is held and open once writes that are open ended so."""
        owned, over = dict(self.owned), {record.write for record in ends}
        for record in ends:
            _hold(owned, record, self.baselines)
        still = tuple(record for record in self.open_records if record.write not in over)
        return replace(self, owned=owned, open_records=still)

    @property
    def needed_since(self) -> datetime | None:
        """The time of the oldest record that tells what is held or open; None: there is none."""
        times = [of.first_recorded_at for of in self.owned.values()] + [
            r.event_time for r in self.open_records
        ]
        return min(times, default=None)

    def changed_at(self, entity: ConfigEntity, config_key: str) -> datetime | None:
        """When we last changed this config; None: never."""
        record = self.last_writes.get((entity, config_key))
        return None if record is None else record.event_time

    def later_writes(self, record: Record) -> list[Record]:
        """What other runs wrote to the config of a record after it, or began to."""
        written = [self.last_writes[record.key]] if record.key in self.last_writes else []
        return [
            of
            for of in (*written, *self.open_records)
            if of.key == record.key
            and of.event_time > record.event_time
            and of.run_id != record.run_id
        ]

    def current_value(
        self, entity: ConfigEntity, config_key: str, seen: str | None, seen_at: datetime | None
    ) -> str | None:
        """The value a config has, as far as is known: what a snapshot saw, or we wrote since."""
        record = self.last_writes.get((entity, config_key))
        if record is None or (seen_at is not None and record.event_time < seen_at):
            return seen
        return record.config_value


def _root(
    record: Record, held: OwnedConfig | None, begun: Iterable[tuple[Record, Baseline]]
) -> Baseline:
    """What a write goes back to, by what stood when it was begun: it may end after later ones.

    `begun`: writes of which it was not known yet whether they were made.
    """
    if held is not None and is_same_value(record.config_key, held.value, record.prior_value):
        return Baseline(held.prior_value, held.first_recorded_at)
    for of, root in begun:
        is_leased = of.key == record.key and of.expires_at is not None
        if is_leased and is_same_value(record.config_key, of.config_value, record.prior_value):
            return root
    # What somebody else set in between is what stood before us now.
    return Baseline(record.prior_value, record.event_time)


def _hold(
    owned: dict[tuple[ConfigEntity, str], OwnedConfig],
    record: Record,
    roots: Mapping[tuple[str, str], Baseline],
) -> None:
    """Bring what we hold up to one record."""
    before = owned.get(record.key)
    if record.step == YIELDED or (record.step == DONE and record.purpose == RESTORE):
        owned.pop(record.key, None)
    elif record.step == DONE and record.operation == RENEW:
        if before is not None:
            owned[record.key] = replace(before, expires_at=record.expires_at)
    elif record.step == DONE and record.purpose == APPLY:
        held = _owned_after(before, record, roots.get(record.write) or _root(record, before, ()))
        if held is None:
            owned.pop(record.key, None)
        else:
            owned[record.key] = held


def _owned_after(before: OwnedConfig | None, record: Record, root: Baseline) -> OwnedConfig | None:
    if record.operation in {APPEND, SUBTRACT}:
        operand = list_entries(record.operand)
        named = (
            {e: at for e, at in before.entry_times.items() if e not in operand} if before else {}
        )
        if record.operation == APPEND:
            named |= dict.fromkeys(operand, record.event_time)
        if not named:
            return None
        expires = record.expires_at or (before.expires_at if before else None)
        told = (record.config_value, record.event_time, expires, record)
        # Of a list older records tell entries, also where somebody else changed it in between.
        return OwnedConfig(
            root.prior_value,
            *told,
            before.first_recorded_at if before else root.first_recorded_at,
            named,
        )
    if record.expires_at is None:  # removed, or written for good: nothing to give back
        return None
    value, since = record.config_value, record.event_time
    return OwnedConfig(
        root.prior_value, value, since, record.expires_at, record, root.first_recorded_at
    )
