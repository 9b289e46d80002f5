"""The plan's command lines, run by Kafka's own tool: a subscription made, and taken back."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines import config
from quotaflow.pipelines.feedback.configs.desired_configs import DesiredConfig
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection
from quotaflow.pipelines.feedback.ledger.ledger import Ledger
from quotaflow.pipelines.feedback.planning.guards import PlanPolicy
from quotaflow.pipelines.feedback.planning.plan import plan
from quotaflow.pipelines.kafka import client_metrics

from ..pipelines.feedback.fake_configs import forged
from . import printed_command

NAME = "quotaflow-alert-live"
DESIRED = {
    "interval.ms": "10000",
    "match": "client_instance_id=vl7CCx68Qw29SsxmLSK4Xg|-l7CCx68Qw29SsxmLSK4X_",
    "metrics": "org.apache.kafka.producer.,org.apache.kafka.consumer.",
}


def rows(*, removed: bool = False) -> list[DesiredConfig]:
    return [
        DesiredConfig(
            cluster_id="c",
            entity_type="client-metrics",
            entity_name=NAME,
            config_key=key,
            config_value=None if removed else value,
            prior_value=value if removed else None,
            reason="because",
            evidence_table="metric_alerts",
            evidence_key="rule=live",
            since=datetime.now(UTC) - timedelta(hours=1),
            priority=20,
        )
        for key, value in DESIRED.items()
    ]


def run(cluster: LocalCluster, desired: list[DesiredConfig], ledger: Ledger) -> None:
    """The one command of these rows."""
    connection = Connection(cluster.bootstrap_servers, needs_login=True)
    made = plan(desired, datetime.now(UTC), PlanPolicy(), connection, ledger)
    assert len(made.changes) == len(desired)
    (command,) = {change.command for change in made.changes}
    printed_command.run(cluster, command)


def shown(properties: Mapping[str, str], configs: dict[str, str] | None) -> None:
    """Wait until the broker that answers has the resource so: it learns of a write by metadata."""
    while client_metrics.read(properties).get(NAME) != configs:
        time.sleep(0.1)


@pytest.mark.shows("plans config changes as commands, fragments of Jikkou or Strimzi")
def test_kafka_configs_takes_what_is_planned(cluster: LocalCluster, login: list[str]) -> None:
    properties = config.load(overrides=login).kafka.properties
    run(cluster, rows(), Ledger())
    shown(properties, DESIRED)
    # A resource that our ledger does not have is somebody else's.
    ours = [forged(row.entity, row.config_key, row.config_value, None) for row in rows()]
    run(cluster, rows(removed=True), Ledger.from_records(ours))
    shown(properties, None)
