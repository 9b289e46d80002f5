"""The plan policy of conf, with what the tables say now."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache, partial

from quotaflow.pipelines.config.plan import PlanSection
from quotaflow.pipelines.feedback.configs.desired_configs import DesiredConfig, Group
from quotaflow.pipelines.feedback.ledger.ledger import Ledger
from quotaflow.pipelines.feedback.planning import (
    cluster_watch,
    dead_time,
    holds,
    input_ages,
    other_writers,
    plan_inputs,
    preflight,
)
from quotaflow.pipelines.feedback.planning.blast_radius import BlastRadius
from quotaflow.pipelines.feedback.planning.guards import RESULTS, PlanPolicy
from quotaflow.pipelines.feedback.planning.holds import SeenConfig
from quotaflow.pipelines.feedback.planning.plan_conf import PlanConf
from quotaflow.pipelines.feedback.planning.preflight import Preflight
from quotaflow.pipelines.warehouse.tables import Tables
from quotaflow.schemas.configs import CLIENT_METRICS, USER

_WATCHED = timedelta(hours=1)
"""A run of plans is watched so long at least."""


def for_plan(conf: PlanConf, tables: Tables, now: datetime, ledger: Ledger) -> PlanPolicy:
    """The policy of conf with the age of a plan's inputs, the blast radius, the halt, other config
    managers, and the live clients that a subscription could harm.

    What writes to the cluster passes a ledger that is verified: a forged row could end a halt.
    """
    policy, section = conf.policy, conf.plan
    cluster = plan_inputs.of_cluster(policy.cluster_id)
    checks = _Preflights(cache(partial(preflight.read, tables)))
    inputs_at = input_ages.newest(tables, cluster)
    lags = input_ages.lags(tables, cluster, now)
    results_at = inputs_at.get(RESULTS)
    dead = dead_time.measured(tables, cluster, timedelta(seconds=section.dead_time_s))
    dead = max(dead, 2 * lags.get(RESULTS, timedelta(0)))
    operator = other_writers.user_operator(tables, now, cluster)
    return replace(
        policy,
        trusted=conf.trusted,
        harm=checks.harm,
        without_harmed=checks.without_harmed,
        limits=replace(policy.limits, settle=settle(section, dead)),
        protected=plan_inputs.protected_principals(tables, cluster),
        strangers=plan_inputs.strangers(tables, ledger, conf.trusted.limited_addresses),
        inputs_at=inputs_at,
        max_input_ages=input_ages.allowed(lags, conf.plan),
        blast_radius=_blast_radius(section, cluster, tables, dead, results_at),
        halt=cluster_watch.halted(
            tables,
            ledger,
            policy.cluster_id,
            now,
            period=max(_WATCHED, 3 * dead),
            results_at=results_at,
            limits=conf.replication,
        ),
        user_operator=operator,
        other_managers={
            kind: manager
            for kind, manager in other_writers.managers(
                tables, now, section.tolerated_managers, cluster, section.operators
            ).items()
            if manager != operator or kind != USER
        },
    )


def settle(section: PlanSection, dead: timedelta) -> timedelta:
    """The offence is measured over a period: all of it must be after the effect began to show."""
    return dead + timedelta(seconds=section.offence_period_s)


def _blast_radius(
    section: PlanSection,
    cluster: str,
    tables: Tables,
    dead: timedelta,
    results_at: datetime | None,
) -> BlastRadius:
    return BlastRadius(
        section.max_entities,
        section.max_entities_per_day,
        section.max_entity_share,
        plan_inputs.entity_counts(tables, cluster),
        plan_inputs.moves(tables, cluster),
        dead,
        results_at,
        section.canary,
    )


def with_holds(
    policy: PlanPolicy,
    own_principal: str | None,
    tables: Tables,
    rows: Iterable[DesiredConfig],
    seen_at: datetime | None,
    *,
    ledger: Ledger,
) -> PlanPolicy:
    """The policy with the configs of these rows that another login set last.

    `seen_at`: when the prior values of the rows were seen. The ledger says what a person released,
    so what writes to the cluster passes one that is verified.
    """
    seen = {
        row.key: SeenConfig(ledger.current_value(*row.key, row.prior_value, seen_at), seen_at)
        for row in rows
        # Nothing is written there, and the fragment is for what the operator set, too.
        if policy.user_operator is None or row.entity_type != USER
    }
    # What is given back is no row of results.
    seen |= {
        key: SeenConfig(owned.value, owned.since)
        for key, owned in ledger.owned.items()
        if key not in seen
    }
    alterations = other_writers.last_alterations(tables, seen.keys(), own_principal)
    return replace(policy, holds=holds.holds(seen, alterations, ledger))


@dataclass(frozen=True, slots=True)
class _Preflights:
    """The preflight of each cluster. Live clients are read only if a plan has a subscription."""

    read: Callable[[str], Preflight]

    def harm(self, rows: Group) -> str | None:
        return self.read(rows[0].cluster_id).harm(rows) if _needs_one(rows) else None

    def without_harmed(self, rows: Group) -> tuple[Group, str | None]:
        return (
            self.read(rows[0].cluster_id).without_harmed(rows) if _needs_one(rows) else (rows, None)
        )


def _needs_one(rows: Group) -> bool:
    return rows[0].entity_type == CLIENT_METRICS
