"""`quotaflow restore`: sets configs whose lease ended back to their baseline.

With --panic it restores everything by the leases of the cluster alone. It takes no lock and reads
no table, and neither disk nor clock can keep it from that.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from quotaflow.pipelines.errors import ConfigError, JobError, LockedError, QueryError
from quotaflow.pipelines.feedback.configs.change import RESTORE
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection
from quotaflow.pipelines.feedback.ledger import deployment, lease_topic
from quotaflow.pipelines.feedback.ledger.leases import read_book
from quotaflow.pipelines.feedback.ledger.ledger import YIELDED, Key, Ledger, Record
from quotaflow.pipelines.feedback.ledger.outcome import Outcome
from quotaflow.pipelines.feedback.ledger.signing import Signer
from quotaflow.pipelines.feedback.ledger.trust import TrustedLedger, judge
from quotaflow.pipelines.feedback.planning import other_writers, preflight, restore_plan
from quotaflow.pipelines.feedback.planning.restore_plan import RestorePlan, YieldedConfig
from quotaflow.pipelines.feedback.runs.context import Context
from quotaflow.pipelines.feedback.writing import exclusive_section, stop_file
from quotaflow.pipelines.feedback.writing.change_writer import ChangeWriter, Configs, resolve_open
from quotaflow.pipelines.kafka.cluster_state import UnansweredError
from quotaflow.pipelines.spark import failures
from quotaflow.pipelines.spark.spark_errors import bridge_errors
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.schemas.configs import CLIENT_METRICS

Report = Callable[[str], None]
Stopped = Callable[[], str | None]
PLAN_ID = "restore"


_UNSTORED: tuple[type[Exception], ...] = (
    LockedError,
    JobError,
    ConfigError,
    QueryError,
    OSError,
)
"""What keeps a restore from the tables, and not from the cluster."""


@dataclass(frozen=True, slots=True)
class PanicRestore:
    """What a panic restore does, or did, for one deployment."""

    deployment: str
    plan: RestorePlan
    outcomes: tuple[Outcome, ...] = ()


def preview(context: Context, now: datetime, *, everything: bool = False) -> RestorePlan:
    """What a restore would do now. Nothing is written."""
    with exclusive_section.open_cluster(context.writes) as (cluster_id, configs):
        tables = context.tables
        trust = exclusive_section.read_trust(context.writes, tables, cluster_id)
        return _preview(context, tables, configs, trust, now, everything=everything)


def preview_panic(context: Context, *, all_deployments: bool = False) -> list[PanicRestore]:
    """What a panic restore would do now. Nothing is written."""
    previews = []
    for signer in _signers(context, all_deployments=all_deployments):
        with (
            exclusive_section.open_cluster(context.writes) as (cluster_id, configs),
            exclusive_section.open_leases(context.writes) as topic,
        ):
            trust = judge([], signer, read_book(topic.read(), signer, cluster_id), cluster_id)
            now = datetime.now(UTC)
            restore = _preview(context, None, configs, trust, now, everything=True)
            previews.append(PanicRestore(signer.deployment, restore))
    return previews


def _preview(
    context: Context,
    tables: Reader | None,
    configs: Configs,
    trust: TrustedLedger,
    now: datetime,
    *,
    everything: bool,
) -> RestorePlan:
    # An exclusive section begins with these ends.
    ledger = trust.ledger.with_ends(resolve_open(configs, trust.ledger, lambda: now))
    restore = plan_restore(context, tables, ledger, configs, now, everything=everything)
    return replace(restore, distrusted=trust.refused)


def restore_configs(
    context: Context,
    report: Report,
    stopped: Stopped = lambda: None,
    on_step: Report = lambda _: None,
    *,
    everything: bool = False,
    keys: Collection[Key] | None = None,
) -> tuple[RestorePlan, list[Outcome]]:
    """Restore what is due, or everything, or these `keys` alone. Returns how each change ended.

    While another process writes the tables, or they cannot be written, the leases of the cluster
    say what is due, except for `keys`.
    """
    conf = context.writes
    conf.check()
    with exclusive_section.sole_writer(conf.warehouse):
        try:
            with exclusive_section.warehouse_section(
                conf, report, stopped, on_step, RESTORE
            ) as taken:
                ledger = taken.ledger if keys is None else taken.ledger.restricted_to(keys)
                every = everything or keys is not None
                trust = replace(taken.trust, ledger=ledger)
                return _restored(context, taken.tables, taken.apply, trust, everything=every)
        except _UNSTORED + bridge_errors() as error:
            if keys is not None:
                raise
            why = failures.one_line(error)
        report(f"restored by the leases of the cluster, and recorded by a later run: {why}")
        return restore_leases(
            context,
            deployment.signer(conf.feedback, conf.warehouse),
            _readable(context),
            stop_reason=lambda: stopped() or stop_file.reason(conf.stop_file),
            on_step=on_step,
            everything=everything,
        )


def restore_panic(
    context: Context, stopped: Stopped, *, all_deployments: bool = False
) -> list[PanicRestore]:
    """Restore everything of this deployment, or of all that our keys verify."""
    context.writes.check_permission()
    done = []
    for signer in _signers(context, all_deployments=all_deployments):
        plan, outcomes = restore_leases(context, signer, None, stop_reason=stopped, everything=True)
        done.append(PanicRestore(signer.deployment, plan, tuple(outcomes)))
    return done


def _signers(context: Context, *, all_deployments: bool) -> list[Signer]:
    """One for each deployment. Raises FeedbackError if the topic does not exist."""
    conf = context.writes
    own = deployment.signer(conf.feedback, conf.warehouse)
    with (
        exclusive_section.open_cluster(conf) as (cluster_id, _),
        exclusive_section.open_leases(conf) as topic,
    ):
        if isinstance(topic, lease_topic.MissingTopic):
            raise lease_topic.missing(topic.command)
        book = read_book(topic.read(), own, cluster_id)
    others = {each.deployment for each in book.others.values() if each.lease is not None}
    names = sorted(others) if all_deployments else []
    return [own, *(replace(own, deployment=name) for name in names)]


def restore_leases(
    context: Context,
    signer: Signer,
    tables: Reader | None,
    *,
    stop_reason: Stopped = lambda: None,
    on_step: Report = lambda _: None,
    everything: bool,
) -> tuple[RestorePlan, list[Outcome]]:
    """Restore what the leases of one deployment say, without a lock and without a table.

    Raises FeedbackError if the topic of leases does not exist.
    """
    with exclusive_section.without_tables(context.writes, signer, stop_reason, on_step) as section:
        return _restored(context, tables, section.apply, section.trust, everything=everything)


def _restored(
    context: Context,
    tables: Reader | None,
    apply: ChangeWriter,
    trust: TrustedLedger,
    *,
    everything: bool,
) -> tuple[RestorePlan, list[Outcome]]:
    now = datetime.now(UTC)
    restore = plan_restore(context, tables, trust.ledger, apply.configs, now, everything=everything)
    restore = replace(restore, distrusted=trust.refused)
    now = apply.clock()
    apply.journal.add(
        [_yielded(each, apply.run_id, n, now) for n, each in enumerate(restore.yielded)]
    )
    apply.on_step("yielded")
    return restore, apply.run(PLAN_ID, restore.changes) if restore.changes else []


def _readable(context: Context) -> Reader | None:
    """The tables of a folder, if they can be read: nobody else's writes keep them from that."""
    if context.writes.warehouse.catalog_schema:
        return None
    try:
        tables = context.newest_tables()
        tables.is_made("config_alterations")
    except _UNSTORED:
        return None
    return tables


def plan_restore(
    context: Context,
    tables: Reader | None,
    ledger: Ledger,
    configs: Configs,
    now: datetime,
    *,
    everything: bool,
) -> RestorePlan:
    """The restore plan of a ledger, by what the cluster has now.

    The guards of a plan apply, too. How many entities change at once has no limit: to restore is
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
    skew = context.clock_skew
    since = {key: config.since + skew for key, config in owned.items()}
    named = {
        key: {entry: at + skew for entry, at in config.entry_times.items()}
        for key, config in owned.items()
    }
    own = context.plans.own_principal
    by = {} if tables is None else other_writers.later_writers(tables, since, own, named)
    connection = context.plans.connection
    restore = restore_plan.plan_restore(owned, actual, by, connection)
    restore = replace(restore, refused=unknown)
    restore = restore_plan.permitted(restore, actual, context.plans.policy, connection)
    if not everything:
        restore = restore_plan.oldest_first(restore)
    if tables is None:
        return restore
    # Last, because it checks each resource as if those before it in this order were written.
    return _without_harmful(tables, restore, actual, connection)


def _without_harmful(
    tables: Reader,
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
