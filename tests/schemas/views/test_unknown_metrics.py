"""What clients send outside the catalogue, and what they should not send, by their software."""

from datetime import timedelta
from typing import Any

import pytest

from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ...delta_tables import NOON, Fill
from ...rows import row
from .view_tables import make_table, rows

QUERY = "SELECT * FROM unknown_metrics ORDER BY kind, name, client_software_version"
OWN = "org.apache.kafka.shop.orders.total"


def point(metric: str, minute: int = 0, **others: Any) -> dict[str, Any]:
    software = {"client_software_name": "apache-kafka-java", "client_software_version": "4.3.1"}
    return row(
        "client_metrics",
        60 * minute,
        software | others,
        metric=metric,
        in_catalogue=metric == "org.apache.kafka.producer.connection.count",
        attributes=[],
        resource=[("client_rack", "az-a")],
    )


STANDARD = "org.apache.kafka.producer.connection.count"

POINTS = [
    point(
        STANDARD, attributes=[("node_id", "node-1"), ("processor_node_id", "n"), ("x_host", "h")]
    ),
    point(OWN),
    point(OWN, 7, attributes=[("shop", "b")]),
    point(OWN, 3, client_software_version="4.0.1"),
    point(OWN, 3, client_software_name=None, client_software_version=None),
    point("org.apache.kafkaesque.total"),
    point("com.example.total", attributes=None, resource=None),
    point(STANDARD, 1, resource=[("host.name", "web-7"), ("k8s.pod.name", "web-7-x")]),
    point(STANDARD, 2, attributes=[("Host-Name", "web-7")], resource=[("a", "b"), ("ip", None)]),
]


def test_names_outside_the_catalogue_and_host_like_keys_by_software(
    warehouse: Warehouse, fill: Fill
) -> None:
    fill("client_metrics", POINTS)
    actual = rows(warehouse, QUERY)
    assert [
        (
            row["kind"],
            row["name"],
            row["client_software_version"],
            row["points"],
            (row["first_seen"] - NOON) / timedelta(minutes=1),
            (row["last_seen"] - NOON) / timedelta(minutes=1),
        )
        for row in actual
    ] == [
        ("attribute", "host_name", "4.3.1", 2, 1, 2),
        ("attribute", "ip", "4.3.1", 1, 2, 2),
        ("attribute", "k8s_pod_name", "4.3.1", 1, 1, 1),
        ("name", OWN, "4.0.1", 1, 3, 3),
        ("name", OWN, "4.3.1", 2, 0, 7),
        ("name", OWN, None, 1, 3, 3),
    ]
    assert {row["cluster_id"] for row in actual} == {"c1"}


@pytest.mark.spark
@pytest.mark.faults
def test_it_answers_alike_in_spark(
    capsys: pytest.CaptureFixture[str], folder_warehouse: Warehouse, spark: object
) -> None:
    make_table(folder_warehouse, TABLES["client_metrics"], POINTS)
    place = ["--json", "--set", f"warehouse.path={folder_warehouse.conf.folder}"]
    query = QUERY + " NULLS LAST"
    assert execute(["sql", query, *place]) == 0
    without = capsys.readouterr().out
    assert spark is not None
    assert without.count("\n") == 6
    assert execute(["sql", query, "--spark", *place]) == 0
    assert capsys.readouterr().out == without
