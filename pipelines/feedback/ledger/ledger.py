"""The ledger: what this pipeline owns in the cluster, by its own records, and which are open.

The table config_changes is a journal: a record before each write and one after it. A write without
a recorded end is open: the next run checks whether it was made.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from quotaflow.pipelines.feedback.configs.change import (
    APPEND,
    APPLY,
    RENEW,
    RESTORE,
    SUBTRACT,
    is_same_value,
    list_entries,
)
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.udfs.rules.limit import RAISE, REVERT, TIGHTEN

STARTED, DONE = "begun", "done"
UNDONE, REFUSED, MOVED, YIELDED = "undone", "refused", "moved", "yielded"
"""Steps that end a change. DONE: it was read back. UNDONE: it was never written. REFUSED: a broker
refused it. MOVED: the config no longer had the value that was planned on. YIELDED: another login
changed our value, so the config is theirs."""
HALTED = "halted"
"""The cluster was worse after a run of plans, so that plans only restore."""
RELEASED = "released"
"""A person allows plans to change a config that another login set. Its value then is its baseline.
Nothing is written to the cluster."""


Key = tuple[ConfigEntity, str]
"""A config: its entity and key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One step of one change: a row of config_changes.

    `prior_value` and `config_value` are the whole config before and after; `operand` is the
    operation's. `run_id` identifies a command, `number` a record of it. `sequence` is its place
    among all records of a deployment, and `mac` proves both.
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
    operand: str | None = None
    prior_value: str | None = None
    config_value: str | None = None
    expires_at: datetime | None = None
    reason: str
    evidence_table: str
    evidence_key: str
    detail: str | None = None
    observed: float | None = None
    direction: str | None = None
    sequence: int | None = None
    deployment: str | None = None
    mac: str | None = None

    @property
    def key(self) -> Key:
        """The config: its entity and key."""
        return self.entity, self.config_key

    @property
    def write(self) -> tuple[str, str]:
        """The run and change that this is a step of."""
        return self.run_id, self.change_id


@dataclass(frozen=True, slots=True)
class OwnedConfig:
    """A config that we own: the value before us, the value we wrote last, and the lease.

    `entry_times`: when we added each entry of a list that is ours; others may be beside them.
    `first_recorded_at`: the time of the oldest record that this rests on.
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
        """The entries of a list that are ours."""
        return frozenset(self.entry_times)


@dataclass(frozen=True, slots=True)
class Baseline:
    """The value of a config before our first write, and the time of our oldest record of it."""

    prior_value: str | None
    first_recorded_at: datetime


@dataclass(frozen=True, slots=True)
class Ledger:
    """What all records add up to: configs we own, our last writes, and open records.

    `done_at`: by plan id and change id, when the change was written last. `last_record_by_run`: by
    run id. `baselines`: by run id and change id of a write. `yielded`: the record by which we left
    a config to another login, unless we wrote it since. `released`: the last release by a person.
    `applied`: done or open writes of plans, without renewals. `halts`: the record of the halt of
    each cluster that is halted. `limits`: for each config that a plan limited or raised, the ends
    of our writes to it and of its leases, in time order.
    """

    owned: Mapping[Key, OwnedConfig] = field(default_factory=dict)
    last_writes: Mapping[Key, Record] = field(default_factory=dict)
    open_records: tuple[Record, ...] = ()
    newest_at: datetime | None = None
    done_at: Mapping[tuple[str, str], datetime] = field(default_factory=dict)
    last_record_by_run: Mapping[str, datetime] = field(default_factory=dict)
    baselines: Mapping[tuple[str, str], Baseline] = field(default_factory=dict)
    yielded: Mapping[Key, Record] = field(default_factory=dict)
    released: Mapping[Key, Record] = field(default_factory=dict)
    applied: tuple[Record, ...] = ()
    halts: Mapping[str, Record] = field(default_factory=dict)
    limits: Mapping[Key, tuple[Record, ...]] = field(default_factory=dict)

    @classmethod
    def from_records(cls, records: Iterable[Record]) -> "Ledger":
        """Read records, in any order."""
        in_order = sorted(records, key=_order)
        builder = LedgerBuilder(cls())
        for record in in_order:
            builder.add(record)
        made = (*(r for r in in_order if r.step == DONE), *builder.all_open_records())
        released = {record.key: record for record in in_order if record.step == RELEASED}
        return replace(
            builder.ledger(),
            yielded=_yielded(in_order),
            released=released,
            applied=tuple(record for record in made if _is_applied(record)),
            halts=_halts(in_order),
            limits=_limits(in_order),
        )

    def restricted_to(self, keys: Collection[Key]) -> "Ledger":
        """The same, as if we owned these configs and no others."""
        return replace(self, owned={key: self.owned[key] for key in self.owned if key in keys})

    def assuming_open_done(self) -> "Ledger":
        """The same, as if every open write was made: a reading of the cluster shows if it was."""
        return self.with_ends([replace(record, step=DONE) for record in self.open_records])

    def with_ends(self, ends: Collection[Record]) -> "Ledger":
        """The same once open writes ended like this."""
        owned, over = dict(self.owned), {record.write for record in ends}
        for record in ends:
            _update_owned(owned, record, self.baselines)
        still = tuple(record for record in self.open_records if record.write not in over)
        return replace(self, owned=owned, open_records=still)

    @property
    def needed_since(self) -> datetime | None:
        """The time of the oldest record that owned or open configs rest on; None: no record."""
        times = [owned.first_recorded_at for owned in self.owned.values()] + [
            r.event_time for r in self.open_records
        ]
        return min(times, default=None)

    def changed_at(self, entity: ConfigEntity, config_key: str) -> datetime | None:
        """When we last changed this config; None: never."""
        record = self.last_writes.get((entity, config_key))
        return None if record is None else record.event_time

    def later_writes(self, record: Record) -> list[Record]:
        """The writes of other runs to the config of a record after it, open ones too."""
        written = [self.last_writes[record.key]] if record.key in self.last_writes else []
        return [
            other
            for other in (*written, *self.open_records)
            if other.key == record.key
            and other.event_time > record.event_time
            and other.run_id != record.run_id
        ]

    def current_value(
        self, entity: ConfigEntity, config_key: str, seen: str | None, seen_at: datetime | None
    ) -> str | None:
        """The value of a config as far as is known: from the last snapshot, or our write since."""
        record = self.last_writes.get((entity, config_key))
        if record is None or (seen_at is not None and record.event_time < seen_at):
            return seen
        return record.config_value


class LedgerBuilder:
    """A ledger that grows by one record at a time."""

    def __init__(self, start: Ledger) -> None:
        self.owned = dict(start.owned)
        self._last = dict(start.last_writes)
        self._baselines = dict(start.baselines)
        self._done = dict(start.done_at)
        self._ran = dict(start.last_record_by_run)
        self._newest = start.newest_at
        self._started: dict[Key, dict[tuple[str, str], Record]] = {}
        self._ended: set[tuple[str, str]] = set()
        for record in start.open_records:
            self._started.setdefault(record.key, {})[record.write] = record

    def add(self, record: Record) -> None:
        """Read one more record, later than those before."""
        self._newest = max(record.event_time, self._newest or record.event_time)
        self._ran[record.run_id] = record.event_time
        started = self._started.setdefault(record.key, {})
        if record.step == STARTED:
            earlier = [(begin, self._baselines[write]) for write, begin in started.items()]
            before = self.owned.get(record.key)
            self._baselines[record.write] = _baseline(record, before, earlier)
            started[record.write] = record
            return
        started.pop(record.write, None)
        self._ended.add(record.write)
        if record.step == DONE:
            self._done[record.plan_id, record.change_id] = record.event_time
            if record.operation != RENEW:
                self._last[record.key] = record
        _update_owned(self.owned, record, self._baselines)

    def open_records(self, key: Key) -> tuple[Record, ...]:
        """The open records of a config."""
        started = self._started.get(key, {}).values()
        return tuple(record for record in started if record.write not in self._ended)

    def open_parts(self, key: Key) -> tuple[tuple[Record, Baseline, datetime], ...]:
        """The open records of a config, each with its baseline and its run's last record."""
        return tuple(
            (record, self._baselines[record.write], self._ran[record.run_id])
            for record in self.open_records(key)
        )

    def last_write(self, key: Key) -> Record | None:
        """The last write of a config that was read back."""
        return self._last.get(key)

    def all_open_records(self) -> tuple[Record, ...]:
        """The open records of all configs, in their order."""
        still = [record for key in self._started for record in self.open_records(key)]
        return tuple(sorted(still, key=_order))

    def ledger(self) -> Ledger:
        """What all records add up to."""
        return Ledger(
            owned=self.owned,
            last_writes=self._last,
            open_records=self.all_open_records(),
            newest_at=self._newest,
            done_at=self._done,
            last_record_by_run=self._ran,
            baselines=self._baselines,
        )


def _order(record: Record) -> tuple[bool, int, datetime, str, int]:
    """By the place among a deployment's records, because a clock may have been wrong."""
    sequence = record.sequence
    order = record.event_time, record.run_id, record.number
    return (False, 0, *order) if sequence is None else (True, sequence, *order)


def _yielded(in_order: Iterable[Record]) -> dict[Key, Record]:
    """The yielded configs that we did not write since."""
    yielded: dict[Key, Record] = {}
    for record in in_order:
        if record.step == YIELDED:
            yielded[record.key] = record
        elif record.step == DONE and _is_applied(record):
            yielded.pop(record.key, None)
    return yielded


def _halts(in_order: Iterable[Record]) -> dict[str, Record]:
    halts: dict[str, Record] = {}
    for record in in_order:
        if record.step == HALTED:
            halts[record.entity.cluster_id] = record
        elif record.step == RELEASED:
            halted = halts.get(record.entity.cluster_id)
            if halted is not None and halted.key == record.key:
                del halts[record.entity.cluster_id]
    return halts


def _is_applied(record: Record) -> bool:
    return record.purpose == APPLY and record.operation != RENEW


def _limits(in_order: Iterable[Record]) -> dict[Key, tuple[Record, ...]]:
    writes: dict[Key, list[Record]] = {}
    for record in in_order:
        is_write = record.step == DONE and record.operation != RENEW
        # A restore, a write for another reason and somebody else's change end a limit.
        is_end = is_write or record.step in {YIELDED, RELEASED}
        if is_write and record.direction in {TIGHTEN, RAISE}:
            writes.setdefault(record.key, []).append(record)
        elif is_end and record.key in writes:
            writes[record.key].append(record)
    return {key: tuple(records) for key, records in writes.items()}


def _baseline(
    record: Record, owned: OwnedConfig | None, started: Iterable[tuple[Record, Baseline]]
) -> Baseline:
    """The baseline of a write, by the state when it started: it may end after later ones.

    `started`: earlier writes that were still open then.
    """
    if owned is not None and is_same_value(record.config_key, owned.value, record.prior_value):
        return Baseline(owned.prior_value, owned.first_recorded_at)
    for begin, root in started:
        is_leased = begin.key == record.key and begin.expires_at is not None
        if is_leased and is_same_value(record.config_key, begin.config_value, record.prior_value):
            return root
    # A value that somebody else set in between is the new baseline.
    return Baseline(record.prior_value, record.event_time)


def _update_owned(
    owned: dict[Key, OwnedConfig],
    record: Record,
    baselines: Mapping[tuple[str, str], Baseline],
) -> None:
    """Apply one record to the configs we own."""
    before = owned.get(record.key)
    # A restore in steps leaves a value of ours, with a lease, until its last step.
    is_step = record.direction == REVERT and record.expires_at is not None
    is_restored = record.purpose == RESTORE and not is_step
    if record.step in {YIELDED, RELEASED} or (record.step == DONE and is_restored):
        owned.pop(record.key, None)
    elif record.step == DONE and record.operation == RENEW:
        if before is not None:
            owned[record.key] = replace(before, expires_at=record.expires_at)
    elif record.step == DONE:
        baseline = baselines.get(record.write) or _baseline(record, before, ())
        after = _owned_after(before, record, baseline)
        if after is None:
            owned.pop(record.key, None)
        else:
            owned[record.key] = after


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
        written = (record.config_value, record.event_time, expires, record)
        # Older records tell which entries of a list are ours, even if others changed it since.
        return OwnedConfig(
            root.prior_value,
            *written,
            before.first_recorded_at if before else root.first_recorded_at,
            named,
        )
    if record.expires_at is None:  # removed, or without a lease: nothing to restore
        return None
    value, since = record.config_value, record.event_time
    return OwnedConfig(
        root.prior_value, value, since, record.expires_at, record, root.first_recorded_at
    )
