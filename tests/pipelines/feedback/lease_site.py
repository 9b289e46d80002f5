"""A deployment on a made-up cluster, with its topic of leases and its tables in memory."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta

from quotaflow.pipelines.feedback.configs.change import Change
from quotaflow.pipelines.feedback.configs.desired_configs import DesiredConfig
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection
from quotaflow.pipelines.feedback.ledger import trust
from quotaflow.pipelines.feedback.ledger.leases import Lease, LeaseBook, read_book
from quotaflow.pipelines.feedback.ledger.ledger import DONE, YIELDED, Key, Ledger
from quotaflow.pipelines.feedback.ledger.signed_journal import SignedJournal, open_journal
from quotaflow.pipelines.feedback.ledger.signing import Signer
from quotaflow.pipelines.feedback.ledger.trust import TrustedLedger
from quotaflow.pipelines.feedback.planning import restore_plan
from quotaflow.pipelines.feedback.planning.guards import SNAPSHOT, PlanPolicy
from quotaflow.pipelines.feedback.writing import exclusive_section
from quotaflow.pipelines.feedback.writing.change_writer import ChangeWriter

from .fake_configs import Clock, DictConfigs, ListJournal, ListTopic, desired, planned

KEY = "producer_byte_rate"
LIST = "leader.replication.throttled.replicas"
USERS = ("eve", "zoe")
HERE = Signer((b"k" * 32,), "here")
THERE = Signer((b"k" * 32,), "there")
STRANGER = Signer((b"s" * 32,), "stranger")


@dataclass
class Site:
    """A cluster, its topic of leases, and the warehouse of one deployment."""

    signer: Signer = HERE
    configs: DictConfigs = field(default_factory=DictConfigs)
    topic: ListTopic = field(default_factory=ListTopic)
    tables: ListJournal = field(default_factory=ListJournal)
    clock: Clock = field(default_factory=Clock)
    runs: int = 0

    def beside(self, signer: Signer) -> "Site":
        """Another deployment on the same cluster."""
        return Site(signer, self.configs, self.topic, clock=self.clock, runs=100)

    @property
    def book(self) -> LeaseBook:
        return read_book(self.topic.items, self.signer, "c1")

    def trust(self) -> TrustedLedger:
        return trust.judge(self.tables.records, self.signer, self.book, "c1")

    def begin(
        self, on_step: Callable[[str], None], *, with_tables: bool = True
    ) -> tuple[ChangeWriter, SignedJournal, Ledger]:
        """What a section does first."""
        self.runs += 1
        self.topic.read_to = 0
        stored = self.tables if with_tables else None
        records = self.tables.records if with_tables else []
        signed = open_journal(
            records, self.topic.read(), self.signer, "c1", self.topic, tables=stored
        )
        ledger = self._ledger(signed, with_tables=with_tables)
        writer = ChangeWriter(
            self.configs,
            signed,
            f"r{self.runs}",
            self.clock,
            on_step=on_step,
            sleep=lambda _: None,
            leased_elsewhere=exclusive_section.leased_elsewhere(signed.book),
        )
        writer.finish(ledger)
        return writer, signed, self._ledger(signed, with_tables=with_tables)

    def _ledger(self, signed: SignedJournal, *, with_tables: bool) -> Ledger:
        records = self.tables.records if with_tables else []
        return trust.judge(records, self.signer, signed.book, "c1").ledger

    def apply(
        self, value: int, *names: str, on_step: Callable[[str], None] = lambda _: None
    ) -> list[str]:
        writer, _, ledger = self.begin(on_step)
        rows = [self._row(name, value) for name in names or USERS]
        seen = PlanPolicy(lease_s=600, max_step_factor=1e9, inputs_at={SNAPSHOT: self.clock()})
        changes = planned(*rows, bounds=seen, ledger=ledger, now=self.clock.now).changes
        return [outcome.step for outcome in writer.run("p", changes)]

    def _row(self, name: str, value: int) -> DesiredConfig:
        prior = self.configs.configs.get(desired(name).entity, {}).get(KEY)
        since = self.clock.now - timedelta(hours=1)
        return desired(name, config_value=f"{value}000", prior_value=prior, since=since)

    def restore(
        self,
        *,
        everything: bool = True,
        with_tables: bool = True,
        on_step: Callable[[str], None] = lambda _: None,
    ) -> list[Change]:
        writer, signed, ledger = self.begin(on_step, with_tables=with_tables)
        owned = restore_plan.expired(ledger, self.clock.now, include_all=everything)
        actual = {key[0]: self.configs.read(key[0]) for key in owned}
        restore = restore_plan.plan_restore(owned, actual, {}, Connection("b:9092"))
        signed.add(
            [
                replace(e.owned.record, step=YIELDED, event_time=self.clock(), run_id="y", number=n)
                for n, e in enumerate(restore.yielded)
            ]
        )
        writer.run("restore", restore.changes)
        return list(restore.changes)

    def value(self, name: str) -> str | None:
        return self.configs.configs.get(desired(name).entity, {}).get(KEY)


def applied(*names: str) -> Site:
    site = Site()
    assert set(site.apply(2, *names)) == {DONE}
    return site


def live(book: LeaseBook) -> dict[Key, Lease]:
    return {key: lease for key, lease in book.leases.items() if not lease.is_over}
