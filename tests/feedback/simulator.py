"""A cluster of offenders, innocents, operators and attackers, beside the loop of plan and restore.

The cluster is a dictionary. Plans, guards, ledger, writer and restore are the product's own. The
same seed gives the same run. Every write is checked when it is made: see `Simulation.check`.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from quotaflow.pipelines.feedback.configs.change import APPLY, SET, Change
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity, DesiredConfig
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection
from quotaflow.pipelines.feedback.ledger.journal import Journal
from quotaflow.pipelines.feedback.ledger.leases import LeaseBook, read_book
from quotaflow.pipelines.feedback.ledger.ledger import DONE, YIELDED, Key, Ledger, Record
from quotaflow.pipelines.feedback.ledger.signed_journal import open_journal
from quotaflow.pipelines.feedback.ledger.signing import Signer
from quotaflow.pipelines.feedback.ledger.trust import TrustedLedger, judge
from quotaflow.pipelines.feedback.planning import holds, restore_plan
from quotaflow.pipelines.feedback.planning.blast_radius import BlastRadius
from quotaflow.pipelines.feedback.planning.guards import REQUESTS, RESULTS, SNAPSHOT, PlanPolicy
from quotaflow.pipelines.feedback.planning.holds import Alteration, SeenConfig
from quotaflow.pipelines.feedback.planning.plan import plan
from quotaflow.pipelines.feedback.planning.restore_plan import LaterWriter
from quotaflow.schemas.configs import (
    CONNECTION_CREATION_RATE,
    PRODUCER_ID_EXPIRATION_MS,
    PRODUCER_IDS_RATE,
)
from quotaflow.udfs.rules.limit import LimitBounds

from ..delta_tables import NOON
from ..pipelines.feedback.fake_configs import DictConfigs, ListJournal, ListTopic, applying

CYCLE, DEAD_TIME = timedelta(minutes=10), timedelta(minutes=20)
PERIOD = 3
"""Cycles over which an offence is measured, plan.offence_period_s: in half of them it must be."""
LEASE = timedelta(hours=1)
DAY = timedelta(days=1)
MAX_ENTITIES, MAX_ENTITIES_PER_DAY = 5, 20
_PLAIN = Connection("b:9092")


@dataclass
class Offender:
    """A loop that makes producers, each with a connection and an id, at some brokers.

    `pace`: ids/s without a limit. `offend`: ids/s of a cycle under a limit of each broker.
    `ends`: the cycle from which on it stopped. `stranger_comes`: the cycle from which on another
    user is at the address. `quota`: ids/s that it may take at a broker. `kind`: what limits
    it, one of KINDS. A broker whose heap producer ids fill counts its offence in the same number:
    its expiration is in units of UNITS.
    """

    name: str
    plant: str
    pace: float
    offend: Callable[["Offender", float, int, random.Random], float]
    ends: int
    quota: int = 1
    stranger_comes: int | None = None
    kind: str = "ip"

    @property
    def entity(self) -> ConfigEntity:
        """Its address, or, where the cluster takes a rate of ids, its user or all users."""
        names = {"default": None, "broker": "1"}
        entity_type = self.kind if self.kind in {"ip", "broker"} else "user"
        return ConfigEntity("c1", entity_type, names.get(self.kind, self.name))

    @property
    def config_key(self) -> str:
        """The config that limits it."""
        keys = {"ip": CONNECTION_CREATION_RATE, "broker": PRODUCER_ID_EXPIRATION_MS}
        return keys.get(self.kind, PRODUCER_IDS_RATE).key

    @property
    def unit(self) -> int:
        """What one of its offence is in the unit of its config."""
        return UNITS.get(self.kind, 1)

    @property
    def key(self) -> Key:
        """Its config."""
        return self.entity, self.config_key

    def now(self, limit: float | None, cycle: int, dice: random.Random) -> float:
        """Ids/s under a limit of connections, or of ids, at each broker."""
        allowed = math.inf if limit is None else limit
        return self.offend(self, allowed, cycle, dice)


def _steady(one: Offender, allowed: float, _cycle: int, _: random.Random) -> float:
    return min(one.pace, allowed)


def _many_brokers(one: Offender, allowed: float, _cycle: int, _: random.Random) -> float:
    return min(one.pace, 3 * allowed)


def _no_effect(one: Offender, _allowed: float, _cycle: int, _: random.Random) -> float:
    return one.pace


def _worse(one: Offender, allowed: float, _cycle: int, _: random.Random) -> float:
    return one.pace if allowed == math.inf else 2 * one.pace


def _flapping(one: Offender, allowed: float, cycle: int, _: random.Random) -> float:
    """Two cycles of seven."""
    return min(one.pace, allowed) if cycle % 7 < 2 else 0.0


def _noisy(one: Offender, allowed: float, _cycle: int, dice: random.Random) -> float:
    return min(one.pace * dice.uniform(0.3, 1.7), allowed)


KINDS = ("ip", "user", "default", "broker")
"""What limits an offender: its address, its user, the default of all users, or an expiration."""
UNITS = {"broker": 21_600_000}
"""An expiration of six hours, the least, for each that an offender takes."""
PLANTS = {
    "steady": _steady,
    "at three brokers": _many_brokers,
    "no effect": _no_effect,
    "worse when limited": _worse,
    "flapping": _flapping,
    "noisy": _noisy,
}


@dataclass(frozen=True)
class Write:
    """A write of the product: the values before and after, and what applied before."""

    at: datetime
    change: Change
    before: str | None
    after: str | None
    applied: float | None


@dataclass
class Cluster(DictConfigs):
    """Configs that remember who set each key last."""

    setters: dict[Key, Alteration] = field(default_factory=dict)
    of_people: dict[Key, str | None] = field(default_factory=dict)

    def by_hand(self, key: Key, value: str | None, now: datetime) -> None:
        """An operator sets or removes a config."""
        configs = self.configs.setdefault(key[0], {})
        if value is None:
            configs.pop(key[1], None)
        else:
            configs[key[1]] = value
        operation = "DELETE" if value is None else SET
        self.setters[key] = Alteration(now, "User:oncall (kafka-configs)", operation, value)
        self.of_people[key] = value


@dataclass
class Simulation:
    """One run of the loop, a cycle every ten minutes."""

    offenders: Sequence[Offender]
    dice: random.Random
    cluster: Cluster = field(default_factory=Cluster)
    journal: ListJournal = field(default_factory=ListJournal)
    """The rows of config_changes: who can write tables can change them."""
    topic: ListTopic = field(default_factory=ListTopic)
    deployment: str = "one"
    is_signed: bool = True
    """Without signatures a run takes a tenth of the time: rules need none."""
    now: datetime = NOON
    cycle: int = 0
    writes: list[Write] = field(default_factory=list)
    limited: dict[str, int] = field(default_factory=dict)
    offences: dict[str, list[float]] = field(default_factory=dict)

    @property
    def signer(self) -> Signer:
        """Signs with the key that all deployments share."""
        return Signer((b"key",), self.deployment)

    @property
    def book(self) -> LeaseBook:
        """The leases of the cluster."""
        return read_book(self.topic.reader().read(), self.signer, "c1")

    @property
    def trusted(self) -> TrustedLedger:
        """What of the rows and leases is believed."""
        if not self.is_signed:
            return TrustedLedger(self.journal.ledger)
        return judge(self.journal.records, self.signer, self.book, "c1")

    @property
    def ledger(self) -> Ledger:
        """What the rows and leases that are believed add up to."""
        return self.trusted.ledger

    def run(self, cycles: int, operator: Callable[["Simulation"], None] = lambda _: None) -> None:
        """Go on for some cycles; `operator` acts in each before the product does."""
        for _ in range(cycles):
            operator(self)
            self.step()

    def step(self) -> None:
        """One cycle: plan, apply, restore."""
        self._apply(self.rows())
        self._restore()
        for one in self.offenders:
            is_limited = self.value(one) is not None
            self.limited[one.name] = self.limited.get(one.name, 0) + is_limited
        self.now += CYCLE
        self.cycle += 1

    def value(self, one: Offender) -> str | None:
        """The limit that the offender has in the cluster."""
        return self.cluster.configs.get(one.entity, {}).get(one.config_key)

    def rows(self) -> list[DesiredConfig]:
        """The rows of desired_configs after one more cycle of ids."""
        return [row for one in self.offenders if (row := self._row(one)) is not None]

    def _row(self, one: Offender) -> DesiredConfig | None:
        value = self.value(one)
        applied = None if value is None else float(value) / one.unit
        offences = self.offences.setdefault(one.name, [])
        goes_on = self.cycle < one.ends
        offences.append(one.now(applied, self.cycle, self.dice) if goes_on else 0.0)
        recent = offences[-PERIOD:]
        offending = sum(offence > one.quota for offence in recent)
        if not offending:
            return None
        short = "offence_too_short" if 2 * offending < PERIOD else None
        row = limit_columns(one, sum(recent) / PERIOD, value, self.now)
        return replace(row, blocked_reason="other_principals" if self.is_shared(one) else short)

    def is_shared(self, one: Offender) -> bool:
        """Whether another user is at its address now."""
        return one.stranger_comes is not None and self.cycle >= one.stranger_comes

    def _policy(self, rows: Sequence[DesiredConfig]) -> PlanPolicy:
        seen = {row.key: SeenConfig(row.prior_value, self.now) for row in rows}
        return PlanPolicy(
            lease_s=int(LEASE.total_seconds()),
            inputs_at=dict.fromkeys((REQUESTS, RESULTS, SNAPSHOT), self.now),
            holds=holds.holds(seen, self.cluster.setters, self.ledger),
            blast_radius=BlastRadius(
                MAX_ENTITIES, MAX_ENTITIES_PER_DAY, dead_time=DEAD_TIME, results_at=self.now
            ),
            limits=LimitBounds(settle=DEAD_TIME + PERIOD * CYCLE),
            default_quotas=True,
            strangers={o.key: "User:dora" for o in self.offenders if self.is_shared(o)},
        )

    def _apply(self, rows: Sequence[DesiredConfig]) -> None:
        trusted = self.trusted
        if trusted.unstored or trusted.unleased.owned:
            return  # as apply does, until a person adopts
        others = self.book.others if self.is_signed else {}
        free = [row for row in rows if row.key not in others]
        made = plan(free, self.now, self._policy(free), _PLAIN, trusted.ledger)
        self._write(made.changes, f"plan{self.cycle}")

    def _restore(self) -> None:
        owned = restore_plan.expired(self.ledger, self.now)
        actual = {key[0]: self.cluster.read(key[0]) for key in owned}
        setters = {
            key: LaterWriter(last.writer, last.operation, last.config_value)
            for key, last in self.cluster.setters.items()
            if key in owned and last.altered_at > owned[key].since
        }
        restore = restore_plan.plan_restore(owned, actual, setters, _PLAIN)
        yielded = [_yielded(e.owned.record, self.now, n) for n, e in enumerate(restore.yielded)]
        self.store().add(yielded)
        self._write(restore.changes, f"restore{self.cycle}")

    def _write(self, changes: Sequence[Change], run_id: str) -> None:
        entities = {c.entity for c in changes if c.purpose == APPLY and c.operation.name == SET}
        assert len(entities) <= MAX_ENTITIES
        before = {
            c.desired.key: self.cluster.read(c.entity).get(c.desired.config_key) for c in changes
        }
        if not changes:
            return
        run_id = f"{self.deployment}-{run_id}"
        writer = applying(self.cluster, self.store(), run_id, lambda: self.now)
        outcomes = writer.run("p", changes)
        for outcome in outcomes:
            key = outcome.change.desired.key
            after = self.cluster.read(key[0]).get(key[1])
            if outcome.step == DONE and after != before[key]:
                self._check(Write(self.now, outcome.change, before[key], after, None))

    def store(self) -> Journal:
        """The journal of one run of a command."""
        if not self.is_signed:
            return self.journal
        topic, records = self.topic.reader(), self.journal.records
        return open_journal(records, topic.read(), self.signer, "c1", topic, tables=self.journal)

    def _check(self, write: Write) -> None:
        key = write.change.desired.key
        # Nobody else is ever written.
        assert any(each.entity == key[0] for each in self.offenders)
        applied = None if write.before is None else float(write.before)
        self.writes.append(Write(write.at, write.change, write.before, write.after, applied))
        if write.change.purpose != APPLY:
            return
        assert write.after is not None
        value = float(write.after)
        assert applied is None or value <= applied, "a plan loosened a limit"
        assert value >= 1, "a value below the floor"
        assert key not in self.cluster.of_people, "a plan wrote what a person set"
        entities = {
            w.change.entity
            for w in self.writes
            if w.change.purpose == APPLY and self.now - w.at < DAY
        }
        assert len(entities) <= MAX_ENTITIES_PER_DAY, "more than the budget of a day"


def limit_columns(one: Offender, offence: float, value: str | None, now: datetime) -> DesiredConfig:
    """A row that limits an offender, with the columns that the view gives it."""
    tables = {"default": "default_quota_proposals", "broker": "producer_id_heap"}
    table = tables.get(one.kind, "producer_id_offenders")
    return DesiredConfig(
        cluster_id="c1",
        entity_type=one.entity.entity_type,
        entity_name=one.entity.entity_name,
        config_key=one.config_key,
        config_value=f"{one.quota * one.unit}",
        prior_value=value,
        reason="it makes producer ids",
        evidence_table=table,
        evidence_key=f"principal=User:{one.name} client_address={one.name}",
        since=now - timedelta(hours=1),
        priority=10,
        observed=offence,
        least_value=float(one.unit) if one.kind in {"ip", "broker"} else None,
        quota_in_force=86_400_000.0 if one.kind == "broker" else None,
    )


def _yielded(record: Record, now: datetime, number: int) -> Record:
    return replace(record, event_time=now, run_id=f"y{now}", number=number, step=YIELDED)


def offender(dice: random.Random, plant: str, number: int, ends: int) -> Offender:
    """An offender of a plant, with drawn magnitudes."""
    return Offender(
        name=f"10.0.{[*PLANTS].index(plant)}.{number}",
        plant=plant,
        pace=10 ** dice.uniform(1.4, 3.0),
        offend=PLANTS[plant],
        ends=ends,
        quota=dice.choice([1, 1, 4, 10]),
    )
