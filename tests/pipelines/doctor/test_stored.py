"""Existing tables compared with those that this version declares."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.doctor import brokers, stored_tables
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ...rows import moved, row
from ...schemas.views.view_tables import make_tables_and_answers

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def columns(warehouse: Warehouse) -> tuple[str, str]:
    findings = stored_tables.findings(Conf(warehouse=warehouse.conf), NOW)
    by_subject = {each.subject: each for each in findings}
    return by_subject["columns"].state, by_subject["columns"].observed


def test_every_declared_table_is_as_declared_however_nested(warehouse: Warehouse) -> None:
    make_tables_and_answers(warehouse, {})
    assert columns(warehouse) == ("ok", f"those of this version, in {len(TABLES)} tables")


def test_columns_of_an_older_version_are_added_and_of_another_type_refused(
    warehouse: Warehouse,
) -> None:
    names = pa.schema([("cluster_id", pa.string()), ("event_time", pa.timestamp("us", "UTC"))])
    write_deltalake(warehouse.folder("traffic"), names.empty_table())
    assert columns(warehouse) == ("ok", "traffic of an older version: columns are missing")
    other = pa.schema([("cluster_id", pa.int64())])
    write_deltalake(warehouse.folder("requests"), other.empty_table())
    assert columns(warehouse) == ("bad", "requests.cluster_id is BIGINT and should be STRING")


def test_clients_in_a_rack_that_no_broker_has_are_listed(warehouse: Warehouse) -> None:
    rack = {"client_rack": "US-EAST-1A", "is_rack_inferred": True, "rack_source": "address"}
    racks = ("us-east-1a", "us-east-1b")
    brokers_there = [
        row("brokers", 0, {}, broker_id=n, rack=rack) for n, rack in enumerate(racks, 1)
    ]
    sent = moved(0, 9) | rack | {"broker_rack": racks[0], "cross_rack_bytes": None}
    make_tables_and_answers(warehouse, {"traffic": [sent], "brokers": brokers_there})
    findings = stored_tables.findings(Conf(warehouse=warehouse.conf), NOW)
    (named,) = (each for each in findings if each.subject == "client racks")
    assert named.state == "warning"
    assert named.observed == (
        "no broker has rack US-EAST-1A of User:alice as orders, may be us-east-1a"
    )


@pytest.mark.parametrize(
    ("ahead_s", "state"), [(0, "ok"), (60, "ok"), (-61, "bad"), (61, "bad")], ids=str
)
def test_the_controller_s_clock_is_held_against_ours(ahead_s: int, state: str) -> None:
    controller_ms = int((NOW.timestamp() + ahead_s) * 1_000)
    assert brokers.clock(controller_ms, NOW, 60).state == state


def test_a_clock_that_is_not_told_is_unchecked() -> None:
    assert brokers.clock(-1, NOW, 60).state == "unchecked"
