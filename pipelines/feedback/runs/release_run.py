"""`quotaflow release`: a person allows plans to change a config that another login set."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from quotaflow.pipelines.errors import ConfigError, FeedbackError
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.pipelines.feedback.ledger import journal
from quotaflow.pipelines.feedback.ledger.ledger import RELEASED, Key, Ledger, Record
from quotaflow.pipelines.feedback.planning import guards, halt, holds, other_writers
from quotaflow.pipelines.feedback.planning.holds import Alteration, SeenConfig
from quotaflow.pipelines.feedback.runs.context import Context
from quotaflow.pipelines.feedback.writing import exclusive_section
from quotaflow.pipelines.feedback.writing.change_writer import Configs
from quotaflow.pipelines.kafka.cluster_state import UnansweredError
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.schemas.configs import ENTITY_TYPES, USER
from quotaflow.udfs.rules.principal_name import quota_user

PLAN_ID = PURPOSE = "release"
_OPERATION = "RELEASE"


@dataclass(frozen=True, slots=True)
class Request:
    """The config that a person names: without an entity name the default of all users."""

    entity_type: str
    entity_name: str | None
    client_id: str | None
    config_key: str

    @classmethod
    def parse(cls, entity: str, config_key: str, client_id: str | None) -> "Request":
        """Read ENTITY_TYPE/NAME, a user in any form. Raises ConfigError if no plan writes it."""
        entity_type, slash, text = entity.partition("/")
        name = quota_user(text) if entity_type == USER else text
        named = ConfigEntity("", entity_type, name if slash else None, client_id)
        is_known = bool(named.entity_name) or guards.is_writable_default(named, config_key)
        if not is_known or entity_type not in ENTITY_TYPES:
            types = ", ".join(sorted(ENTITY_TYPES))
            raise ConfigError(f"{entity}: give ENTITY_TYPE/NAME, where the type is one of {types}")
        problem = guards.config_problem(named, config_key)
        if problem is not None:
            raise ConfigError(problem)
        return cls(entity_type, named.entity_name, client_id, config_key)

    def key(self, cluster_id: str) -> Key:
        """The config in a cluster."""
        entity = ConfigEntity(cluster_id, self.entity_type, self.entity_name, self.client_id)
        return entity, self.config_key


@dataclass(frozen=True, slots=True)
class Release:
    """A config, its value now, and why plans leave it alone; `reason` is None if they do not."""

    key: Key
    value: str | None
    reason: str | None


def preview(context: Context, request: Request, now: datetime) -> Release:
    """What a release would allow. Nothing is written."""
    with exclusive_section.open_cluster(context.writes) as (cluster_id, configs):
        tables = context.tables
        ledger = journal.read_ledger(tables)
        key = request.key(cluster_id)
        return _release(_alteration(context, tables, key), ledger, configs, key, now)


def release(context: Context, request: Request, report: Callable[[str], None]) -> Release:
    """Record that plans may change the config. Does nothing if they may already.

    Raises FeedbackError if its entity does not answer, or nothing may be written.
    """
    with exclusive_section.acquired(context.writes, report) as section:
        key, apply = request.key(section.cluster_id), section.apply
        now = apply.clock()
        last = _alteration(context, section.tables, key)
        made = _release(last, section.ledger, apply.configs, key, now)
        if made.reason is not None:
            apply.journal.add([record(made, apply.run_id, now)])
        return made


def release_halt(context: Context, report: Callable[[str], None]) -> str:
    """Record that plans may write again although the cluster is worse. Returns the cluster's id."""
    with exclusive_section.acquired(context.writes, report) as section:
        apply, cluster_id = section.apply, section.cluster_id
        text = "a person releases it"
        apply.journal.add([halt.record(cluster_id, RELEASED, text, apply.run_id, apply.clock())])
        return cluster_id


def record(made: Release, run_id: str, now: datetime) -> Record:
    """The record of a release. Its value is what another login set: the next baseline."""
    entity, config_key = made.key
    text = "\0".join((*entity.order, config_key))
    return Record(
        event_time=now,
        run_id=run_id,
        number=0,
        plan_id=PLAN_ID,
        change_id=hashlib.sha256(text.encode()).hexdigest()[:12],
        purpose=PURPOSE,
        step=RELEASED,
        entity=entity,
        config_key=config_key,
        operation=_OPERATION,
        prior_value=made.value,
        config_value=made.value,
        reason=made.reason or "",
        evidence_table="config_writers",
        evidence_key=f"{entity.entity_type}={entity.entity_name or ''} config_key={config_key}",
    )


def _alteration(context: Context, tables: Reader, key: Key) -> Alteration | None:
    return other_writers.last_alterations(tables, {key}, context.plans.own_principal).get(key)


def _release(
    last: Alteration | None, ledger: Ledger, configs: Configs, key: Key, now: datetime
) -> Release:
    try:
        value = configs.read(key[0]).get(key[1])
    except UnansweredError as error:
        raise FeedbackError(f"{key[0]}: {error}: nothing was released") from error
    seen = SeenConfig(value, now)
    return Release(key, value, holds.hold_reason(key, seen, last, ledger))
