"""`quotaflow apply`: a plan of now, or a frozen one, tried on the cluster or written to it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import groupby

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import FeedbackError
from quotaflow.pipelines.feedback import frozen, planning, turn
from quotaflow.pipelines.feedback.apply import Configs, look
from quotaflow.pipelines.feedback.change import Change, Plan
from quotaflow.pipelines.feedback.frozen import Frozen
from quotaflow.pipelines.feedback.ledger import BEGUN, DONE, Ledger
from quotaflow.pipelines.feedback.outcome import ACCEPTED, SO_ALREADY, Outcome

Said = Callable[[str], None]
Stopped = Callable[[], str | None]


def tried(conf: Conf, wanted: Frozen | None, now: datetime) -> tuple[Plan, list[Outcome]]:
    """The plan, and what brokers would say to each of its changes; nothing is written."""
    plan = _plan(conf, wanted, now)
    with turn.cluster(conf) as (cluster_id, configs):
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
    with turn.taken(conf, report, stopped, passed) as taken:
        now = datetime.now(UTC)
        plan = _plan(conf, wanted, now)
        _check_cluster(plan, taken.cluster_id)
        if not plan.changes:
            return plan, []
        if wanted is not None:
            _check_reality(wanted, taken.apply.configs, taken.ledger)
        else:
            frozen.keep(conf, taken.rows, taken.ledger, plan, now)
        return plan, taken.apply.run(plan.plan_id, plan.changes)


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
    for name, why in sorted(planning.unsound(conf, evidence).items()):
        raise FeedbackError(f"plan {wanted.plan.plan_id}: of {name}, {why}")
    return wanted.plan


def _check_cluster(plan: Plan, cluster_id: str) -> None:
    others = sorted({c.entity.cluster_id for c in plan.changes} - {cluster_id})
    if others:
        raise FeedbackError(
            f"the plan is for cluster {others[0]}, and this is {cluster_id}: nothing was written"
        )


def _check_reality(wanted: Frozen, configs: Configs, ledger: Ledger) -> None:
    plan = wanted.plan
    seen = [outcome for group in _groups(plan) for outcome in look(configs, group)]
    moved = [outcome for outcome in seen if outcome.step not in {BEGUN, SO_ALREADY}]
    if moved:
        first = moved[0]
        raise FeedbackError(
            f"{first.change.entity}: {first.change.desired.config_key}: {first.detail}; and so "
            f"nothing of plan {plan.plan_id} was written ({len(moved)} of {len(seen)} changes no "
            "longer fit): plan anew"
        )
    used_up = frozen.done_since(ledger, plan, wanted.at)
    if any(o.step == BEGUN and o.change.change_id in used_up for o in seen):
        raise FeedbackError(
            f"plan {plan.plan_id} was applied before, and what it wrote was given back: plan anew"
        )


def _groups(plan: Plan) -> Iterator[list[Change]]:
    for _, of in groupby(plan.changes, key=lambda change: change.entity):
        yield list(of)
