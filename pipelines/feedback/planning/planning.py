"""The plan of now: what results desire, under the policy of conf, beside what we own."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby

from quotaflow.pipelines.config import PlanSection, ReplicationSection
from quotaflow.pipelines.errors import FeedbackError
from quotaflow.pipelines.feedback.configs.change import APPLY, FrozenPlan, Halt, Plan
from quotaflow.pipelines.feedback.configs.desired_configs import DesiredConfig
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection
from quotaflow.pipelines.feedback.ledger import journal
from quotaflow.pipelines.feedback.ledger.ledger import Key, Ledger
from quotaflow.pipelines.feedback.planning import (
    cluster_watch,
    guards,
    holds,
    input_ages,
    other_writers,
    plan_inputs,
    preflight,
    strimzi,
    unmade_inputs,
)
from quotaflow.pipelines.feedback.planning.blast_radius import BlastRadius
from quotaflow.pipelines.feedback.planning.evidence_checks import EvidenceChecks
from quotaflow.pipelines.feedback.planning.guards import PlanPolicy
from quotaflow.pipelines.feedback.planning.holds import SeenConfig
from quotaflow.pipelines.feedback.planning.input_ages import InputAges
from quotaflow.pipelines.feedback.planning.plan import plan
from quotaflow.pipelines.feedback.planning.trusted_bounds import TrustedBounds
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.schemas.configs import USER
from quotaflow.schemas.tables.catalog import TABLES

_WATCHED = timedelta(hours=1)
"""A run of plans is watched so long at least."""


@dataclass(frozen=True, slots=True)
class PlanConf:
    """What conf says of plans, under any tables.

    `policy` has what needs no table. `own_principal` is the login of this conf, null if it has
    none.
    """

    plan: PlanSection
    replication: ReplicationSection
    policy: PlanPolicy
    trusted: TrustedBounds
    evidence: EvidenceChecks
    connection: Connection
    own_principal: str | None


def make(
    conf: PlanConf,
    tables: Reader,
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
    policy = _policy(conf, tables, desired, now, ours)
    policy = replace(
        policy,
        refused_keys=plan_inputs.refused_keys(tables, conf.policy.cluster_id),
        failed_checks=conf.evidence.unusable(tables, evidence, now) | unmade.unusable,
        blast_radius=policy.blast_radius if is_bounded else None,
    )
    made = plan(desired, now, policy, conf.connection, ours)
    return replace(made, unmade=tuple(unmade.lines))


def checked(
    conf: PlanConf, tables: Reader, approved: FrozenPlan, now: datetime, ledger: Ledger
) -> PlanPolicy:
    """The policy of now, if all of a frozen plan may be written under it. Else FeedbackError."""
    frozen, frozen_at = approved.plan, approved.frozen_at
    plan_id, max_age_s = frozen.plan_id, conf.plan.max_plan_age_s
    if now - frozen_at > timedelta(seconds=max_age_s):
        raise FeedbackError(
            f"plan {plan_id} was frozen at {frozen_at:%Y-%m-%d %H:%M:%S} UTC, "
            f"and plan.max_plan_age_s is {max_age_s}: plan again"
        )
    evidence = {change.desired.evidence_table for change in frozen.changes}
    for name in sorted(evidence - TABLES.keys() - views.load().keys()):
        raise FeedbackError(
            f"plan {plan_id} rests on {name}, which this release does not have: plan again"
        )
    for name, why in sorted(conf.evidence.unusable(tables, evidence, now).items()):
        raise FeedbackError(f"plan {plan_id}: of {name}, {why}")
    rows = [change.desired for change in frozen.changes]
    policy = _policy(conf, tables, rows, now, ledger, seen_at=frozen_at)
    operator = policy.user_operator
    if operator is not None and any(map(strimzi.is_concerned, frozen.changes)):
        raise FeedbackError(f"plan {plan_id}: {operator} writes quotas of users: plan again")
    if policy.halt is not None and any(change.purpose == APPLY for change in frozen.changes):
        raise FeedbackError(f"plan {plan_id}: {policy.halt.reason}")
    for entity, changes in groupby(frozen.changes, key=lambda change: change.entity):
        group = list(changes)
        whys = (guards.write_problem(change.written, policy) for change in group)
        # The clients that are live now may differ from those at planning time.
        of_entity = tuple(change.desired for change in group)
        why_not = next(filter(None, whys), None) or policy.preflight(of_entity).harm(of_entity)
        if why_not is not None:
            raise FeedbackError(f"plan {plan_id}: {entity}: {why_not}")
    return policy


def _policy(
    conf: PlanConf,
    tables: Reader,
    rows: Iterable[DesiredConfig],
    now: datetime,
    ledger: Ledger,
    *,
    seen_at: datetime | None = None,
) -> PlanPolicy:
    """The policy of conf with what the tables say now.

    `seen_at`: when the prior values of the rows were seen; null: at the last snapshot. What writes
    to the cluster passes a ledger that is verified: a forged row could end a halt or a hold.
    """
    policy, section = conf.policy, conf.plan
    cluster = plan_inputs.of_cluster(policy.cluster_id)
    ages = input_ages.read(tables, cluster, now, policy.max_input_age)
    managers = other_writers.managers(
        tables, now, section.tolerated_managers, cluster, section.operators
    )
    # The offence is measured over a period: all of it must be after the effect began to show.
    settle = ages.dead_time + timedelta(seconds=section.offence_period_s)
    policy = replace(
        policy,
        trusted=conf.trusted,
        preflight=preflight.by_rows(tables),
        limits=replace(policy.limits, settle=settle),
        protected=plan_inputs.protected_principals(tables, cluster),
        strangers=plan_inputs.strangers(
            tables, ledger, conf.trusted.producer_ids.limited_addresses
        ),
        inputs_at=ages.newest_at,
        max_input_ages=ages.max_ages,
        blast_radius=_blast_radius(section, cluster, tables, ages),
        halt=_halt(conf, tables, ledger, now, ages),
        user_operator=managers.user_operator,
        other_managers=managers.by_type,
    )
    seen = _seen(policy, rows, seen_at or ages.newest_at[guards.SNAPSHOT], ledger)
    alterations = other_writers.last_alterations(tables, seen.keys(), conf.own_principal)
    return replace(policy, holds=holds.holds(seen, alterations, ledger))


def _halt(
    conf: PlanConf, tables: Reader, ledger: Ledger, now: datetime, ages: InputAges
) -> Halt | None:
    return cluster_watch.halted(
        tables,
        ledger,
        conf.policy.cluster_id,
        now,
        period=max(_WATCHED, 3 * ages.dead_time),
        results_at=ages.newest_at[guards.RESULTS],
        limits=conf.replication,
    )


def _blast_radius(
    section: PlanSection, cluster: str, tables: Reader, ages: InputAges
) -> BlastRadius:
    return BlastRadius(
        section.max_entities,
        section.max_entities_per_day,
        section.max_entity_share,
        plan_inputs.entity_counts(tables, cluster),
        plan_inputs.moves(tables, cluster),
        ages.dead_time,
        ages.newest_at[guards.RESULTS],
        section.canary,
    )


def _seen(
    policy: PlanPolicy, rows: Iterable[DesiredConfig], seen_at: datetime | None, ledger: Ledger
) -> dict[Key, SeenConfig]:
    """What is known of the configs of these rows, and of those that are ours."""
    seen = {
        row.key: SeenConfig(ledger.current_value(*row.key, row.prior_value, seen_at), seen_at)
        for row in rows
        # Nothing is written there, and the fragment is for what the operator set, too.
        if policy.user_operator is None or row.entity_type != USER
    }
    # What is restored is no row of results.
    ours = {key: SeenConfig(owned.value, owned.since) for key, owned in ledger.owned.items()}
    return ours | seen
