"""conf/*.yaml as checked models: the sections, and what reads them."""

from quotaflow.pipelines.config.alerts import Alerts
from quotaflow.pipelines.config.checks import Health, Quality
from quotaflow.pipelines.config.conf import Conf, load
from quotaflow.pipelines.config.ingest import FetchSessions, Ingest, Payloads
from quotaflow.pipelines.config.kafka import Kafka
from quotaflow.pipelines.config.plan import Plan
from quotaflow.pipelines.config.privacy import Privacy
from quotaflow.pipelines.config.quotas import ProducerIds, Quotas
from quotaflow.pipelines.config.replication import Replication
from quotaflow.pipelines.config.results import Prices, Results
from quotaflow.pipelines.config.runtime import Spark, Warehouse, expanded, home
from quotaflow.pipelines.config.secrets import Secrets
from quotaflow.pipelines.config.upkeep import Upkeep

__all__ = [
    "Alerts",
    "Conf",
    "FetchSessions",
    "Health",
    "Ingest",
    "Kafka",
    "Payloads",
    "Plan",
    "Prices",
    "Privacy",
    "ProducerIds",
    "Quality",
    "Quotas",
    "Replication",
    "Results",
    "Secrets",
    "Spark",
    "Upkeep",
    "Warehouse",
    "expanded",
    "home",
    "load",
]
