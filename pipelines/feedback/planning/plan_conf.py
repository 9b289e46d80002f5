"""What conf says of plans, under any tables."""

from dataclasses import dataclass

from quotaflow.pipelines.config import PlanSection, ReplicationSection
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection
from quotaflow.pipelines.feedback.planning.evidence_checks import EvidenceChecks
from quotaflow.pipelines.feedback.planning.guards import PlanPolicy
from quotaflow.pipelines.feedback.planning.trusted_bounds import TrustedBounds


@dataclass(frozen=True, slots=True)
class PlanConf:
    """The bounds of a plan, how its evidence is checked, and the cluster that it is for.

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
