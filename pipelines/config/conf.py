"""conf/*.yaml as checked models: unknown keys refused, problems in one error, no literal secret.

Defaults live here and nowhere else; YAML and --set only override them.
"""

from copy import deepcopy
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, model_validator

from quotaflow.pipelines.config.alerts import Alerts
from quotaflow.pipelines.config.base import Section, problems
from quotaflow.pipelines.config.checks import Health, Quality
from quotaflow.pipelines.config.ingest import FetchSessions, Ingest, Payloads
from quotaflow.pipelines.config.kafka import Kafka
from quotaflow.pipelines.config.overrides import override, read
from quotaflow.pipelines.config.plan import Plan
from quotaflow.pipelines.config.privacy import Privacy
from quotaflow.pipelines.config.quotas import ProducerIds, Quotas
from quotaflow.pipelines.config.replication import Replication
from quotaflow.pipelines.config.results import Prices, Racks, Results
from quotaflow.pipelines.config.runtime import Spark, Warehouse
from quotaflow.pipelines.config.secrets import (
    Secrets,
    in_scope,
)
from quotaflow.pipelines.config.upkeep import Upkeep
from quotaflow.pipelines.errors import ConfigError
from quotaflow.udfs.rules.pseudonym import ADDRESS


class Conf(Section):
    """Everything a job needs to know, with the defaults of each section."""

    kafka: Kafka = Kafka()
    secrets: Secrets = Secrets()
    warehouse: Warehouse = Warehouse()
    ingest: Ingest = Ingest()
    payloads: Payloads = Payloads()
    producer_ids: ProducerIds = ProducerIds()
    quotas: Quotas = Quotas()
    fetch_sessions: FetchSessions = FetchSessions()
    alerts: Alerts = Alerts()
    results: Results = Results()
    prices: Prices = Prices()
    racks: Racks = Field(default_factory=dict)
    replication: Replication = Replication()
    plan: Plan = Plan()
    privacy: Privacy = Privacy()
    health: Health = Health()
    quality: Quality = Quality()
    upkeep: Upkeep = Upkeep()
    spark: Spark = Spark()

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
