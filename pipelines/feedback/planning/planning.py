"""The plan of now: what results desire, under the policy of conf, beside what we own."""

from dataclasses import replace
from datetime import datetime

from quotaflow.pipelines.feedback.configs.change import Plan
from quotaflow.pipelines.feedback.ledger import journal
from quotaflow.pipelines.feedback.ledger.ledger import Ledger
from quotaflow.pipelines.feedback.planning import (
    guards,
    plan_inputs,
    plan_policy,
    unmade_inputs,
)
from quotaflow.pipelines.feedback.planning.plan import plan
from quotaflow.pipelines.feedback.planning.plan_conf import PlanConf
from quotaflow.pipelines.warehouse.tables import Tables


def make(
    conf: PlanConf,
    tables: Tables,
    now: datetime,
    ledger: Ledger | None = None,
    *,
    is_bounded: bool = True,
) -> Plan:
    """The plan as it is now, by a ledger that is verified, or by that of the tables.

    Nothing is written. From tables that were never made nothing is planned. Without `is_bounded` it
    has every change that may be made, and no blast radius bounds their number.
    """
    unmade, tables = unmade_inputs.read(tables)
    ours = journal.read_ledger(tables) if ledger is None else ledger
    desired = plan_inputs.desired_configs(tables)
    evidence = {row.evidence_table for row in desired}
    policy = replace(
        plan_policy.for_plan(conf, tables, now, ours),
        refused_keys=plan_inputs.refused_keys(tables, conf.policy.cluster_id),
        failed_checks=conf.evidence.unusable(tables, evidence, now) | unmade.unusable,
    )
    if not is_bounded:
        policy = replace(policy, blast_radius=None)
    seen_at = policy.inputs_at.get(guards.SNAPSHOT)
    policy = plan_policy.with_holds(
        policy, conf.own_principal, tables, desired, seen_at, ledger=ours
    )
    made = plan(desired, now, policy, conf.connection, ours)
    return replace(made, unmade=tuple(unmade.lines))
