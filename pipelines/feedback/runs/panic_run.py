"""`quotaflow restore --panic`: restores everything by the leases of the cluster alone.

It takes no lock and reads no table, and neither disk nor clock can keep it from that.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from quotaflow.pipelines.feedback.ledger import deployment, lease_topic
from quotaflow.pipelines.feedback.ledger.leases import read_book
from quotaflow.pipelines.feedback.ledger.outcome import Outcome
from quotaflow.pipelines.feedback.ledger.signing import Signer
from quotaflow.pipelines.feedback.ledger.trust import judge
from quotaflow.pipelines.feedback.planning.restore_plan import RestorePlan
from quotaflow.pipelines.feedback.runs import restore_run
from quotaflow.pipelines.feedback.runs.context import Context
from quotaflow.pipelines.feedback.writing import exclusive_section, permission
from quotaflow.pipelines.feedback.writing.change_writer import resolve_open


@dataclass(frozen=True, slots=True)
class PanicRestore:
    """What a panic restore does, or did, for one deployment."""

    deployment: str
    plan: RestorePlan
    outcomes: tuple[Outcome, ...] = ()


def preview(context: Context, *, all_deployments: bool = False) -> list[PanicRestore]:
    """What would be restored. Nothing is written."""
    return [
        PanicRestore(signer.deployment, _plan(context, signer))
        for signer in _signers(context, all_deployments=all_deployments)
    ]


def restore(
    context: Context, stopped: Callable[[], str | None], *, all_deployments: bool = False
) -> list[PanicRestore]:
    """Give back everything of this deployment, or of all that our keys verify."""
    permission.check(context.writes.feedback)
    done = []
    for signer in _signers(context, all_deployments=all_deployments):
        plan, outcomes = restore_run.restore_leases(
            context, signer, None, stop_reason=stopped, everything=True
        )
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


def _plan(context: Context, signer: Signer) -> RestorePlan:
    now = datetime.now(UTC)
    with (
        exclusive_section.open_cluster(context.writes) as (cluster_id, configs),
        exclusive_section.open_leases(context.writes) as topic,
    ):
        trust = judge([], signer, read_book(topic.read(), signer, cluster_id), cluster_id)
        ledger = trust.ledger.with_ends(resolve_open(configs, trust.ledger, lambda: now))
        plan = restore_run.plan_restore(context, None, ledger, configs, now, everything=True)
        return replace(plan, distrusted=trust.refused)
