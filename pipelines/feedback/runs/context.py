"""What a command that plans, writes or restores configs works with, opened once from conf."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, partial

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection
from quotaflow.pipelines.feedback.planning.evidence_checks import EvidenceChecks
from quotaflow.pipelines.feedback.planning.guards import PlanPolicy
from quotaflow.pipelines.feedback.planning.planning import PlanConf
from quotaflow.pipelines.feedback.planning.trusted_bounds import TrustedBounds
from quotaflow.pipelines.feedback.writing import stop_file
from quotaflow.pipelines.feedback.writing.write_conf import WriteConf
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.readers import reader_of
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.udfs.rules.limit import LimitBounds


@dataclass(frozen=True)
class Context:
    """What conf says of plans and of writes, and the tables of one command.

    `clock_skew`: how far a broker's clock may be ahead of ours.
    """

    plans: PlanConf
    writes: WriteConf
    clock_skew: timedelta

    @cached_property
    def tables(self) -> Reader:
        """The tables as they are when a query first names them."""
        return self.newest_tables()

    def newest_tables(self) -> Reader:
        """The tables as they are now, after a write."""
        return reader_of(Warehouse(self.writes.warehouse), self.plans.evidence.open_session)


def from_conf(conf: Conf) -> Context:
    """The context of a command. Nothing is opened before it is used."""
    return Context(
        of_plans(conf),
        WriteConf(
            conf.kafka,
            conf.feedback,
            conf.warehouse,
            conf.spark,
            stop_file.path(conf.plan, conf.warehouse),
        ),
        timedelta(seconds=conf.ingest.max_clock_skew_s),
    )


def of_plans(conf: Conf) -> PlanConf:
    """What conf says of plans, for what reads its tables in another way."""
    return PlanConf(
        conf.plan,
        conf.replication,
        _policy(conf),
        TrustedBounds(
            conf.plan,
            conf.quotas,
            conf.producer_ids,
            conf.replication,
            conf.alerts,
            conf.kafka.own_principal,
        ),
        EvidenceChecks(
            conf.warehouse,
            partial(session.get, conf.spark),
            max_age=timedelta(seconds=conf.plan.max_input_age_s),
            are_required=conf.quality.required,
            reads=partial(_reads, conf),
        ),
        Connection.from_conf(conf.kafka),
        conf.kafka.own_principal,
    )


def _reads(conf: Conf) -> Mapping[str, set[str]]:
    from quotaflow.pipelines.jobs import inputs  # noqa: PLC0415  imports pyspark

    return inputs.of_tables(conf)


def _policy(conf: Conf) -> PlanPolicy:
    """What conf keeps a plan from changing, and how far a plan may go.

    The pipeline's own login is excluded, too.
    """
    section = conf.plan
    return PlanPolicy(
        excluded_principals=frozenset(conf.excluded_principals),
        settle=timedelta(seconds=conf.results.settle_s),
        cluster_id=conf.kafka.cluster_id,
        max_subscriptions=section.max_subscriptions,
        strimzi_api=section.strimzi_api,
        max_input_age=timedelta(seconds=section.max_input_age_s),
        lease_s=section.lease_s,
        cooldown=timedelta(seconds=section.cooldown_s),
        max_step_factor=section.max_step_factor,
        limits=LimitBounds(
            min_gain=section.min_gain,
            max_step_factor=section.max_step_factor,
            max_lease=timedelta(seconds=section.max_lease_s),
        ),
        min_history=timedelta(seconds=section.min_history_s),
        default_quotas=section.default_quotas,
    )
