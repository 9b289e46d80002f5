"""conf/*.yaml as checked models: the sections, and the functions that read them."""

from quotaflow.pipelines.config.alerts import AlertsSection
from quotaflow.pipelines.config.conf import Conf
from quotaflow.pipelines.config.feedback import FeedbackSection
from quotaflow.pipelines.config.ingest import (
    FetchSessionsSection,
    IngestSection,
    PayloadsSection,
    PrivacySection,
)
from quotaflow.pipelines.config.kafka import KafkaSection
from quotaflow.pipelines.config.loading import load
from quotaflow.pipelines.config.plan import PlanSection, ReplicationSection
from quotaflow.pipelines.config.results import (
    PricesSection,
    ProducerIdsSection,
    QuotasSection,
    ResultsSection,
)
from quotaflow.pipelines.config.runtime import SparkSection, WarehouseSection, expanded, home
from quotaflow.pipelines.config.secrets import SecretsSection
from quotaflow.pipelines.config.serve import ServeSection
from quotaflow.pipelines.config.sources import given
from quotaflow.pipelines.config.upkeep import HealthSection, QualitySection, UpkeepSection

__all__ = [
    "AlertsSection",
    "Conf",
    "FeedbackSection",
    "FetchSessionsSection",
    "HealthSection",
    "IngestSection",
    "KafkaSection",
    "PayloadsSection",
    "PlanSection",
    "PricesSection",
    "PrivacySection",
    "ProducerIdsSection",
    "QualitySection",
    "QuotasSection",
    "ReplicationSection",
    "ResultsSection",
    "SecretsSection",
    "ServeSection",
    "SparkSection",
    "UpkeepSection",
    "WarehouseSection",
    "expanded",
    "given",
    "home",
    "load",
]
