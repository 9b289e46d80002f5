"""Command lines as quotaflow prints them, run by Kafka's own tool."""

import shlex

from quotaflow.demo.cluster import LocalCluster


def run(cluster: LocalCluster, line: str) -> None:
    """Run one as an operator's shell would read it, with the admin's login in its place."""
    file = str(cluster.properties_file("admin"))
    _, *words = [file if word == "client.properties" else word for word in shlex.split(line)]
    cluster.run_tool("kafka.admin.ConfigCommand", *words)
