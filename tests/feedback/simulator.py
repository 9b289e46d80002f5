"""A cluster of offenders, innocents, operators and attackers, beside the loop of plan and restore.

The cluster is a dictionary. Plans, guards, ledger, writer and restore are the product's own. The
same seed gives the same run. Every write is checked when it is made: see `Simulation.check`.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from quotaflow.pipelines.feedback import holds, restore_plan
from quotaflow.pipelines.feedback.blast_radius import BlastRadius
from quotaflow.pipelines.feedback.change import APPLY, SET, Change
from quotaflow.pipelines.feedback.change_writer import Journal
from quotaflow.pipelines.feedback.desired_configs import ConfigEntity, DesiredConfig
from quotaflow.pipelines.feedback.guards import REQUESTS, RESULTS, SNAPSHOT, PlanPolicy
from quotaflow.pipelines.feedback.holds import Alteration, SeenConfig
from quotaflow.pipelines.feedback.kafka_configs import Connection
from quotaflow.pipelines.feedback.leases import LeaseBook, read_book
from quotaflow.pipelines.feedback.ledger import DONE, YIELDED, Ledger, Record
from quotaflow.pipelines.feedback.plan import plan
from quotaflow.pipelines.feedback.restore_plan import LaterWriter
from quotaflow.pipelines.feedback.signed_journal import open_journal
from quotaflow.pipelines.feedback.signing import Signer
from quotaflow.pipelines.feedback.trust import TrustedLedger, judge
from quotaflow.udfs.rules.quota_step import TIGHTEN, StepLimits

from ..pipelines.feedback.fake_configs import NOON, DictConfigs, ListJournal, ListTopic, applying

KEY = "producer_byte_rate"
CYCLE, DEAD_TIME = timedelta(minutes=10), timedelta(minutes=20)
LEASE = timedelta(hours=1)
EVIDENCE_WINDOW = 2 * DEAD_TIME
"""How long after its last offence a program is still proposed."""
DAY = timedelta(days=1)
MAX_ENTITIES, MAX_ENTITIES_PER_DAY = 5, 20
FLOOR_SHARE, FLOOR_BYTES = 0.5, 65_536.0
_PLAIN = Connection("b:9092")
_WEEK_S = 7 * 86_400.0


@dataclass
class Offender:
    """A program of a user that makes producer ids, and what it uses at each broker, in bytes/s.

    `offend`: the offence that the program makes under a limit of its busiest broker's usage, 1 for
    all of it. `ends`: the cycle from which on it does no harm any more.
    """

    name: str
    plant: str
    usage: dict[int, float]
    offence: float
    offend: Callable[["Offender", float, random.Random], float]
    ends: int
    inherited: float | None = None

    @property
    def entity(self) -> ConfigEntity:
        """The user and client id."""
        return ConfigEntity("c1", "user", self.name, "loop")

    @property
    def p99(self) -> float:
        """Usage at the busiest broker, in bytes/s."""
        return max(self.usage.values())

    @property
    def floor(self) -> float:
        """The least value that its quota may have, in bytes/s."""
        return max(FLOOR_BYTES, FLOOR_SHARE * self.median)

    @property
    def median(self) -> float:
        """Median usage at the busiest broker, in bytes/s."""
        return 0.4 * self.p99

    def now(self, limit: float | None, dice: random.Random) -> float:
        """Its offence under a limit, in ids/s."""
        allowed = 1.0 if limit is None else min(1.0, limit / self.p99)
        return self.offend(self, allowed, dice)


def _right(one: Offender, allowed: float, _: random.Random) -> float:
    return one.offence * allowed


def _no_effect(one: Offender, _allowed: float, _: random.Random) -> float:
    return one.offence


def _worse(one: Offender, allowed: float, _: random.Random) -> float:
    return one.offence / allowed


def _intermittent(one: Offender, _allowed: float, dice: random.Random) -> float:
    return one.offence if dice.random() < 0.3 else 0.0


def _noisy(one: Offender, allowed: float, dice: random.Random) -> float:
    return one.offence * allowed * dice.uniform(0.7, 1.3)


PLANTS = {
    "right": _right,
    "no effect": _no_effect,
    "worse when limited": _worse,
    "intermittent": _intermittent,
    "noisy": _noisy,
    "skewed brokers": _right,
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

    setters: dict[restore_plan.Key, Alteration] = field(default_factory=dict)
    of_people: dict[restore_plan.Key, str | None] = field(default_factory=dict)

    def by_hand(self, key: restore_plan.Key, value: str | None, now: datetime) -> None:
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
        rows = [row for one in self.offenders if (row := self._row(one)) is not None]
        self._apply(rows)
        self._restore()
        for one in self.offenders:
            self.limited[one.name] = self.limited.get(one.name, 0) + (self.value(one) is not None)
        self.now += CYCLE
        self.cycle += 1

    def value(self, one: Offender) -> str | None:
        """The quota that the offender has in the cluster."""
        return self.cluster.configs.get(one.entity, {}).get(KEY)

    def _row(self, one: Offender) -> DesiredConfig | None:
        value = self.value(one)
        applied = one.inherited if value is None else float(value)
        offences = self.offences.setdefault(one.name, [])
        offences.append(one.now(applied, self.dice) if self.cycle < one.ends else 0.0)
        if max(offences[-(EVIDENCE_WINDOW // CYCLE) :]) <= 1.0:
            return None
        recent = offences[-(DEAD_TIME // CYCLE) :]
        return DesiredConfig(
            cluster_id="c1",
            entity_type="user",
            entity_name=one.name,
            entity_client_id="loop",
            config_key=KEY,
            config_value=None,
            prior_value=value,
            reason="it makes producer ids",
            evidence_table="producer_id_offenders",
            evidence_key=one.name,
            since=self.now - timedelta(hours=1),
            priority=10,
            direction=TIGHTEN,
            observed=sum(recent) / len(recent),
            usage_p99=one.p99,
            usage_median=one.median,
            history_s=_WEEK_S,
            quota_in_force=applied,
            quota_level=4 if one.inherited is not None and value is None else 1,
        )

    def _policy(self, rows: Sequence[DesiredConfig]) -> PlanPolicy:
        seen = {row.key: SeenConfig(row.prior_value, self.now) for row in rows}
        return PlanPolicy(
            lease_s=int(LEASE.total_seconds()),
            inputs_at=dict.fromkeys((REQUESTS, RESULTS, SNAPSHOT), self.now),
            holds=holds.holds(seen, self.cluster.setters, self.ledger),
            blast_radius=BlastRadius(
                MAX_ENTITIES, MAX_ENTITIES_PER_DAY, dead_time=DEAD_TIME, results_at=self.now
            ),
            step_limits=StepLimits(dead_time=DEAD_TIME, median_share=FLOOR_SHARE),
            evidence_window=EVIDENCE_WINDOW,
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
        topic = self.topic.reader()
        return open_journal(self.journal.records, self.signer, "c1", topic, self.journal)

    def _check(self, write: Write) -> None:
        key = write.change.desired.key
        (one,) = (o for o in self.offenders if o.entity == key[0])  # nobody else is ever written
        applied = one.inherited if write.before is None else float(write.before)
        self.writes.append(Write(write.at, write.change, write.before, write.after, applied))
        if write.change.purpose != APPLY:
            return
        assert write.after is not None
        value = float(write.after)
        assert applied is None or value <= applied, "a plan loosened a quota"
        assert value >= one.floor or value == applied, "a value below the floor"
        assert key not in self.cluster.of_people, "a plan wrote what a person set"
        entities = {
            (w.at, w.change.entity)
            for w in self.writes
            if w.change.purpose == APPLY and self.now - w.at < DAY
        }
        assert len(entities) <= MAX_ENTITIES_PER_DAY, "more than the budget of a day"


def _yielded(record: Record, now: datetime, number: int) -> Record:
    return replace(record, event_time=now, run_id=f"y{now}", number=number, step=YIELDED)


def offender(dice: random.Random, plant: str, number: int, ends: int) -> Offender:
    """An offender of a plant, with drawn magnitudes."""
    busiest = 10 ** dice.uniform(4.0, 8.0)
    others = 1e-4 if plant == "skewed brokers" else dice.uniform(0.2, 1.0)
    return Offender(
        name=f"{plant.replace(' ', '-')}-{number}",
        plant=plant,
        usage={1: busiest * others, 2: busiest, 3: busiest * others},
        offence=10 ** dice.uniform(0.5, 3.0),
        offend=PLANTS[plant],
        ends=ends,
        inherited=dice.choice([None, None, busiest * dice.uniform(0.5, 4.0)]),
    )
