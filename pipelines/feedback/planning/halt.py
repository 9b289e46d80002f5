"""The automatic halt: after a change that made the cluster worse, plans only restore. Pure.

A halt is a record of the journal, so it lasts when its windows are over. It ends when the cluster
is well again, or when a person releases it.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from quotaflow.pipelines.feedback.configs.change import BlockedChange, Halt, Plan, Trial
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection
from quotaflow.pipelines.feedback.ledger.ledger import HALTED, RELEASED, Key, Ledger, Record
from quotaflow.pipelines.feedback.planning import guards, restore_plan
from quotaflow.pipelines.feedback.planning.guards import PlanPolicy
from quotaflow.schemas.configs import USER

HALT = "halt"
PLAN_ID = PURPOSE = OPERATION = HALT
_OF_PRINCIPAL = "principal="
_TIME = "%Y-%m-%d %H:%M:%S UTC"


def key(cluster_id: str) -> Key:
    """The key under which the journal has halts of a cluster: no config of Kafka."""
    return ConfigEntity(cluster_id, "cluster", None), HALT


def trial(ledger: Ledger, cluster_id: str, now: datetime, period: timedelta) -> Trial | None:
    """The newest run of plans that wrote to a cluster, if its effect still has to be watched.

    Its effect is watched for `period` after its end, and while a halt lasts. None too if a person
    released a halt after it.
    """
    halted = ledger.halts.get(cluster_id)
    writes = [record for record in ledger.applied if record.entity.cluster_id == cluster_id]
    run_id = halted.evidence_key if halted else writes[-1].run_id if writes else None
    times = [record.event_time for record in writes if record.run_id == run_id]
    if halted is not None and not times:
        times = [halted.event_time]
    if run_id is None or not times or (halted is None and now - max(times) > period):
        return None
    released = ledger.released.get(key(cluster_id))
    if released is not None and released.event_time > max(times):
        return None
    records = [record for record in writes if record.run_id == run_id]
    entities = frozenset(record.entity for record in records)
    principals = frozenset(name for each in records if (name := _principal(each)))
    return Trial(run_id, min(times), max(times), entities, principals)


def _principal(record: Record) -> str | None:
    """Whom a write limits: the user, or the principal at an address that is its evidence."""
    entity = record.entity
    if entity.entity_type == USER:
        # A default changes all users, and none of them may have more errors.
        return None if entity.is_default else f"User:{entity.entity_name}"
    if not record.evidence_key.startswith(_OF_PRINCIPAL):
        return None
    # A principal may have any text in its name, an address has no blank.
    evidence = record.evidence_key.removeprefix(_OF_PRINCIPAL)
    return evidence.rpartition(" client_address=")[0] or evidence


def reason(trial: Trial, why: str) -> str:
    """Why nothing but restoring may be written."""
    names = ", ".join(sorted(map(str, trial.entities))) or trial.run_id
    return (
        f"halted: the cluster is worse since {trial.started_at:{_TIME}}, when this was changed: "
        f"{names}: {why}. It ends when the cluster is well again, or with: quotaflow release halt"
    )


def halted_plan(
    plan: Plan, halt: Halt, bounds: PlanPolicy, connection: Connection, ledger: Ledger
) -> Plan:
    """The plan in which only what the last run wrote is restored, and all else is blocked."""
    owned = {
        key: config
        for key, config in ledger.owned.items()
        if config.record.run_id == halt.trial.run_id and key[0] in halt.trial.entities
    }
    actual: dict[ConfigEntity, dict[str, str]] = {}
    for (entity, config_key), config in owned.items():
        values = actual.setdefault(entity, {})
        values |= {} if config.value is None else {config_key: config.value}
    proposed = restore_plan.plan_restore(owned, actual, {}, connection).changes
    whys = {c.desired.key: guards.return_problem(c.written, bounds) for c in proposed}
    changes = tuple(c for c in proposed if whys[c.desired.key] is None)
    refused = [
        BlockedChange(change.desired, why)
        for change in proposed
        if (why := whys[change.desired.key]) is not None
    ]
    blocked = [BlockedChange(change.desired, halt.reason) for change in plan.changes]
    return Plan(changes, (*plan.blocked, *blocked, *refused), halt)


def records(
    plan: Plan, ledger: Ledger, cluster_id: str, run_id: str, now: datetime
) -> Iterator[Record]:
    """The record that a halt began, or that it ended because the cluster is well again."""
    is_halted = cluster_id in ledger.halts
    if plan.halt is not None and not is_halted:
        yield record(
            cluster_id, HALTED, plan.halt.reason, run_id, now, trial_run=plan.halt.trial.run_id
        )
    elif plan.halt is None and is_halted:
        yield record(cluster_id, RELEASED, "the cluster is well again", run_id, now)


def record(
    cluster_id: str, step: str, why: str, run_id: str, now: datetime, *, trial_run: str = ""
) -> Record:
    """A record of a halt or of its end."""
    entity, config_key = key(cluster_id)
    return Record(
        event_time=now,
        run_id=run_id,
        number=-1,
        plan_id=PLAN_ID,
        change_id=HALT,
        purpose=PURPOSE,
        step=step,
        entity=entity,
        config_key=config_key,
        operation=OPERATION,
        reason=why,
        evidence_table="requests",
        evidence_key=trial_run,
    )
