"""What a broker's JMX beans say, by Kafka's own tool."""

from quotaflow.demo.cluster import LocalCluster


def jmx(cluster: LocalCluster, broker_id: int, *beans: str) -> dict[str, str]:
    """Bean and attribute -> value, of the beans that match one of the patterns."""
    url = f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{cluster.jmx_ports[broker_id]}/jmxrmi"
    output = cluster.run_tool(
        "org.apache.kafka.tools.JmxTool",
        *("--jmx-url", url),
        *(part for pattern in beans for part in ("--object-name", pattern)),
        *("--one-time", "--report-format", "properties"),
    )
    rows = (line.rpartition("=") for line in output.splitlines())
    return {name: value for name, _, value in rows}
