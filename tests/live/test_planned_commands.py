"""The plan's command lines, run by Kafka's own tool: a subscription made, and taken back."""

import shlex
from datetime import UTC, datetime, timedelta

from quotaflow.demo.cluster import Cluster
from quotaflow.pipelines import client_metrics_admin, config
from quotaflow.pipelines.feedback.kafka_configs import Connection
from quotaflow.pipelines.feedback.plan import Bounds, Desired, plan

NAME = "quotaflow-alert-live"
WANTED = {
    "interval.ms": "10000",
    "match": "client_instance_id=vl7CCx68Qw29SsxmLSK4Xg|-l7CCx68Qw29SsxmLSK4X_",
    "metrics": "org.apache.kafka.producer.,org.apache.kafka.consumer.",
}


def rows(*, removed: bool = False) -> list[Desired]:
    return [
        Desired(
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
        for key, value in WANTED.items()
    ]


def run(cluster: Cluster, desired: list[Desired]) -> None:
    """The one command of these rows, as an operator's shell would read it."""
    connection = Connection(cluster.bootstrap_servers, needs_login=True)
    made = plan(desired, datetime.now(UTC), Bounds(), connection)
    assert len(made.changes) == len(desired)
    (command,) = {change.command for change in made.changes}
    file = str(cluster.properties_file("admin"))
    words = [file if word == "client.properties" else word for word in shlex.split(command)]
    cluster.run_tool("kafka.admin.ConfigCommand", *words[1:])


def test_kafka_configs_takes_what_is_planned(cluster: Cluster, login: list[str]) -> None:
    properties = config.load(overrides=login).kafka.properties
    run(cluster, rows())
    assert client_metrics_admin.read(properties)[NAME] == WANTED
    run(cluster, rows(removed=True))
    assert NAME not in client_metrics_admin.read(properties)
