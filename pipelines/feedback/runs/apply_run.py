"""`quotaflow apply`: validates a plan of now, or a frozen one, or writes it to the cluster."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import groupby

from quotaflow.pipelines.errors import FeedbackError
from quotaflow.pipelines.feedback.configs.change import APPLY, RENEW, Change, Plan
from quotaflow.pipelines.feedback.configs.cluster_facts import NO_FACTS
from quotaflow.pipelines.feedback.ledger import journal
from quotaflow.pipelines.feedback.ledger.ledger import DONE, MOVED, STARTED, Key, Ledger, Record
from quotaflow.pipelines.feedback.ledger.outcome import ACCEPTED, ALREADY_SET, Outcome
from quotaflow.pipelines.feedback.planning import (
    guards,
    halt,
    plan_policy,
    planning,
    strimzi,
    trusted_bounds,
)
from quotaflow.pipelines.feedback.planning.blast_radius import Room
from quotaflow.pipelines.feedback.planning.plan_conf import PlanConf
from quotaflow.pipelines.feedback.planning.recheck import Recheck
from quotaflow.pipelines.feedback.planning.restore_plan import LaterWriter
from quotaflow.pipelines.feedback.planning.trusted_bounds import TrustedBounds
from quotaflow.pipelines.feedback.runs import frozen_plans, restore_run
from quotaflow.pipelines.feedback.runs.context import Context
from quotaflow.pipelines.feedback.runs.frozen_plans import FrozenPlan
from quotaflow.pipelines.feedback.writing import exclusive_section
from quotaflow.pipelines.feedback.writing.change_writer import Configs, Distrust, preview
from quotaflow.pipelines.feedback.writing.exclusive_section import ExclusiveSection
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.tables import Tables
from quotaflow.schemas.configs import QUOTA_ENTITIES
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.counted import counted, noun

Report = Callable[[str], None]
Stopped = Callable[[], str | None]


def dry_run(
    context: Context, approved_plan: FrozenPlan | None, now: datetime
) -> tuple[Plan, list[Outcome]]:
    """The plan, and how brokers would answer each of its changes. Nothing is written."""
    tables = context.tables
    plan = _plan(context.plans, tables, approved_plan, now)
    with exclusive_section.open_cluster(context.writes) as (cluster_id, configs):
        _check_cluster(plan, cluster_id)
        distrust = distrusting(context.plans.trusted, configs, journal.read_ledger(tables))
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
    conf = context.plans
    with exclusive_section.acquired(context.writes, report, stopped, on_step) as taken:
        now = datetime.now(UTC)
        plan = _plan(conf, taken.tables, approved_plan, now, taken.ledger)
        _check_cluster(plan, taken.cluster_id)
        if approved_plan is None:
            taken.apply.journal.add(_halt_records(plan, taken))
        if not plan.changes:
            return plan, []
        if approved_plan is None:
            max_age = timedelta(seconds=conf.plan.max_plan_age_s)
            frozen_plans.refreeze(
                taken.tables, taken.rows, taken.ledger, plan, now, max_age=max_age
            )
            return plan, _run(conf, taken, plan, plan.changes, None)
        altered = _altered(conf.own_principal, taken.tables, approved_plan)
        distrust = distrusting(conf.trusted, taken.apply.configs, taken.ledger)
        left, ended = still_fitting(
            approved_plan, taken.apply.configs, taken.ledger, altered, distrust
        )
        radius = plan_policy.for_plan(conf, taken.tables, now, taken.ledger).blast_radius
        room = None if radius is None else Room(radius, taken.ledger, now)
        return plan, [*ended, *_run(conf, taken, plan, left, room)]


def _halt_records(plan: Plan, section: ExclusiveSection) -> list[Record]:
    apply, cluster_id = section.apply, section.cluster_id
    return list(halt.records(plan, section.ledger, cluster_id, apply.run_id, apply.clock()))


def _run(
    conf: PlanConf,
    section: ExclusiveSection,
    plan: Plan,
    changes: Sequence[Change],
    room: Room | None,
) -> list[Outcome]:
    """Write changes whose reason still exists just before each write; leave the others out."""
    apply = section.apply

    def fresh() -> Plan:
        tables = section.rows.tables()
        ledger = exclusive_section.trusted_ledger(section, tables)
        return planning.make(conf, tables, datetime.now(UTC), ledger, is_bounded=False)

    recheck = Recheck(fresh, lambda: datetime.now(UTC), room)
    distrust = distrusting(conf.trusted, apply.configs, section.ledger)
    return replace(apply, veto=recheck, distrust=distrust).run(plan.plan_id, changes)


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


def _plan(
    conf: PlanConf,
    tables: Tables,
    approved_plan: FrozenPlan | None,
    now: datetime,
    ledger: Ledger | None = None,
) -> Plan:
    if approved_plan is None:
        return planning.make(conf, tables, now, ledger)
    plan, frozen_at = approved_plan.plan, approved_plan.frozen_at
    if now - frozen_at > timedelta(seconds=conf.plan.max_plan_age_s):
        raise FeedbackError(
            f"plan {plan.plan_id} was frozen at {frozen_at:%Y-%m-%d %H:%M:%S} UTC, "
            f"and plan.max_plan_age_s is {conf.plan.max_plan_age_s}: plan again"
        )
    evidence = {change.desired.evidence_table for change in plan.changes}
    for name in sorted(evidence - TABLES.keys() - views.load().keys()):
        raise FeedbackError(
            f"plan {plan.plan_id} rests on {name}, which this release does not have: plan again"
        )
    for name, why in sorted(conf.evidence.unusable(tables, evidence, now).items()):
        raise FeedbackError(f"plan {plan.plan_id}: of {name}, {why}")
    ours = journal.read_ledger(tables) if ledger is None else ledger
    bounds = plan_policy.for_plan(conf, tables, now, ours)
    rows = [change.desired for change in plan.changes]
    bounds = plan_policy.with_holds(
        bounds, conf.own_principal, tables, rows, frozen_at, ledger=ours
    )
    operator = bounds.user_operator
    if operator is not None and any(map(strimzi.is_concerned, plan.changes)):
        raise FeedbackError(f"plan {plan.plan_id}: {operator} writes quotas of users: plan again")
    is_giving_back = all(change.purpose != APPLY for change in plan.changes)
    if bounds.halt is not None and not is_giving_back:
        raise FeedbackError(f"plan {plan.plan_id}: {bounds.halt.reason}")
    for group in _groups(plan):
        whys = (guards.write_problem(change.written, bounds) for change in group)
        # The clients that are live now may differ from those at planning time.
        why_not = next((why for why in whys if why), None) or bounds.harm(
            tuple(change.desired for change in group)
        )
        if why_not is not None:
            raise FeedbackError(f"plan {plan.plan_id}: {group[0].entity}: {why_not}")
    return plan


def _altered(
    own_principal: str | None, tables: Tables, approved_plan: FrozenPlan
) -> Mapping[Key, LaterWriter]:
    """Configs of the plan that another login altered since it was frozen."""
    since = dict.fromkeys(
        (c.desired.key for c in approved_plan.plan.changes), approved_plan.frozen_at
    )
    return restore_run.later_writers(own_principal, tables, since)


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
