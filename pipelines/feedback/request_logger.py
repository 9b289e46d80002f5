"""The request logs of brokers, switched on for a while and back to what they were (KIP-412).

The level of a logger is a config that only its broker knows: it is gone with the next restart. So
each broker is asked, and switched, by itself. The lease is a record like any other, and `restore`
gives back what a capture that was killed left on.
"""

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import ConfigError, KafkaError, LockedError
from quotaflow.pipelines.feedback import exclusive_section, journal, restore_run
from quotaflow.pipelines.feedback.change import Plan
from quotaflow.pipelines.feedback.change_writer import ChangeWriter, Configs
from quotaflow.pipelines.feedback.desired_configs import ConfigEntity, DesiredConfig
from quotaflow.pipelines.feedback.guards import SNAPSHOT, PlanPolicy
from quotaflow.pipelines.feedback.kafka_configs import Connection, command
from quotaflow.pipelines.feedback.ledger import Ledger, Record
from quotaflow.pipelines.feedback.live_configs import LiveConfigs
from quotaflow.pipelines.feedback.outcome import Outcome
from quotaflow.pipelines.feedback.plan import plan
from quotaflow.pipelines.feedback.restore_plan import Key, RestorePlan
from quotaflow.pipelines.kafka.cluster_state import UnansweredError
from quotaflow.pipelines.spark import failures
from quotaflow.pipelines.spark.spark_errors import bridge_errors
from quotaflow.pipelines.warehouse.tables import open_tables
from quotaflow.schemas.configs import BROKER_LOGGER, LOGGING_LEVELS, REQUEST_LOGGER

ON = "DEBUG"
QUIET = "FATAL"
"""As silent as OFF, which log4j2 knows and Kafka refuses to set."""
PLAN_ID = "capture"
_KEY = REQUEST_LOGGER.key
_URGENT = 0
_UNRECORDED: tuple[type[Exception], ...] = (LockedError, OSError)


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """Whose request logs are to be on, and for how long."""

    cluster_id: str
    broker_ids: tuple[int, ...]
    for_s: int


@dataclass(frozen=True, slots=True)
class Switch:
    """The level of each broker's request logger, null where it did not answer, and what to change.

    What logs already is somebody else's: it is neither switched on nor off. Nor is what could not
    be given back.
    """

    request: CaptureRequest
    levels: Mapping[int, str | None]
    plan: Plan


@dataclass(frozen=True, slots=True)
class _Unrecorded:
    """A journal that keeps nothing: another process holds the one there is."""

    def add(self, records: Sequence[Record]) -> None:
        """Forget them."""


def read_switch(conf: Conf, broker_ids: Collection[int], for_s: int, now: datetime) -> Switch:
    """What a capture would switch on these brokers, or on all; nothing is written.

    Raises ConfigError for a broker there is not, KafkaError where the cluster is silent.
    """
    with exclusive_section.open_cluster(conf) as (cluster_id, configs):
        there = _brokers(configs)
        unknown = [str(broker_id) for broker_id in broker_ids if broker_id not in there]
        if unknown:
            known = ", ".join(str(broker_id) for broker_id in there)
            raise ConfigError(f"no broker {', '.join(unknown)} is up: those that are: {known}")
        wanted = CaptureRequest(cluster_id, tuple(sorted(set(broker_ids)) or there), for_s)
        ledger = journal.read_ledger(open_tables(conf))
        ledger = exclusive_section.for_cluster(ledger, cluster_id)
        return _switch(conf, wanted, configs, ledger, now)


def switched_on(
    conf: Conf,
    request: CaptureRequest,
    report: Callable[[str], None],
    stopped: Callable[[], str | None] = lambda: None,
    passed: Callable[[str], None] = lambda _: None,
    *,
    on_start: Callable[[Switch], None] = lambda _: None,
) -> list[Outcome]:
    """Switch request logs on, each recorded with its lease; how each change ended.

    `begun` is told what is about to be written: whatever fails after it, that may be on.
    """
    with exclusive_section.acquired(conf, report, stopped, passed) as taken:
        apply, now = taken.apply, datetime.now(UTC)
        found = _switch(conf, request, apply.configs, taken.ledger, now)
        on_start(found)
        changes = found.plan.changes
        return apply.run(PLAN_ID, changes) if changes else []


def restore_levels(
    conf: Conf, keys: Collection[Key], report: Callable[[str], None]
) -> tuple[RestorePlan, list[Outcome]]:
    """Give these back to the level they had; somebody else's later change is left alone.

    A broker must not log on because another process writes tables now, Spark's JVM is gone or the
    disk is full: then it is given back without a record, and the next restore finds that it is so.
    """
    try:
        return restore_run.restore_configs(conf, report, keys=keys)
    except _UNRECORDED + bridge_errors() as error:
        report(
            f"given back without a record, which the next restore adds: {failures.one_line(error)}"
        )
    with exclusive_section.open_cluster(conf) as (cluster_id, configs):
        tables = open_tables(conf)
        ledger = (
            exclusive_section.for_cluster(journal.read_ledger(tables), cluster_id)
            .assuming_open_done()
            .restricted_to(keys)
        )
        now = datetime.now(UTC)
        found = restore_run.plan_restore(conf, tables, ledger, configs, now, everything=True)
        apply = ChangeWriter(configs, _Unrecorded(), uuid.uuid4().hex, lambda: datetime.now(UTC))
        return found, apply.run(restore_run.PLAN_ID, found.changes)


def is_left(level: str | None) -> bool:
    """Whether a broker can neither be switched nor logs already: its level is unknown, or none that
    Kafka lets anybody set, so that it could not be given back.
    """
    return level is None or (level not in LOGGING_LEVELS and not _can_be_set(level))


def quiet_command(conf: Conf, switch: Switch, broker_id: int) -> str:
    """The command line that sets a level which can be given back, and logs no request."""
    entity = _entity(switch.request.cluster_id, broker_id)
    return command(entity, {_KEY: QUIET}, Connection.from_conf(conf))


def off_command(conf: Conf, switch: Switch, broker_id: int) -> str:
    """The command line that gives a broker back its level, for when we cannot."""
    entity = _entity(switch.request.cluster_id, broker_id)
    return command(entity, {_KEY: switch.levels[broker_id]}, Connection.from_conf(conf))


def _switch(
    conf: Conf, wanted: CaptureRequest, configs: Configs, ledger: Ledger, now: datetime
) -> Switch:
    levels = {
        broker_id: _level(configs, _entity(wanted.cluster_id, broker_id))
        for broker_id in wanted.broker_ids
    }
    rows = [
        _row(_entity(wanted.cluster_id, broker_id), level, wanted.for_s, now)
        for broker_id, level in levels.items()
        if (level == ON or level not in LOGGING_LEVELS) and not is_left(level)
    ]
    # What brokers said just now holds, and not what we wrote some time ago.
    bounds = PlanPolicy(cluster_id=wanted.cluster_id, inputs_at={SNAPSHOT: now})
    return Switch(wanted, levels, plan(rows, now, bounds, Connection.from_conf(conf), ledger))


def _can_be_set(level: str) -> bool:
    try:
        REQUEST_LOGGER.canonical(level)
    except ValueError:
        return False
    return True


def _brokers(configs: LiveConfigs) -> list[int]:
    try:
        told = configs.state.brokers()
    except UnansweredError as error:
        raise KafkaError(f"the cluster did not tell its brokers: {error}") from None
    return sorted(broker["broker_id"] for broker in told if not broker["is_fenced"])


def _level(configs: Configs, entity: ConfigEntity) -> str | None:
    try:
        return configs.read(entity).get(_KEY)
    except UnansweredError:
        return None


def _entity(cluster_id: str, broker_id: int) -> ConfigEntity:
    return ConfigEntity(cluster_id, BROKER_LOGGER, str(broker_id))


def _row(entity: ConfigEntity, level: str | None, for_s: int, now: datetime) -> DesiredConfig:
    return DesiredConfig(
        cluster_id=entity.cluster_id,
        entity_type=entity.entity_type,
        entity_name=entity.entity_name,
        config_key=_KEY,
        config_value=ON,
        prior_value=level,
        reason=f"its request log is captured for {for_s} s",
        evidence_table="requests",
        evidence_key=f"broker_id={entity.entity_name}",
        since=now,
        priority=_URGENT,
        lease_s=for_s,
    )
