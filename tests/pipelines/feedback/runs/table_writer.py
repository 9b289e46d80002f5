"""Somebody who writes every table that a plan reads, but neither the ledger, conf nor cluster."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.feedback.configs.change import (
    APPEND,
    APPLY,
    DELETE,
    RENEW,
    RESTORE,
    SET,
    SUBTRACT,
    Change,
    Operation,
    Plan,
)
from quotaflow.pipelines.feedback.configs.cluster_facts import ClusterFacts
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity, DesiredConfig
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection
from quotaflow.pipelines.feedback.planning import guards, restore_plan
from quotaflow.pipelines.feedback.planning.blast_radius import BlastRadius, Room
from quotaflow.pipelines.feedback.planning.guards import RESULT_TABLES, PlanPolicy
from quotaflow.pipelines.feedback.planning.recheck import Recheck
from quotaflow.pipelines.feedback.runs import context
from quotaflow.pipelines.feedback.runs.apply_run import distrusting
from quotaflow.schemas.configs import CONFIGS, ENTITY_TYPES

from ....delta_tables import NOON
from ..fake_configs import Clock, DictConfigs, ListJournal, applying, planned

ADVISED, EXCLUDED = ("dave", "erin"), "vip"
PROTECTED, OF_BROKER, LISTED = "10.0.0.9", "10.0.0.1", "127.0.0.5"
SPECIAL = ("0.0.0.0", "::", "255.255.255.255", "224.0.0.1", "ff02::1", "169.254.0.1", "127.0.0.1")  # noqa: S104
CAPACITY = 1e6
DEFAULTS = {("user", "producer_byte_rate"): 2e6, ("ip", "connection_creation_rate"): 50.0}
_PLAIN = Connection("b:9092")
_USERS = (*ADVISED, EXCLUDED, "eve", "admin", *(f"u{n}" for n in range(40)))
_ADDRESSES = (PROTECTED, OF_BROKER, LISTED, *SPECIAL, *(f"10.1.0.{n}" for n in range(40)))
_NAMES = {
    "user": (*_USERS, None, "", "<default>"),
    "ip": (*_ADDRESSES, None, "localhost", "10.1.0.1 "),
    "client-id": ("app", None, ""),
    "broker": ("1", "2", "3", None, "x"),
    "topic": ("t", "orders"),
    "client-metrics": ("quotaflow-alert-x", "theirs", "quotaflow-troubleshoot-a-until-1"),
    "broker-logger": ("1",),
}
_RAISED = ADVISED + tuple(f"u{n}" for n in range(4))
"""Half of the writers only raise byte rates of these users, to come to the bounds of raises."""
_NUMBERS = ("1", "2", "0.5", "0", "-1", "65536", "100000", "150000", "200000", "1000000", "3000000")
_ODD = ("9007199254740992", "9223372036854775807", "nan", "inf", "1e400", "", "x", "1e6")
_VALUES = (None, None, *_NUMBERS, *_ODD, "21600000", "2000000000")
_TEXTS = ("0:1", "0:1,1:2", "*", "TRACE", "client_instance_id=vl7CCx68Qw29SsxmLSK4Xg")
_EVIDENCE = (*RESULT_TABLES, "producer_id_heap", "throttle_leftovers", "current_configs", "forged")


def conf_of(dice: random.Random) -> Conf:
    """A conf that allows more or less."""
    return Conf.model_validate(
        {
            "plan": {
                "canary": dice.random() < 0.5,
                "excluded_principals": [f"User:{EXCLUDED}"],
                "max_entity_share": 1.0,
                "cooldown_s": 0,
            },
            "quotas": {"advised_users": [*ADVISED, EXCLUDED, *(f"u{n}" for n in range(30))]},
            "producer_ids": {
                "protected_addresses": [PROTECTED],
                "limited_addresses": [LISTED],
                "default_quota_per_s": 1.0,
                "manage_expiration": dice.random() < 0.3,
            },
            "replication": {
                "manage": dice.random() < 0.3,
                "capacity_bytes_per_s": dice.choice([None, CAPACITY]),
            },
        }
    )


@dataclass
class TableWriter:
    """A cluster, our ledger, and the plans that somebody gets by his tables."""

    dice: random.Random
    conf: Conf
    is_bounded: bool = True
    configs: DictConfigs = field(default_factory=DictConfigs)
    journal: ListJournal = field(default_factory=ListJournal)
    clock: Clock = field(default_factory=Clock)
    only_raises: bool = False

    def __post_init__(self) -> None:
        """Some entities have configs that people set."""
        self.configs.says = ClusterFacts(frozenset({OF_BROKER}), DEFAULTS)
        self.only_raises = self.dice.random() < 0.5
        for name in _RAISED if self.only_raises else self.dice.sample(_USERS, 10):
            self.configs.configs[ConfigEntity("c1", "user", name)] = {
                "producer_byte_rate": self.dice.choice(["100000", "150000", "3000000"])
            }
        for name in self.dice.sample(_ADDRESSES, 6):
            entity = ConfigEntity("c1", "ip", name)
            self.configs.configs[entity] = {"connection_creation_rate": self.dice.choice("259")}
        rates = {"leader.replication.throttled.rate": "2000000"}
        self.configs.configs[ConfigEntity("c1", "broker", "1")] = rates

    def plan(self) -> None:
        """One apply of a plan of now, or of one that was frozen as he likes."""
        self.clock.now += timedelta(minutes=self.dice.choice([1, 11, 47, 300]))
        if self.dice.random() < 0.2:
            self._give_back()
        rows = [self._row() for _ in range(self.dice.randrange(1, 9))]
        ledger, now = self.journal.ledger, self.clock.now
        policy = self._policy()
        made = planned(*rows, bounds=policy, ledger=ledger, now=now)
        room = None
        if self.dice.random() < 0.4:
            forged = [self._forged(row) for row in rows]
            forged.sort(key=lambda change: change.entity.order)
            if any(guards.write_problem(change.written, policy) for change in forged):
                forged = []
            made, room = Plan((*made.changes, *forged), ()), self._room(policy)
        # A plan that is forged has forged rows of now beside it.
        recheck = Recheck(lambda: made, lambda: now, room)
        writer = applying(self.configs, self.journal, f"r{now}", self.clock, veto=recheck)
        if self.is_bounded:
            bound = distrusting(
                context.of_plans(self.conf).trusted, self.configs, ledger, self.clock
            )
            writer = replace(writer, distrust=bound)
        writer.run("p", made.changes)

    def _room(self, policy: PlanPolicy) -> Room:
        assert policy.blast_radius is not None
        return Room(policy.blast_radius, self.journal.ledger, self.clock.now)

    def _give_back(self) -> None:
        owned = restore_plan.expired(self.journal.ledger, self.clock.now)
        actual = {key[0]: self.configs.read(key[0]) for key in owned}
        changes = restore_plan.plan_restore(owned, actual, {}, _PLAIN).changes
        applying(self.configs, self.journal, f"b{self.clock.now}", self.clock).run("b", changes)

    def _policy(self) -> PlanPolicy:
        """The policy of conf with what tables add to it, at its weakest."""
        dice, now = self.dice, self.clock.now
        section, policy = self.conf.plan, context.of_plans(self.conf).policy
        radius = BlastRadius(
            section.max_entities,
            section.max_entities_per_day,
            section.max_entity_share,
            dict.fromkeys(ENTITY_TYPES, dice.choice([0, 1, 10**9])),
            [frozenset("123")] * dice.randrange(2),
            timedelta(seconds=dice.choice([-1e6, 0, 1])),
            now + timedelta(days=dice.randrange(-1, 400)),
            section.canary,
        )
        trusted = context.of_plans(self.conf).trusted if self.is_bounded else None
        return replace(policy, blast_radius=radius, trusted=trusted)

    def _row(self) -> DesiredConfig:
        dice = self.dice
        key = dice.choice([*CONFIGS, *["connection_creation_rate", "producer_byte_rate"] * 6])
        is_usual = dice.random() < 0.85
        kind = CONFIGS[key].entity_type if is_usual else dice.choice([*ENTITY_TYPES])
        name = dice.choice(_NAMES[kind])
        if self.only_raises:
            key, kind, name = "producer_byte_rate", "user", dice.choice(_RAISED)
        client = None if dice.random() < 0.9 else dice.choice(["app", ""])
        entity = ConfigEntity("c1", kind, name, client)
        current = self.configs.configs.get(entity, {}).get(key)
        of_text = key in {"metrics", "match", "kafka.request.logger"} or "replicas" in key
        values = (*_TEXTS, None) if of_text else _VALUES
        return DesiredConfig(
            cluster_id="c1" if dice.random() < 0.98 else "c2",
            entity_type=kind,
            entity_name=name,
            entity_client_id=client,
            config_key=key,
            config_value=dice.choice(values),
            # He sees the cluster's value in a snapshot.
            prior_value=current if dice.random() < 0.9 else dice.choice(values),
            reason="because",
            evidence_table=dice.choice([*_EVIDENCE, *["quota_advice"] * 6]),
            evidence_key="x",
            since=self._time(),
            priority=dice.choice([0, 5, 10, 20, 30, 40]),
            lease_s=dice.choice([None, None, None, None, None, 0, 60, 10**9]),
            renew_only=dice.random() < 0.1,
            observed=dice.choice([None, 0.0, 1.0, 1.0, 1.0, 1e9, float("nan")]),
            direction=dice.choice(
                [None, None, "raise", "raise", "raise", "tighten", "revert", "x"]
            ),
            usage_p99=dice.choice([None, 0.0, 1.0, 1.0, 1.0, 1e5, 1e15, float("inf")]),
            history_s=dice.choice([None, 0.0, 1e9, 1e9, 1e9, 1e9]),
            quota_in_force=dice.choice([None, None, None, 1.0, 1e5, 1e15]),
            least_value=dice.choice([None, 0.0, 1.0, 1.0, 1e5]),
        )

    def _time(self) -> datetime:
        return NOON + timedelta(hours=self.dice.choice([-1_000, -1, -1, -1, -1, 1_000]))

    def _forged(self, row: DesiredConfig) -> Change:
        dice = self.dice
        name = dice.choice([SET, SET, SET, DELETE, APPEND, SUBTRACT, RENEW])
        operand = row.config_value if name in {SET, APPEND, SUBTRACT} else None
        value = operand if name == SET else row.prior_value if name == RENEW else None
        return Change(
            row,
            value if dice.random() < 0.8 else dice.choice(_VALUES),
            Operation(name, operand),
            "",
            "",
            dice.choice([None, 0, 60, 3_600, 10**9]),
            dice.choice([APPLY, APPLY, APPLY, RESTORE]),
        )


State = Mapping[ConfigEntity, Mapping[str, str]]


def seen(configs: DictConfigs) -> State:
    """What every entity has now."""
    return {entity: dict(values) for entity, values in configs.configs.items()}


def altered(before: State, after: State) -> Sequence[tuple[ConfigEntity, str]]:
    """The configs that differ."""
    keys = [(entity, key) for entity in {*before, *after} for key in CONFIGS]
    return [
        (entity, key)
        for entity, key in keys
        if before.get(entity, {}).get(key) != after.get(entity, {}).get(key)
    ]
