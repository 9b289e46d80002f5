"""How often a quota is raised when plans are made and applied one after the other."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity, DesiredConfig
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection
from quotaflow.pipelines.feedback.ledger import journal
from quotaflow.pipelines.feedback.planning import restore_plan
from quotaflow.pipelines.feedback.planning.guards import REQUESTS, RESULTS, SNAPSHOT, PlanPolicy
from quotaflow.pipelines.feedback.planning.plan import plan
from quotaflow.pipelines.feedback.planning.plan_inputs import worded
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import CLIENT_QUOTAS, CONFIG_CHANGES

from ...cases import cases
from ...delta_tables import NOON
from ...pipelines.feedback.fake_configs import Clock, DictConfigs, ListJournal, applying
from ...rows import Row, at, limited, quota, row, setting, used
from .memory_tables import MemoryTables
from .view_tables import Tables, assert_outcomes, make_table, make_tables, picked, rows, view

KEY = "producer_byte_rate"
ALICE = ConfigEntity("c1", "user", "alice")
FIRST = 1_000_000.0
PLAIN = Connection("b:9092")
EVERY = timedelta(minutes=10)
SETTLED = timedelta(minutes=1)
"""How far tables are behind when a plan is made."""


@dataclass
class Loop:
    """Plans, apply and restore on a cluster that is a dictionary, for alice, who always uses all
    that her quota allows and is throttled in each window.
    """

    tables: MemoryTables = field(default_factory=MemoryTables)
    configs: DictConfigs = field(default_factory=lambda: DictConfigs({ALICE: {KEY: "1000000"}}))
    journal: ListJournal = field(default_factory=ListJournal)
    quotas: list[Row] = field(default_factory=list)
    windows: list[Row] = field(default_factory=list)
    raises: list[datetime] = field(default_factory=list)
    more_settings: list[Row] = field(default_factory=list)
    lease_s: int = 3_600

    def __post_init__(self) -> None:
        settings = [setting("quotas.advised_users", "alice", -3 * 86_400)]
        make_tables(self.tables, {"settings": settings + self.more_settings})
        self.quotas = [quota(-3 * 86_400, KEY, FIRST, user="alice")]

    @property
    def current(self) -> float:
        return float(self.configs.configs[ALICE][KEY])

    def cycle(self, now: datetime, *, has_plan: bool) -> None:
        """Ten minutes of traffic, what the job plan and an operator do, and a snapshot."""
        for nth in range(10):
            second = (now - SETTLED - NOON) / timedelta(seconds=1) - 55 * (9 - nth)
            throttled_use = {"quota": self.current, "throttled_requests": 3, "client_id": "orders"}
            self.windows.append(used(second, KEY, self.current, **throttled_use))
        clock = Clock(now)
        self._give_back(clock)
        if has_plan:
            self._raise(clock)
        if self.current != self.quotas[-1]["quota"]:
            second = (now + SETTLED - NOON) / timedelta(seconds=1)
            self.quotas.append(quota(second, KEY, self.current, user="alice"))

    def _give_back(self, clock: Clock) -> None:
        owned = restore_plan.expired(self.journal.ledger, clock.now)
        actual = {entity: self.configs.read(entity) for entity, _ in owned}
        back = restore_plan.plan_restore(owned, actual, {}, PLAIN)
        applying(self.configs, self.journal, f"back {clock.now}", clock).run("", back.changes)

    def _raise(self, clock: Clock) -> None:
        before = self.current
        inputs = dict.fromkeys((REQUESTS, RESULTS, SNAPSHOT), clock.now)
        made = plan(
            self._desired(),
            clock.now,
            PlanPolicy(inputs_at=inputs, lease_s=self.lease_s),
            PLAIN,
            self.journal.ledger,
        )
        applying(self.configs, self.journal, f"raise {clock.now}", clock).run("p", made.changes)
        if self.current > before:
            self.raises.append(clock.now)

    def _desired(self) -> list[DesiredConfig]:
        written = [journal.to_row(record, "us") for record in self.journal.records]
        for table, content in (
            (CONFIG_CHANGES, written),
            (CLIENT_QUOTAS, self.quotas),
            (TABLES["quota_usage"], self.windows),
        ):
            make_table(self.tables, table, content)
        # desired_configs has these rows, and takes 20 times as long to plan.
        return [worded(row) for row in rows(self.tables, "SELECT * FROM quota_proposals")]


CAPACITY = setting("replication.capacity_bytes_per_s", 4e6, -3 * 86_400)


def always(_: timedelta) -> bool:
    return True


def lapses(since: timedelta) -> bool:
    """No plan for a while after the first, so that the lease of what it raised ends."""
    return not EVERY <= since < timedelta(minutes=80)


@cases(
    ("has_plan", "quota_at_end"),
    ("a plan in each cycle", always, 1_250_000.0),
    ("a raise whose lease ended is not made again", lapses, FIRST),
)
def test_a_quota_is_raised_once_a_day(
    has_plan: Callable[[timedelta], bool], quota_at_end: float
) -> None:
    loop = Loop(more_settings=[CAPACITY])
    for nth in range(10):
        loop.cycle(NOON + nth * EVERY, has_plan=has_plan(nth * EVERY))
    assert loop.raises == [pytest.approx(NOON, abs=timedelta(seconds=1))]
    assert loop.current == quota_at_end


DAY = 86_400
THROTTLED = [
    used(DAY + n, KEY, 99.0, quota=100.0, throttled_requests=3, client_id="orders")
    for n in range(4)
]
"""Its newest window is three seconds after a day."""


def test_a_raise_is_judged_by_how_often_its_user_is_throttled_per_byte() -> None:
    content = {
        "settings": [setting("quotas.advised_users", "alice"), CAPACITY],
        "client_quotas": [quota(0, KEY, 100.0, user="alice")],
        "quota_usage": THROTTLED,
    }
    assert picked(view("desired_configs", content), "direction", "offence") == [("raise", 1 / 99.0)]


def changed(second: float, step: str = "done", **others: Any) -> Row:
    """A record of a quota of alice that this pipeline wrote."""
    given = {"entity_type": "user", "entity_name": "alice", "config_key": KEY, "operation": "SET"}
    return row("config_changes", second, given | others, purpose="apply", step=step)


NEW = quota(60, KEY, 100.0, user="alice")
ALTERATIONS: dict[str, dict[str, Tables]] = {
    "raise": {
        "nobody altered it": {},
        "a plan did, a day ago": {"config_changes": [changed(3)]},
        "a broker refused it": {"config_changes": [changed(60, "refused")]},
        "its lease was renewed": {"config_changes": [changed(60, operation="RENEW")]},
        "another kind of quota": {"config_changes": [changed(60, config_key="consumer_byte_rate")]},
        "one of a client id of its": {"config_changes": [changed(60, entity_client_id="b")]},
        "another user's": {"config_changes": [changed(60, entity_name="bob")]},
        "an operator was refused": {"config_alterations": [limited(60, KEY, "100", error_code=29)]},
        "a snapshot found it, and the log shows when it was set": {
            "client_quotas": [NEW | {"set_at": at(-60)}]
        },
        "a snapshot found one of a client id": {
            "client_quotas": [NEW | {"is_default_client_id": True}]
        },
    },
    "wait": {
        "a plan did, within a day": {"config_changes": [changed(4)]},
        "a plan did, after the newest window": {"config_changes": [changed(DAY + 60)]},
        "restore did": {"config_changes": [changed(60, purpose="restore")]},
        "a plan may have: nobody knows the end": {"config_changes": [changed(60, "begun")]},
        "an operator did": {"config_alterations": [limited(60, KEY, "100")]},
        "a snapshot found it new": {"client_quotas": [NEW]},
    },
}


def test_a_raise_waits_until_a_day_after_the_quota_was_altered() -> None:
    """Advice to wait has the same quota: it is due later."""
    outcomes = {
        (advice, 125.0): {
            case: tables | {"quota_usage": THROTTLED} for case, tables in alike.items()
        }
        for advice, alike in ALTERATIONS.items()
    }
    assert_outcomes(outcomes, "quota_advice", "advice", "recommended")


@cases(
    ("settings", "quota_at_end"),
    ("without a capacity nothing is raised", [], FIRST),
    ("half of the capacity is the end", [CAPACITY], 2_000_000.0),
)
def test_who_uses_more_each_day_does_not_get_more_without_end(
    settings: list[Row], quota_at_end: float
) -> None:
    loop = Loop(more_settings=settings, lease_s=3 * 86_400)
    for nth in range(12):
        loop.cycle(NOON + nth * timedelta(days=1, minutes=10), has_plan=True)
    assert loop.current == quota_at_end
