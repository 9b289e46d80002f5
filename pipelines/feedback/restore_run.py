"""`quotaflow restore`: sets configs whose lease ended back to their baseline."""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.feedback import (
    exclusive_section,
    journal,
    other_writers,
    plan_policy,
    preflight,
    restore_plan,
)
from quotaflow.pipelines.feedback.change_writer import Configs, resolve_open
from quotaflow.pipelines.feedback.desired_configs import ConfigEntity
from quotaflow.pipelines.feedback.kafka_configs import Connection
from quotaflow.pipelines.feedback.ledger import YIELDED, Ledger, Record
from quotaflow.pipelines.feedback.other_writers import Named
from quotaflow.pipelines.feedback.outcome import Outcome
from quotaflow.pipelines.feedback.restore_plan import Key, LaterWriter, RestorePlan, YieldedConfig
from quotaflow.pipelines.kafka.cluster_state import UnansweredError
from quotaflow.pipelines.warehouse.tables import Tables, open_tables
from quotaflow.schemas.configs import CLIENT_METRICS
from quotaflow.schemas.tables.config_alterations import CONFIG_ALTERATIONS

Report = Callable[[str], None]
PLAN_ID = "restore"


def preview(conf: Conf, now: datetime, *, everything: bool = False) -> RestorePlan:
    """What a restore would do now. Nothing is written."""
    with exclusive_section.open_cluster(conf) as (cluster_id, configs):
        tables = open_tables(conf)
        ledger = exclusive_section.for_cluster(journal.read_ledger(tables), cluster_id)
        # An exclusive section begins with these ends.
        ledger = ledger.with_ends(resolve_open(configs, ledger, lambda: now))
        return plan_restore(conf, tables, ledger, configs, now, everything=everything)


def restore_configs(
    conf: Conf,
    report: Report,
    stopped: Callable[[], str | None] = lambda: None,
    on_step: Report = lambda _: None,
    *,
    everything: bool = False,
    keys: Collection[Key] | None = None,
) -> tuple[RestorePlan, list[Outcome]]:
    """Restore what is due, or everything, or these `keys` alone. Returns how each change ended."""
    with exclusive_section.acquired(conf, report, stopped, on_step) as taken:
        apply = taken.apply
        ledger = taken.ledger if keys is None else taken.ledger.restricted_to(keys)
        everything = everything or keys is not None
        restore = plan_restore(
            conf, taken.tables, ledger, apply.configs, datetime.now(UTC), everything=everything
        )
        now = apply.clock()
        apply.journal.add(
            [_yielded(each, apply.run_id, n, now) for n, each in enumerate(restore.yielded)]
        )
        on_step("yielded")
        return restore, apply.run(PLAN_ID, restore.changes) if restore.changes else []


def plan_restore(
    conf: Conf, tables: Tables, ledger: Ledger, configs: Configs, now: datetime, *, everything: bool
) -> RestorePlan:
    """The restore plan of a ledger, by what the cluster has now.

    The guards of a plan apply, too. How many entities change at once has no limit: to give back is
    the safe direction.
    """
    owned, unknown = restore_plan.writable(
        restore_plan.expired(ledger, now, include_all=everything)
    )
    actual: dict[ConfigEntity, Mapping[str, str]] = {}
    for entity in dict.fromkeys(key[0] for key in owned):
        with suppress(UnansweredError):
            actual[entity] = configs.read(entity)
    # A broker's clock may be ahead of ours: our own write, by another login of ours, must not count
    # as a later write of somebody else.
    skew = timedelta(seconds=conf.ingest.max_clock_skew_s)
    since = {key: config.since + skew for key, config in owned.items()}
    named = {
        key: {entry: at + skew for entry, at in config.entry_times.items()}
        for key, config in owned.items()
    }
    by = later_writers(conf, tables, since, named)
    connection = Connection.from_conf(conf)
    restore = restore_plan.plan_restore(owned, actual, by, connection)
    restore = replace(restore, refused=unknown)
    restore = restore_plan.permitted(restore, actual, plan_policy.from_conf(conf), connection)
    if not everything:
        restore = restore_plan.oldest_first(restore)
    # Last, because it checks each resource as if those before it in this order were written.
    return _without_harmful(tables, restore, actual, connection)


def _without_harmful(
    tables: Tables,
    unchecked: RestorePlan,
    actual: restore_plan.Actual,
    connection: Connection,
) -> RestorePlan:
    """Block what would harm a live client; nothing is blocked if no table has clients."""
    entities = [c.entity for c in unchecked.changes if c.entity.entity_type == CLIENT_METRICS]
    if not entities or not preflight.is_readable(tables):
        return unchecked
    check = preflight.read(tables, entities[0].cluster_id)
    # The last snapshot may be older than our writes.
    ours = {entity.entity_name or "": actual[entity] for entity in entities}
    return restore_plan.without_harmful(
        unchecked, replace(check, resources={**check.resources, **ours}), connection
    )


def later_writers(
    conf: Conf, tables: Tables, since: Mapping[Key, datetime], named: Named | None = None
) -> dict[Key, LaterWriter]:
    """Later writers of these configs, and of list entries that are ours.

    Empty if no request log was ingested.
    """
    if not tables.is_made(CONFIG_ALTERATIONS.name):
        return {}
    own = conf.kafka.own_principal
    return other_writers.later_writers(tables, since, own, named)


def _yielded(each: YieldedConfig, run_id: str, number: int, now: datetime) -> Record:
    record = each.owned.record
    return replace(
        record,
        event_time=now,
        run_id=run_id,
        number=number,
        step=YIELDED,
        detail=each.reason,
    )
