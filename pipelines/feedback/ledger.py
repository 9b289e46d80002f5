"""What this pipeline wrote to the cluster, told by its own records: what it holds, what is open.

The table config_changes is a journal: a record before each write and one after it. A write whose
end nobody recorded is open: the next run looks whether it was made.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from quotaflow.pipelines.feedback.change import APPEND, APPLY, RENEW, RESTORE, SUBTRACT, parts, same
from quotaflow.pipelines.feedback.desired_configs import Entity

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
    entity: Entity
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
    def key(self) -> tuple[Entity, str]:
        """The config it is about."""
        return self.entity, self.config_key

    @property
    def write(self) -> tuple[str, str]:
        """The change of a run that it is a step of."""
        return self.run_id, self.change_id


@dataclass(frozen=True, slots=True)
class Owned:
    """A config we hold: what stood before us, what we wrote last, and until when.

    `named` tells when we named each entry of a list that is ours; others may stand beside them.
    `first` is the time of the oldest record that tells this.
    """

    prior_value: str | None
    value: str | None
    since: datetime
    expires_at: datetime | None
    record: Record
    first: datetime
    named: Mapping[str, datetime] = field(default_factory=dict)

    @property
    def entries(self) -> frozenset[str]:
        """Those of a list that are ours."""
        return frozenset(self.named)


@dataclass(frozen=True, slots=True)
class Root:
    """What stood before all that we wrote to a config, and the time of our oldest record of it."""

    prior_value: str | None
    first: datetime


@dataclass(frozen=True, slots=True)
class Ledger:
    """All records read together: what we hold, when we changed what, and what is still open.

    `done`: by plan id and change id, when it was written last. `ran`: by run id, the time of its
    newest record. `roots`: of writes, by run id and change id.
    """

    owned: Mapping[tuple[Entity, str], Owned] = field(default_factory=dict)
    last: Mapping[tuple[Entity, str], Record] = field(default_factory=dict)
    open: tuple[Record, ...] = ()
    newest: datetime | None = None
    done: Mapping[tuple[str, str], datetime] = field(default_factory=dict)
    ran: Mapping[str, datetime] = field(default_factory=dict)
    roots: Mapping[tuple[str, str], Root] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Iterable[Record]) -> "Ledger":
        """Read records, in whatever order they come."""
        owned: dict[tuple[Entity, str], Owned] = {}
        last: dict[tuple[Entity, str], Record] = {}
        roots: dict[tuple[str, str], Root] = {}
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

    def only(self, keys: Collection[tuple[Entity, str]]) -> "Ledger":
        """The same, as if we held these configs and no others."""
        return replace(self, owned={key: of for key, of in self.owned.items() if key in keys})

    def supposed(self) -> "Ledger":
        """The same, as if every write without an end was made: what brokers say will tell."""
        return self.ended([replace(record, step=DONE) for record in self.open])

    def ended(self, ends: Collection[Record]) -> "Ledger":
        """What is held and open once writes that are open ended so."""
        owned, over = dict(self.owned), {record.write for record in ends}
        for record in ends:
            _hold(owned, record, self.roots)
        still = tuple(record for record in self.open if record.write not in over)
        return replace(self, owned=owned, open=still)

    @property
    def needed_since(self) -> datetime | None:
        """The time of the oldest record that tells what is held or open; None: there is none."""
        times = [of.first for of in self.owned.values()] + [r.event_time for r in self.open]
        return min(times, default=None)

    def changed_at(self, entity: Entity, config_key: str) -> datetime | None:
        """When we last changed this config; None: never."""
        record = self.last.get((entity, config_key))
        return None if record is None else record.event_time

    def after(self, record: Record) -> list[Record]:
        """What other runs wrote to the config of a record after it, or began to."""
        written = [self.last[record.key]] if record.key in self.last else []
        return [
            of
            for of in (*written, *self.open)
            if of.key == record.key
            and of.event_time > record.event_time
            and of.run_id != record.run_id
        ]

    def standing(
        self, entity: Entity, config_key: str, seen: str | None, seen_at: datetime | None
    ) -> str | None:
        """The value a config has, as far as is known: what a snapshot saw, or we wrote since."""
        record = self.last.get((entity, config_key))
        if record is None or (seen_at is not None and record.event_time < seen_at):
            return seen
        return record.config_value


def _root(record: Record, held: Owned | None, begun: Iterable[tuple[Record, Root]]) -> Root:
    """What a write goes back to, by what stood when it was begun: it may end after later ones.

    `begun`: writes of which it was not known yet whether they were made.
    """
    if held is not None and same(record.config_key, held.value, record.prior_value):
        return Root(held.prior_value, held.first)
    for of, root in begun:
        is_leased = of.key == record.key and of.expires_at is not None
        if is_leased and same(record.config_key, of.config_value, record.prior_value):
            return root
    # What somebody else set in between is what stood before us now.
    return Root(record.prior_value, record.event_time)


def _hold(
    owned: dict[tuple[Entity, str], Owned],
    record: Record,
    roots: Mapping[tuple[str, str], Root],
) -> None:
    """Bring what we hold up to one record."""
    before = owned.get(record.key)
    if record.step == YIELDED or (record.step == DONE and record.purpose == RESTORE):
        owned.pop(record.key, None)
    elif record.step == DONE and record.operation == RENEW:
        if before is not None:
            owned[record.key] = replace(before, expires_at=record.expires_at)
    elif record.step == DONE and record.purpose == APPLY:
        held = _held(before, record, roots.get(record.write) or _root(record, before, ()))
        if held is None:
            owned.pop(record.key, None)
        else:
            owned[record.key] = held


def _held(before: Owned | None, record: Record, root: Root) -> Owned | None:
    if record.operation in {APPEND, SUBTRACT}:
        operand = parts(record.operand)
        named = {e: at for e, at in before.named.items() if e not in operand} if before else {}
        if record.operation == APPEND:
            named |= dict.fromkeys(operand, record.event_time)
        if not named:
            return None
        expires = record.expires_at or (before.expires_at if before else None)
        told = (record.config_value, record.event_time, expires, record)
        # Of a list older records tell entries, also where somebody else changed it in between.
        return Owned(root.prior_value, *told, before.first if before else root.first, named)
    if record.expires_at is None:  # removed, or written for good: nothing to give back
        return None
    value, since = record.config_value, record.event_time
    return Owned(root.prior_value, value, since, record.expires_at, record, root.first)
