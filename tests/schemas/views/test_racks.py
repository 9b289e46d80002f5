"""What crosses racks by the hour, and which clients read in the rack they were configured with."""

from typing import Any

import pytest

from quotaflow.pipelines.warehouse.warehouse import Warehouse

from .view_rows import Row, choice, crossed, gauge, setting
from .view_tables import make_tables, picked, rows

GIB = 2**30


def answer_of(
    warehouse: Warehouse, content: dict[str, list[Row]], sql: str, *names: str
) -> list[Any]:
    make_tables(warehouse, content)
    return picked(rows(warehouse, sql), *names)


def test_an_hour_of_two_racks_has_its_bytes_and_what_they_cost(warehouse: Warehouse) -> None:
    content = {
        "rack_traffic": [
            crossed(0, GIB),
            crossed(60, 2 * GIB),
            crossed(3_600, GIB),
            crossed(0, GIB, flow="replicated"),
            crossed(0, 5, client_rack=None, cross_rack_bytes=None),
        ],
        "preferred_replicas": [choice(0, GIB), choice(60, GIB, avoidable_bytes=0)],
        "settings": [
            setting("prices.cross_rack_per_gib", 0.5),
            setting("prices.currency", "EUR"),
        ],
    }
    sql = "SELECT * FROM rack_traffic_by_hour ORDER BY hour, flow, bytes"
    names = ("flow", "bytes", "cross_rack_bytes", "avoidable_bytes", "cross_rack_cost")
    assert answer_of(warehouse, content, sql, *names, "avoidable_cost", "currency") == [
        ("consumed", 5, None, None, None, None, "EUR"),
        ("consumed", 3 * GIB, 3 * GIB, GIB, 1.5, 0.5, "EUR"),
        ("replicated", GIB, GIB, None, 0.5, None, "EUR"),
        ("consumed", GIB, GIB, None, 0.5, None, "EUR"),
    ]


NEAR = {"broker_id": 2, "broker_rack": "az-b", "cross_rack_bytes": 0}
INFERRED = {"is_rack_inferred": True}
PUSHED = gauge(0, "consumer.x", 1.0, client_rack="az-b")


@pytest.mark.parametrize(
    ("read", "pushed", "expected"),
    [
        pytest.param(
            [choice(0, 9, **NEAR)], [], (None, "az-b", None, "az-b", "followed"), id="near"
        ),
        pytest.param(
            [choice(0, 9), choice(0, 8, **NEAR)],
            [PUSHED],
            ("az-b", "az-b", None, "az-a", "elsewhere"),
            id="told, and read across",
        ),
        pytest.param(
            [choice(0, 9, **INFERRED)],
            [PUSHED],
            ("az-b", None, "az-b", "az-a", "ignored"),
            id="configured, and not told",
        ),
        pytest.param(
            [choice(0, 9, **INFERRED, client_id=None)],
            [],
            (None, None, "az-b", "az-a", "no_rack"),
            id="no rack, nor a client id",
        ),
        pytest.param(
            [choice(0, 9, broker_rack=None, cross_rack_bytes=None)],
            [],
            (None, "az-b", None, None, "unknown"),
            id="a broker whose rack nobody knows",
        ),
    ],
)
def test_configured_against_effective_racks(
    warehouse: Warehouse, read: list[Row], pushed: list[Row], expected: tuple[Any, ...]
) -> None:
    content = {"preferred_replicas": read, "client_metrics": pushed}
    names = ("configured_rack", "declared_rack", "inferred_rack", "read_rack", "verdict")
    assert answer_of(warehouse, content, "SELECT * FROM client_racks", *names) == [expected]
