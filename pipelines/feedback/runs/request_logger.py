"""A capture: switches the request logs of brokers on for a while, and back (KIP-412).

The level of a logger is a config that only its broker knows, and a restart of the broker resets it.
So each broker is read and switched by itself. The lease is a record like any other, and `restore`
restores the levels that a killed capture left on.
"""

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from quotaflow.pipelines.errors import ConfigError, JobError, KafkaError, LockedError
from quotaflow.pipelines.feedback.configs.change import Plan
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity, DesiredConfig
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection, command
from quotaflow.pipelines.feedback.configs.live_configs import LiveConfigs
from quotaflow.pipelines.feedback.ledger import journal
from quotaflow.pipelines.feedback.ledger.ledger import Key, Ledger, Record
from quotaflow.pipelines.feedback.ledger.outcome import Outcome
from quotaflow.pipelines.feedback.planning.guards import SNAPSHOT, PlanPolicy
from quotaflow.pipelines.feedback.planning.plan import plan
from quotaflow.pipelines.feedback.planning.restore_plan import RestorePlan
from quotaflow.pipelines.feedback.runs import restore_run
from quotaflow.pipelines.feedback.runs.context import Context
from quotaflow.pipelines.feedback.writing import exclusive_section
from quotaflow.pipelines.feedback.writing.change_writer import ChangeWriter, Configs
from quotaflow.pipelines.kafka.cluster_state import UnansweredError
from quotaflow.pipelines.spark import failures
from quotaflow.pipelines.spark.spark_errors import bridge_errors
from quotaflow.schemas.configs import BROKER_LOGGER, LOGGING_LEVELS, REQUEST_LOGGER

ON = "DEBUG"
QUIET = "FATAL"
"""As silent as OFF, a level of log4j2 that Kafka refuses to set."""
PLAN_ID = "capture"
_KEY = REQUEST_LOGGER.key
_URGENT = 0
_UNRECORDED: tuple[type[Exception], ...] = (LockedError, JobError, OSError)


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """The brokers whose request logs are to be on, and for how long."""

    cluster_id: str
    broker_ids: tuple[int, ...]
    for_s: int


@dataclass(frozen=True, slots=True)
class Switch:
    """The level of each broker's request logger, null if it did not answer, and the changes.

    A broker that logs already is left alone: another login switched it on. So is a broker whose
    level could not be restored.
    """

    request: CaptureRequest
    levels: Mapping[int, str | None]
    plan: Plan


@dataclass(frozen=True, slots=True)
class _Unrecorded:
    """A journal that stores nothing: another process has the lock of the real one."""

    def add(self, records: Sequence[Record]) -> None:
        """Drop them."""


def read_switch(context: Context, broker_ids: Collection[int], for_s: int, now: datetime) -> Switch:
    """The switch of a capture of these brokers, or of all if none is named. Nothing is written.

    Raises ConfigError for a broker that is not up, KafkaError if the cluster does not answer.
    """
    with exclusive_section.open_cluster(context.writes) as (cluster_id, configs):
        there = _brokers(configs)
        unknown = [str(broker_id) for broker_id in broker_ids if broker_id not in there]
        if unknown:
            names = ", ".join(str(broker_id) for broker_id in there)
            raise ConfigError(f"no broker {', '.join(unknown)} is up: those that are: {names}")
        request = CaptureRequest(cluster_id, tuple(sorted(set(broker_ids)) or there), for_s)
        ledger = journal.read_ledger(context.tables)
        return _switch(context.plans.connection, request, configs, ledger, now)


def switched_on(
    context: Context,
    request: CaptureRequest,
    report: Callable[[str], None],
    stopped: Callable[[], str | None] = lambda: None,
    on_step: Callable[[str], None] = lambda _: None,
    *,
    on_start: Callable[[Switch], None] = lambda _: None,
) -> list[Outcome]:
    """Switch request logs on, each recorded with its lease. Returns how each change ended.

    `on_start` is called with the switch before the first write. After a later failure all of it may
    be on.
    """
    conf = context.writes
    with exclusive_section.acquired(conf, report, stopped, on_step, purpose=PLAN_ID) as taken:
        apply, now = taken.apply, datetime.now(UTC)
        switch = _switch(context.plans.connection, request, apply.configs, taken.ledger, now)
        on_start(switch)
        changes = switch.plan.changes
        return apply.run(PLAN_ID, changes) if changes else []


def restore_levels(
    context: Context, keys: Collection[Key], report: Callable[[str], None]
) -> tuple[RestorePlan, list[Outcome]]:
    """Restore the levels of these brokers; another login's later change is left alone.

    If another process writes tables now, a table cannot be written (a full disk, or a catalog whose
    Spark session ended), a broker must not go on logging. Then its level is restored without a
    record, and the next restore records it.
    """
    try:
        return restore_run.restore_configs(context, report, keys=keys)
    except _UNRECORDED + bridge_errors() as error:
        report(
            f"restored without a record, which the next restore adds: {failures.one_line(error)}"
        )
    with exclusive_section.open_cluster(context.writes) as (_, configs):
        tables = context.newest_tables()
        ledger = journal.read_ledger(tables).assuming_open_done().restricted_to(keys)
        now = datetime.now(UTC)
        restore = restore_run.plan_restore(context, tables, ledger, configs, now, everything=True)
        apply = ChangeWriter(configs, _Unrecorded(), uuid.uuid4().hex, lambda: datetime.now(UTC))
        return restore, apply.run(restore_run.PLAN_ID, restore.changes)


def is_left(level: str | None) -> bool:
    """Whether a broker is left alone: its level is unknown, or Kafka lets nobody set it, so that it
    could not be restored.
    """
    return level is None or (level not in LOGGING_LEVELS and not _can_be_set(level))


def quiet_command(connection: Connection, switch: Switch, broker_id: int) -> str:
    """The command line that sets a level which can be restored, and logs no request."""
    entity = _entity(switch.request.cluster_id, broker_id)
    return command(entity, {_KEY: QUIET}, connection)


def off_command(connection: Connection, switch: Switch, broker_id: int) -> str:
    """The command line that restores a broker's level, for when we cannot."""
    entity = _entity(switch.request.cluster_id, broker_id)
    return command(entity, {_KEY: switch.levels[broker_id]}, connection)


def _switch(
    connection: Connection, request: CaptureRequest, configs: Configs, ledger: Ledger, now: datetime
) -> Switch:
    levels = {
        broker_id: _level(configs, _entity(request.cluster_id, broker_id))
        for broker_id in request.broker_ids
    }
    rows = [
        _row(_entity(request.cluster_id, broker_id), level, request.for_s, now)
        for broker_id, level in levels.items()
        if (level == ON or level not in LOGGING_LEVELS) and not is_left(level)
    ]
    # The levels were read just now, so they overrule what we wrote before.
    bounds = PlanPolicy(cluster_id=request.cluster_id, inputs_at={SNAPSHOT: now})
    return Switch(request, levels, plan(rows, now, bounds, connection, ledger))


def _can_be_set(level: str) -> bool:
    try:
        REQUEST_LOGGER.canonical(level)
    except ValueError:
        return False
    return True


def _brokers(configs: LiveConfigs) -> list[int]:
    try:
        brokers = configs.state.brokers()
    except UnansweredError as error:
        raise KafkaError(f"the cluster did not list its brokers: {error}") from None
    return sorted(broker["broker_id"] for broker in brokers if not broker["is_fenced"])


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
