"""Lags of groups by a snapshot of the real cluster, against what Kafka's own tools print."""

from datetime import UTC, datetime
from typing import Any

from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.snapshots import take

from .drive import Run
from .tables_read import query

_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
_NO_OFFSET = "-"


def printed(cluster: LocalCluster) -> set[tuple[Any, ...]]:
    """Group, topic, partition, offset, end and lag, as the tool prints all groups."""
    login = ("--command-config", str(cluster.properties_file("admin")))
    server = ("--bootstrap-server", cluster.bootstrap_servers)
    text = cluster.run_tool(_TOOL, *server, *login, "--describe", "--all-groups")
    lines = [line.split() for line in text.splitlines()]
    rows = (words[:6] for words in lines if len(words) == 9 and words[0] != "GROUP")
    return {
        (group, topic, *map(int, numbers))
        for group, topic, *numbers in rows
        if _NO_OFFSET not in numbers
    }


def test_lag_is_to_the_record_what_kafkas_tool_prints(
    cluster: LocalCluster, run: Run, conf: Conf
) -> None:
    assert run.report
    take.take(conf, datetime.now(UTC), lambda _: None)
    rows = query(
        conf,
        'SELECT group_id, topic, "partition", "position", end_offset, lag FROM group_lag',
    )
    expected = printed(cluster)
    assert {group for group, *_ in expected} >= {"bob-orders", "carol-orders"}
    assert {tuple(row.values()) for row in rows} == expected
