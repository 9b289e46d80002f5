"""A cluster and a journal in memory, and the commands apply and restore on them."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.feedback.configs.desired_configs import DesiredConfig
from quotaflow.pipelines.feedback.ledger import journal
from quotaflow.pipelines.feedback.ledger.trust import TrustedLedger
from quotaflow.pipelines.feedback.planning.restore_plan import RestorePlan
from quotaflow.pipelines.feedback.runs import context, restore_run
from quotaflow.pipelines.feedback.writing import exclusive_section
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.readers import open_reader
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...crashes import CrashError, crash_at
from ...delta_tables import NOON
from .fake_configs import Clock, DictConfigs, ListJournal, planned
from .fake_configs import applying as run_of

LATER = NOON + timedelta(hours=5)


@dataclass
class Scene:
    """A cluster and a journal for restore and apply, in place of the real ones."""

    warehouse: Warehouse
    monkeypatch: pytest.MonkeyPatch
    configs: DictConfigs = field(default_factory=DictConfigs)
    journal: ListJournal = field(default_factory=ListJournal)
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.monkeypatch.setattr(exclusive_section, "open_cluster", self.cluster)
        self.monkeypatch.setattr(exclusive_section, "acquired", self.taken)
        self.monkeypatch.setattr(exclusive_section, "warehouse_section", self.taken)
        self.monkeypatch.setattr(exclusive_section, "read_trust", self.trust)
        self.monkeypatch.setattr(journal, "read_ledger", lambda _: self.journal.ledger)

    @property
    def conf(self) -> Conf:
        return config.load(overrides=[f"warehouse.path={self.warehouse.conf.folder}"])

    @property
    def tables(self) -> Reader:
        return open_reader(self.conf)

    def trust(self, *_: object) -> TrustedLedger:
        return TrustedLedger(self.journal.ledger)

    @contextmanager
    def cluster(self, _: object) -> Iterator[tuple[str, DictConfigs]]:
        yield "c1", self.configs

    @contextmanager
    def taken(self, *_: object) -> Iterator[exclusive_section.ExclusiveSection]:
        apply = run_of(self.configs, self.journal, f"r{self.clock()}", self.clock)
        apply.finish(self.journal.ledger)
        rows: Any = None
        trust = TrustedLedger(self.journal.ledger)
        yield exclusive_section.ExclusiveSection("c1", apply, trust, rows, self.tables, rows)

    def apply(self, *rows: DesiredConfig, dies_at: str | None = None) -> None:
        changes = planned(*rows).changes
        with suppress(CrashError):
            dying = crash_at(dies_at)
            run_of(self.configs, self.journal, "r", self.clock, on_step=dying).run("p", changes)

    def shown(self, now: datetime = LATER, *, everything: bool = False) -> RestorePlan:
        return restore_run.preview(context.from_conf(self.conf), now, everything=everything)

    def done(self, now: datetime = LATER, *, everything: bool = False) -> RestorePlan:
        self.clock.now = now
        return restore_run.restore_configs(
            context.from_conf(self.conf), lambda _: None, everything=everything
        )[0]

    def command(self, *words: str) -> int:
        return execute(["restore", *words, "--set", f"warehouse.path={self.conf.warehouse.path}"])
