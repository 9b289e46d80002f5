"""`quotaflow apply`: a plan of now, or a frozen one, tried on the cluster or written to it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import groupby

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import FeedbackError
from quotaflow.pipelines.feedback import (
    exclusive_section,
    frozen_plans,
    guards,
    planning,
    restore_run,
)
from quotaflow.pipelines.feedback.change import RENEW, Change, Plan
from quotaflow.pipelines.feedback.change_writer import Configs, look
from quotaflow.pipelines.feedback.frozen_plans import Frozen
from quotaflow.pipelines.feedback.ledger import BEGUN, DONE, MOVED, Ledger
from quotaflow.pipelines.feedback.outcome import ACCEPTED, SO_ALREADY, Outcome
from quotaflow.pipelines.feedback.restore_plan import Key, Setter
from quotaflow.pipelines.warehouse import views
from quotaflow.schemas.tables.catalog import TABLES

Said = Callable[[str], None]
Stopped = Callable[[], str | None]


def tried(conf: Conf, wanted: Frozen | None, now: datetime) -> tuple[Plan, list[Outcome]]:
    """The plan, and what brokers would say to each of its changes; nothing is written."""
    plan = _plan(conf, wanted, now)
    with exclusive_section.cluster(conf) as (cluster_id, configs):
        _check_cluster(plan, cluster_id)
        seen = [outcome for group in _groups(plan) for outcome in look(configs, group)]
        return plan, [replace(o, step=ACCEPTED) if o.step == BEGUN else o for o in seen]


def applied(
    conf: Conf,
    wanted: Frozen | None,
    report: Said,
    stopped: Stopped = lambda: None,
    passed: Said = lambda _: None,
) -> tuple[Plan, list[Outcome]]:
    """Write a plan; how each change ended.

    Raises FeedbackError where nothing may be written, also where a frozen plan no longer fits what
    the cluster has: then none of it is.
    """
    with exclusive_section.taken(conf, report, stopped, passed) as taken:
        now = datetime.now(UTC)
        plan = _plan(conf, wanted, now)
        _check_cluster(plan, taken.cluster_id)
        if not plan.changes:
            return plan, []
        if wanted is None:
            frozen_plans.keep(conf, taken.rows, taken.ledger, plan, now)
            return plan, taken.apply.run(plan.plan_id, plan.changes)
        told = _altered(conf, wanted)
        left, ended = still_fitting(wanted, taken.apply.configs, taken.ledger, told)
        return plan, [*ended, *taken.apply.run(plan.plan_id, left)]


def problem(outcomes: Sequence[Outcome]) -> str | None:
    """What did not end as it was planned; None where all did."""
    missed = [outcome for outcome in outcomes if outcome.step not in {DONE, SO_ALREADY}]
    return f"{len(missed)} of {len(outcomes)} changes were not made" if missed else None


def _plan(conf: Conf, wanted: Frozen | None, now: datetime) -> Plan:
    if wanted is None:
        return planning.make(conf, now)
    most = timedelta(seconds=conf.plan.max_plan_age_s)
    if now - wanted.at > most:
        raise FeedbackError(
            f"plan {wanted.plan.plan_id} was frozen at {wanted.at:%Y-%m-%d %H:%M:%S} UTC, and "
            f"plan.max_plan_age_s is {conf.plan.max_plan_age_s}: plan anew"
        )
    evidence = {change.desired.evidence_table for change in wanted.plan.changes}
    for name in sorted(evidence - TABLES.keys() - views.load().keys()):
        raise FeedbackError(
            f"plan {wanted.plan.plan_id} stands on {name}, which this release does not have: "
            "plan anew"
        )
    for name, why in sorted(planning.unsound(conf, evidence).items()):
        raise FeedbackError(f"plan {wanted.plan.plan_id}: of {name}, {why}")
    bounds = planning.bounds_now(conf, now)
    for group in _groups(wanted.plan):
        rows = tuple(change.desired for change in group)
        whys = (guards.write_problem(change.written, bounds) for change in group)
        # Other clients may live now than when it was made.
        why_not = next((why for why in whys if why), None) or bounds.harm(rows)
        if why_not is not None:
            raise FeedbackError(f"plan {wanted.plan.plan_id}: {group[0].entity}: {why_not}")
    return wanted.plan


def _altered(conf: Conf, wanted: Frozen) -> Mapping[Key, Setter]:
    """Who else altered what a plan is about since it was frozen."""
    since = dict.fromkeys((c.desired.key for c in wanted.plan.changes), wanted.at)
    return restore_run.setters(conf, since)


def _check_cluster(plan: Plan, cluster_id: str) -> None:
    others = sorted({c.entity.cluster_id for c in plan.changes} - {cluster_id})
    if others:
        raise FeedbackError(
            f"the plan is for cluster {others[0]}, and this is {cluster_id}: nothing was written"
        )


def still_fitting(
    wanted: Frozen, configs: Configs, ledger: Ledger, altered: Mapping[Key, Setter]
) -> tuple[list[Change], list[Outcome]]:
    """The changes of a frozen plan that are to be made, and how its others have ended.

    `altered` tells who else altered what it is about since. Raises FeedbackError where any of it no
    longer fits: then none of it may be written.
    """
    plan = wanted.plan
    seen = [outcome for group in _groups(plan) for outcome in look(configs, group)]
    moved = [_unless_altered(each, altered) for each in seen]
    moved = [outcome for outcome in moved if outcome.step not in {BEGUN, SO_ALREADY}]
    if moved:
        first = moved[0]
        raise FeedbackError(
            f"{first.change.entity}: {first.change.desired.config_key}: {first.detail}; and so "
            f"nothing of plan {plan.plan_id} was written ({len(moved)} of {len(seen)} changes no "
            "longer fit): plan anew"
        )
    used_up = frozen_plans.done_since(ledger, plan, wanted.at)
    # What stands goes on: that cannot be seen in the cluster, and needs no second time.
    renewed = {
        change.change_id
        for change in plan.changes
        if change.operation.name == RENEW and change.change_id in used_up
    }
    if any(o.step == BEGUN and o.change.change_id in used_up - renewed for o in seen):
        raise FeedbackError(
            f"plan {plan.plan_id} was applied before, and what it wrote was given back: plan anew"
        )
    left = [change for change in plan.changes if change.change_id not in renewed]
    ended = [change for change in plan.changes if change.change_id in renewed]
    return left, [Outcome(change, SO_ALREADY, "renewed before") for change in ended]


def _unless_altered(outcome: Outcome, altered: Mapping[Key, Setter]) -> Outcome:
    """A value that is as it was planned on may be meant anew: what is left over no longer is."""
    setter = altered.get(outcome.change.desired.key)
    if setter is None or outcome.step != BEGUN:
        return outcome
    return replace(outcome, step=MOVED, detail=f"{setter.who} altered it since it was planned")


def _groups(plan: Plan) -> Iterator[list[Change]]:
    for _, of in groupby(plan.changes, key=lambda change: change.entity):
        yield list(of)
