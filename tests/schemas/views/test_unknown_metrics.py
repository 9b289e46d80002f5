"""What clients send outside the catalogue, and what they should not send, by their software."""

from typing import Any

import pytest

from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ...rows import at, row
from .view_tables import make_table, picked, view

METRICS = "unknown_metrics ORDER BY kind, name, client_software_version"
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


def test_names_outside_the_catalogue_and_host_like_keys_by_software() -> None:
    actual = view(METRICS, {"client_metrics": POINTS})
    names = ("kind", "name", "client_software_version", "points", "first_seen", "last_seen")
    assert picked(actual, *names) == [
        ("attribute", "host_name", "4.3.1", 2, at(60), at(120)),
        ("attribute", "ip", "4.3.1", 1, at(120), at(120)),
        ("attribute", "k8s_pod_name", "4.3.1", 1, at(60), at(60)),
        ("name", OWN, "4.0.1", 1, at(180), at(180)),
        ("name", OWN, "4.3.1", 2, at(0), at(420)),
        ("name", OWN, None, 1, at(180), at(180)),
    ]
    assert {row["cluster_id"] for row in actual} == {"c1"}


@pytest.mark.spark
@pytest.mark.faults
def test_it_answers_alike_in_spark(
    capsys: pytest.CaptureFixture[str], folder_warehouse: Warehouse, spark: object
) -> None:
    make_table(folder_warehouse, TABLES["client_metrics"], POINTS)
    place = ["--json", "--set", f"warehouse.path={folder_warehouse.conf.folder}"]
    query = f"SELECT * FROM {METRICS} NULLS LAST"
    assert execute(["sql", query, *place]) == 0
    without = capsys.readouterr().out
    assert spark is not None
    assert without.count("\n") == 6
    assert execute(["sql", query, "--spark", *place]) == 0
    assert capsys.readouterr().out == without
