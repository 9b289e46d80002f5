"""`quotaflow apply`: validates a plan of now, or a frozen one, or writes it to the cluster."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import groupby

from quotaflow.pipelines.errors import FeedbackError
from quotaflow.pipelines.feedback.configs.change import RENEW, Change, FrozenPlan, Plan
from quotaflow.pipelines.feedback.configs.cluster_facts import NO_FACTS
from quotaflow.pipelines.feedback.ledger import journal
from quotaflow.pipelines.feedback.ledger.ledger import DONE, MOVED, STARTED, Key, Ledger
from quotaflow.pipelines.feedback.ledger.outcome import ACCEPTED, ALREADY_SET, Outcome
from quotaflow.pipelines.feedback.planning import halt, other_writers, planning, trusted_bounds
from quotaflow.pipelines.feedback.planning.blast_radius import Room
from quotaflow.pipelines.feedback.planning.planning import PlanConf
from quotaflow.pipelines.feedback.planning.recheck import Recheck
from quotaflow.pipelines.feedback.planning.restore_plan import LaterWriter
from quotaflow.pipelines.feedback.planning.trusted_bounds import TrustedBounds
from quotaflow.pipelines.feedback.runs import frozen_plans
from quotaflow.pipelines.feedback.runs.context import Context
from quotaflow.pipelines.feedback.writing import exclusive_section
from quotaflow.pipelines.feedback.writing.change_writer import Configs, Distrust, preview
from quotaflow.pipelines.feedback.writing.exclusive_section import ExclusiveSection
from quotaflow.schemas.configs import QUOTA_ENTITIES
from quotaflow.udfs.counted import counted, noun

Report = Callable[[str], None]
Stopped = Callable[[], str | None]


def dry_run(
    context: Context, approved_plan: FrozenPlan | None, now: datetime
) -> tuple[Plan, list[Outcome]]:
    """The plan, and how brokers would answer each of its changes. Nothing is written."""
    conf = context.plans
    tables = context.tables
    ledger = journal.read_ledger(tables)
    if approved_plan is None:
        plan = planning.make(conf, tables, now, ledger)
    else:
        plan = approved_plan.plan
        planning.checked(conf, tables, approved_plan, now, ledger)
    with exclusive_section.open_cluster(context.writes) as (cluster_id, configs):
        _check_cluster(plan, cluster_id)
        distrust = distrusting(conf.trusted, configs, ledger)
        seen = [outcome for group in _groups(plan) for outcome in preview(configs, group, distrust)]
        return plan, [replace(o, step=ACCEPTED) if o.step == STARTED else o for o in seen]


def apply_plan(
    context: Context,
    approved_plan: FrozenPlan | None,
    report: Report,
    stopped: Stopped = lambda: None,
    on_step: Report = lambda _: None,
) -> tuple[Plan, list[Outcome]]:
    """Write a plan. Returns the plan and how each change ended.

    Raises FeedbackError if nothing may be written. A frozen plan is written whole or not at all: if
    a part of it no longer fits the cluster, nothing is written.
    """
    with exclusive_section.acquired(context.writes, report, stopped, on_step) as section:
        if approved_plan is None:
            return _apply_new(context.plans, section)
        return approved_plan.plan, _apply_approved(context.plans, section, approved_plan)


def _apply_new(conf: PlanConf, section: ExclusiveSection) -> tuple[Plan, list[Outcome]]:
    apply, ledger, now = section.apply, section.ledger, datetime.now(UTC)
    plan = planning.make(conf, section.tables, now, ledger)
    _check_cluster(plan, section.cluster_id)
    of_halt = halt.records(plan, ledger, section.cluster_id, apply.run_id, apply.clock())
    apply.journal.add(list(of_halt))
    if not plan.changes:
        return plan, []
    max_age = timedelta(seconds=conf.plan.max_plan_age_s)
    frozen_plans.refreeze(section.tables, section.rows, ledger, plan, now, max_age=max_age)
    distrust = distrusting(conf.trusted, apply.configs, ledger)
    return plan, _run(conf, section, plan.plan_id, plan.changes, distrust)


def _apply_approved(
    conf: PlanConf, section: ExclusiveSection, approved_plan: FrozenPlan
) -> list[Outcome]:
    plan, now = approved_plan.plan, datetime.now(UTC)
    tables, ledger, configs = section.tables, section.ledger, section.apply.configs
    policy = planning.checked(conf, tables, approved_plan, now, ledger)
    _check_cluster(plan, section.cluster_id)
    since = dict.fromkeys((change.desired.key for change in plan.changes), approved_plan.frozen_at)
    altered = other_writers.later_writers(tables, since, conf.own_principal)
    distrust = distrusting(conf.trusted, configs, ledger)
    left, ended = still_fitting(approved_plan, configs, ledger, altered, distrust)
    room = None if policy.blast_radius is None else Room(policy.blast_radius, ledger, now)
    return [*ended, *_run(conf, section, plan.plan_id, left, distrust, room=room)]


def _run(
    conf: PlanConf,
    section: ExclusiveSection,
    plan_id: str,
    changes: Sequence[Change],
    distrust: Distrust,
    *,
    room: Room | None = None,
) -> list[Outcome]:
    """Write changes whose reason still exists just before each write; leave the others out."""

    def fresh() -> Plan:
        tables = section.rows.tables()
        now, ledger = datetime.now(UTC), section.ledger_now(tables)
        return planning.make(conf, tables, now, ledger, is_bounded=False)

    recheck = Recheck(fresh, lambda: datetime.now(UTC), room)
    return replace(section.apply, veto=recheck, distrust=distrust).run(plan_id, changes)


def distrusting(
    bounds: TrustedBounds,
    configs: Configs,
    ledger: Ledger,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Distrust:
    """What asks conf, the cluster and our ledger about changes, and no table."""
    allowed: dict[Key, Change] = {}

    def why(changes: Sequence[Change], actual: Mapping[str, str]) -> str | None:
        is_quota = changes[0].entity.entity_type in QUOTA_ENTITIES
        facts = configs.facts() if is_quota else NO_FACTS
        reason = trusted_bounds.problem(
            changes, actual, bounds, ledger, clock(), facts=facts, earlier=allowed.values()
        )
        allowed.update({c.desired.key: c for c in changes} if reason is None else {})
        return reason

    return why


def failure_summary(outcomes: Sequence[Outcome]) -> str | None:
    """How many changes were not made; None if all were."""
    missed = [outcome for outcome in outcomes if outcome.step not in {DONE, ALREADY_SET}]
    changes = f"{len(missed)} of {counted(len(outcomes), 'change')}"
    return f"{changes} {noun(len(missed), 'was', 'were')} not made" if missed else None


def _check_cluster(plan: Plan, cluster_id: str) -> None:
    others = sorted({c.entity.cluster_id for c in plan.changes} - {cluster_id})
    if others:
        raise FeedbackError(
            f"the plan is for cluster {others[0]}, and this is {cluster_id}: nothing was written"
        )


def still_fitting(
    approved_plan: FrozenPlan,
    configs: Configs,
    ledger: Ledger,
    altered: Mapping[Key, LaterWriter],
    distrust: Distrust = lambda *_: None,
) -> tuple[list[Change], list[Outcome]]:
    """The changes of a frozen plan that are still to be made, and the outcomes of the others.

    `altered`: configs that another login altered since the freeze. Raises FeedbackError if any
    change no longer fits: then nothing of the plan may be written.
    """
    plan = approved_plan.plan
    seen = [outcome for group in _groups(plan) for outcome in preview(configs, group, distrust)]
    moved = [_unless_altered(each, altered) for each in seen]
    moved = [outcome for outcome in moved if outcome.step not in {STARTED, ALREADY_SET}]
    if moved:
        first = moved[0]
        raise FeedbackError(
            f"{first.change.entity}: {first.change.desired.config_key}: {first.detail}; and so "
            f"nothing of plan {plan.plan_id} was written ({len(moved)} of "
            f"{counted(len(seen), 'change')} no longer {noun(len(moved), 'fits', 'fit')}): plan "
            "again"
        )
    used_up = frozen_plans.done_since(ledger, plan, approved_plan.frozen_at)
    # A renewal cannot be seen in the cluster, and needs no second time.
    renewed = {
        change.change_id
        for change in plan.changes
        if change.operation.name == RENEW and change.change_id in used_up
    }
    if any(o.step == STARTED and o.change.change_id in used_up - renewed for o in seen):
        raise FeedbackError(
            f"plan {plan.plan_id} was applied before, and what it wrote was restored: plan again"
        )
    left = [change for change in plan.changes if change.change_id not in renewed]
    ended = [change for change in plan.changes if change.change_id in renewed]
    return left, [Outcome(change, ALREADY_SET, "renewed before") for change in ended]


def _unless_altered(outcome: Outcome, altered: Mapping[Key, LaterWriter]) -> Outcome:
    """MOVED if another login altered the config, even back to the value that was planned on."""
    setter = altered.get(outcome.change.desired.key)
    if setter is None or outcome.step != STARTED:
        return outcome
    return replace(outcome, step=MOVED, detail=f"{setter.writer} altered it since it was planned")


def _groups(plan: Plan) -> Iterator[list[Change]]:
    for _, group in groupby(plan.changes, key=lambda change: change.entity):
        yield list(group)
