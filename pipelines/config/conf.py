"""conf/*.yaml as checked models: unknown keys refused, no literal secret.

Defaults are in the sections alone. A YAML file, variables and --set only override them.
"""

from typing import Any

from pydantic import Field, model_validator

from quotaflow.pipelines.config.alerts import AlertsSection
from quotaflow.pipelines.config.base import Section
from quotaflow.pipelines.config.cluster import ClusterSection, Teams
from quotaflow.pipelines.config.feedback import FeedbackSection
from quotaflow.pipelines.config.ingest import (
    FetchSessionsSection,
    IngestSection,
    PayloadsSection,
    PrivacySection,
)
from quotaflow.pipelines.config.kafka import KafkaSection
from quotaflow.pipelines.config.monitoring import MonitoringSection
from quotaflow.pipelines.config.plan import DEFAULT_EXCLUDED, PlanSection, ReplicationSection
from quotaflow.pipelines.config.results import (
    CLIENT_ID_RACKS,
    PricesSection,
    ProducerIdsSection,
    QuotasSection,
    RackPatterns,
    Racks,
    ResultsSection,
)
from quotaflow.pipelines.config.runtime import SparkSection, WarehouseSection
from quotaflow.pipelines.config.secrets import (
    SecretsSection,
    in_scope,
)
from quotaflow.pipelines.config.serve import ServeSection
from quotaflow.pipelines.config.upkeep import HealthSection, QualitySection, UpkeepSection
from quotaflow.udfs.rules.pseudonym import ADDRESS


class Conf(Section):
    """Everything a job needs to know, with the defaults of each section."""

    kafka: KafkaSection = KafkaSection()
    cluster: ClusterSection = ClusterSection()
    secrets: SecretsSection = SecretsSection()
    warehouse: WarehouseSection = WarehouseSection()
    ingest: IngestSection = IngestSection()
    payloads: PayloadsSection = PayloadsSection()
    producer_ids: ProducerIdsSection = ProducerIdsSection()
    quotas: QuotasSection = QuotasSection()
    fetch_sessions: FetchSessionsSection = FetchSessionsSection()
    alerts: AlertsSection = AlertsSection()
    results: ResultsSection = ResultsSection()
    prices: PricesSection = PricesSection()
    racks: Racks = Field(default={})
    """Network (such as 10.1.0.0/16) to the rack of its clients that send none; the narrowest
    network counts (docs/racks.md). Not allowed if `privacy.columns` hides addresses.
    """
    rack_patterns: RackPatterns = Field(default_factory=lambda: list(CLIENT_ID_RACKS))
    """Regular expressions of RE2, at most 10 of 200 characters. The first group of the first that
    matches is the rack that a client id claims, where no request and no network of `racks` has one
    (docs/racks.md). Such a rack decides no change of the cluster. Not where `privacy.columns` hides
    client ids.
    """
    teams: Teams = Field(default=[])
    """At most 100 teams, each with the keys of `teams[]`."""
    replication: ReplicationSection = ReplicationSection()
    plan: PlanSection = PlanSection()
    feedback: FeedbackSection = FeedbackSection()
    privacy: PrivacySection = PrivacySection()
    health: HealthSection = HealthSection()
    monitoring: MonitoringSection = MonitoringSection()
    quality: QualitySection = QualitySection()
    upkeep: UpkeepSection = UpkeepSection()
    serve: ServeSection = ServeSection()
    spark: SparkSection = SparkSection()

    @model_validator(mode="before")
    @classmethod
    def _in_scope(cls, values: Any) -> Any:
        secrets = values.get("secrets") if isinstance(values, dict) else None
        scope = secrets.get("scope") if isinstance(secrets, dict) else None
        return in_scope(values, scope) if isinstance(scope, str) else values

    @property
    def excluded_principals(self) -> dict[str, str]:
        """Principals whose quotas are neither advised nor planned -> the key of conf that says so,
        or "own" for the login of this conf.
        """
        own = self.kafka.own_principal
        return (
            dict.fromkeys(
                (*DEFAULT_EXCLUDED, *self.plan.excluded_principals), "plan.excluded_principals"
            )
            | dict.fromkeys(self.ingest.shipper_principals, "ingest.shipper_principals")
            | ({own: "own"} if own else {})
        )

    @model_validator(mode="after")
    def _racks_of_addresses(self) -> "Conf":
        if self.racks and self.privacy.hides(ADDRESS):
            raise ValueError(
                "racks need addresses, which privacy.columns hides: empty racks, or leave "
                "client_address out of privacy.columns"
            )
        return self
