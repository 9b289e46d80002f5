"""The worst plan of somebody who writes every table but the ledger stays within written bounds."""

import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from quotaflow.pipelines.feedback.configs.change import RESTORE
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.pipelines.feedback.ledger.ledger import DONE, Record
from quotaflow.pipelines.feedback.planning import trusted_bounds

from .table_writer import (
    ADVISED,
    CAPACITY,
    DEFAULTS,
    EXCLUDED,
    OF_BROKER,
    PROTECTED,
    SPECIAL,
    TableWriter,
    conf_of,
)

DAY = timedelta(days=1)
PLANS = 30
"""Of one cluster: enough for several days."""
MANY = 20_000
"""Several times as many as it takes to find a bound that is missing."""
BYTES = {"producer_byte_rate", "consumer_byte_rate"}
QUOTAS = {*BYTES, "request_percentage"}
USERS = {*ADVISED, *(f"u{n}" for n in range(30))}


def number(text: str | None) -> float | None:
    return None if text is None else float(text)


@dataclass
class Watch:
    """Each write that was made, and what breaks a bound."""

    writer: TableWriter
    read: int = 0
    written_at: dict[ConfigEntity, datetime] = field(default_factory=dict)
    raised_at: dict[tuple[ConfigEntity, str], datetime] = field(default_factory=dict)
    writes: int = 0

    def check(self) -> None:
        """What was written since the last look."""
        records = self.writer.journal.records[self.read :]
        self.read += len(records)
        made = [r for r in records if r.step == DONE and r.operation != "RENEW"]
        plans = [r for r in made if r.purpose != RESTORE]
        entities = {r.entity for r in plans if r.entity.entity_type in {"user", "ip", "client-id"}}
        assert len(entities) <= self.writer.conf.plan.max_entities
        for record in plans:
            self.writes += 1
            self.written_at |= (
                {record.entity: record.event_time} if record.entity in entities else {}
            )
            getattr(self, f"_{record.entity.entity_type.replace('-', '_')}")(record)
        now = self.writer.clock.now
        today = [at for at in self.written_at.values() if now - at < DAY]
        assert len(today) <= self.writer.conf.plan.max_entities_per_day
        for owned in self.writer.journal.ledger.owned.values():
            assert owned.expires_at is not None
            longest_s = self.writer.conf.plan.max_lease_s
            assert owned.expires_at - now <= timedelta(seconds=longest_s)

    def _ip(self, record: Record) -> None:
        assert record.entity.entity_name not in {PROTECTED, OF_BROKER, *SPECIAL, None}
        assert record.config_key == "connection_creation_rate"
        self._tightens(record)

    def _tightens(self, record: Record) -> None:
        before, after = number(record.prior_value), number(record.config_value)
        if before is None:
            before = DEFAULTS.get((record.entity.entity_type, record.config_key))
        assert after is not None, "a limit was removed"
        assert before is None or after <= before, "a limit was loosened"

    def _user(self, record: Record) -> None:
        assert record.entity.client_id is None
        assert record.entity.entity_name not in {EXCLUDED, "admin", "", None}
        if record.config_key == "producer_ids_rate":
            assert float(record.config_value or 0) >= 1.0
            self._tightens(record)
            return
        assert record.config_key in QUOTAS
        assert record.entity.entity_name in USERS
        before, after = number(record.prior_value), number(record.config_value)
        if before is None:
            self._tightens(record)
            return
        assert after is not None
        if after == before:
            return
        assert before < after <= 2 * before
        last = self.raised_at.get(record.key)
        assert last is None or record.event_time - last >= DAY, "raised twice in a day"
        self.raised_at[record.key] = record.event_time
        raised: dict[str, float] = defaultdict(float)
        for key, owned in self.writer.journal.ledger.owned.items():
            if key[0].entity_type == "user":
                was, value = number(owned.prior_value), float(owned.value or 0)
                raised[key[1]] += value if was is not None and value > was else 0.0
        assert self.writer.conf.replication.capacity_bytes_per_s == CAPACITY
        assert raised[record.config_key] <= CAPACITY / 2

    def _broker(self, record: Record) -> None:
        conf = self.writer.conf
        assert (record.entity.entity_name or "").isdecimal()
        if record.config_key == "producer.id.expiration.ms":
            assert conf.producer_ids.manage_expiration
            assert float(record.config_value or 1e18) <= float(record.prior_value or 86_400_000)
            return
        assert conf.replication.manage
        assert conf.replication.capacity_bytes_per_s is None or (
            float(record.config_value or 0) <= CAPACITY
        )

    def _topic(self, record: Record) -> None:  # noqa: ARG002  the entity alone counts
        assert self.writer.conf.replication.manage

    def _client_metrics(self, record: Record) -> None:
        name = str(record.entity.entity_name)
        assert name.startswith(("quotaflow-alert-", "quotaflow-troubleshoot-"))
        now = self.writer.configs.read(record.entity)
        assert "match" in now or not now


def search(seed: int, plans: int, *, is_bounded: bool = True) -> int:
    """Many plans of many table writers; how many writes they get."""
    dice, writes = random.Random(seed), 0
    for _ in range(plans // PLANS):
        watch = Watch(TableWriter(dice, conf_of(dice), is_bounded))
        for _ in range(PLANS):
            watch.writer.plan()
            watch.check()
        writes += watch.writes
    return writes


def test_a_thousand_plans_of_forged_tables_stay_within_the_bounds() -> None:
    # About 40 writes; few of them show that the search still gets as far as to write.
    assert search(random.randrange(2**32), 1_000) > 5


def test_the_search_finds_what_is_not_bounded() -> None:
    with pytest.raises(AssertionError):
        search(1, 300, is_bounded=False)


WITHOUT: dict[str, Callable[..., object]] = {
    "_raised": lambda *_: 0.0,
    "_written_at": lambda *_: None,
    "_raise_problem": lambda *_: None,
    "_limit": lambda *_: None,
    "_lease_problem": lambda *_: None,
    "_operation_problem": lambda *_: None,
    "_return_problem": lambda *_: None,
}
"""Parts of the bounds, without which others are broken."""


@pytest.mark.faults
@pytest.mark.parametrize("part", WITHOUT)
def test_so_many_plans_find_each_bound_that_is_missing(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trusted_bounds, part, WITHOUT[part])
    with pytest.raises(AssertionError):
        search(1, MANY)


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(4))
def test_many_plans_of_forged_tables_stay_within_the_bounds(seed: int) -> None:
    assert search(seed, MANY) > 400
