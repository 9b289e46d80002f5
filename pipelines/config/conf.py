"""conf/*.yaml as checked models: unknown keys refused, problems in one error, no literal secret.

Defaults live here and nowhere else; YAML and --set only override them.
"""

from copy import deepcopy
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, model_validator

from quotaflow.pipelines.config.alerts import AlertsSection
from quotaflow.pipelines.config.base import Section, problems
from quotaflow.pipelines.config.checks import HealthSection, QualitySection
from quotaflow.pipelines.config.ingest import FetchSessionsSection, IngestSection, PayloadsSection
from quotaflow.pipelines.config.kafka import KafkaSection
from quotaflow.pipelines.config.overrides import override, read
from quotaflow.pipelines.config.plan import PlanSection
from quotaflow.pipelines.config.privacy import PrivacySection
from quotaflow.pipelines.config.quotas import ProducerIdsSection, QuotasSection
from quotaflow.pipelines.config.replication import ReplicationSection
from quotaflow.pipelines.config.results import PricesSection, Racks, ResultsSection
from quotaflow.pipelines.config.runtime import SparkSection, WarehouseSection
from quotaflow.pipelines.config.secrets import (
    Secrets,
    in_scope,
)
from quotaflow.pipelines.config.upkeep import UpkeepSection
from quotaflow.pipelines.errors import ConfigError
from quotaflow.udfs.rules.pseudonym import ADDRESS


class Conf(Section):
    """Everything a job needs to know, with the defaults of each section."""

    kafka: KafkaSection = KafkaSection()
    secrets: Secrets = Secrets()
    warehouse: WarehouseSection = WarehouseSection()
    ingest: IngestSection = IngestSection()
    payloads: PayloadsSection = PayloadsSection()
    producer_ids: ProducerIdsSection = ProducerIdsSection()
    quotas: QuotasSection = QuotasSection()
    fetch_sessions: FetchSessionsSection = FetchSessionsSection()
    alerts: AlertsSection = AlertsSection()
    results: ResultsSection = ResultsSection()
    prices: PricesSection = PricesSection()
    racks: Racks = Field(default_factory=dict)
    replication: ReplicationSection = ReplicationSection()
    plan: PlanSection = PlanSection()
    privacy: PrivacySection = PrivacySection()
    health: HealthSection = HealthSection()
    quality: QualitySection = QualitySection()
    upkeep: UpkeepSection = UpkeepSection()
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
            dict.fromkeys(self.ingest.shipper_principals, "ingest.shipper_principals")
            | dict.fromkeys(self.plan.excluded_principals, "plan.excluded_principals")
            | ({own: "own"} if own else {})
        )

    @model_validator(mode="after")
    def _racks_of_addresses(self) -> "Conf":
        if self.racks and self.privacy.hides(ADDRESS):
            raise ValueError(
                "racks are told by addresses, which privacy.columns hides: empty racks, or leave "
                "client_address out of privacy.columns"
            )
        return self


def load(file: Path | None = None, overrides: list[str] | None = None) -> Conf:
    """Read conf from a YAML file (the packaged local.yaml without one), then apply key=value pairs.

    Raises ConfigError with every problem at once, each naming the key, the value and the bound, and
    whether the file has it or a pair made it.
    """
    source = file or Path(str(resources.files("quotaflow.conf") / "local.yaml"))
    values = read(source)
    of_file = deepcopy(values)
    for pair in overrides or []:
        override(values, pair)
    try:
        return Conf.model_validate(values)
    except ValidationError as error:
        wrong = problems(error, Conf)
    in_file = _problems(of_file) if overrides else wrong
    told = {
        str(source): [problem for problem in wrong if problem in in_file],
        "--set": [problem for problem in wrong if problem not in in_file],
    }
    raise ConfigError("; ".join(f"{by}: {'; '.join(of)}" for by, of in told.items() if of))


def _problems(values: dict[str, Any]) -> list[str]:
    try:
        Conf.model_validate(values)
    except ValidationError as error:
        return problems(error, Conf)
    return []
