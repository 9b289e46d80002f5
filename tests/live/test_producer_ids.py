"""Producer ids of the real cluster: those leaders hold, whose they are, and when they came up."""

from pathlib import Path
from typing import Any

import pytest

from quotaflow.pipelines.config import WarehouseSection
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse

ACTIVE = "SELECT DISTINCT producer_id FROM active_producers WHERE NOT is_removed"
OWNED = (
    "SELECT producer_id, principal, client_id, transactional_id, state FROM producer_ids "
    "WHERE state = 'active'"
)
ACTIVATED = (
    "SELECT principal, sum(new_ids_exact) AS ids FROM producer_id_rates "
    "WHERE kind = 'activation' GROUP BY principal"
)


@pytest.fixture
def reader(filled: Path) -> FolderReader:
    return FolderReader(Warehouse(WarehouseSection(path=str(filled))))


def rows(reader: FolderReader, sql: str) -> list[dict[str, Any]]:
    found_rows: list[dict[str, Any]] = reader.query(sql).read_all().to_pylist()
    return found_rows


def test_every_id_a_leader_holds_is_active_and_nearly_all_have_an_owner(
    reader: FolderReader,
) -> None:
    active = {row["producer_id"] for row in rows(reader, ACTIVE)}
    owned = rows(reader, OWNED)
    assert {row["producer_id"] for row in owned} == active
    assert active
    by_client = {row["client_id"]: row for row in owned}
    assert by_client["rdk-payments-bob"]["principal"] == "User:bob"
    assert by_client["rdk-payments-bob"]["transactional_id"] == "rdk-payments-bob"
    # The log lacks answers from before it was switched on, so an owner can be unknown.
    unknown = [row["producer_id"] for row in owned if row["principal"] is None]
    assert len(unknown) <= len(active) / 10


def test_ids_that_came_up_on_leaders_are_counted_for_whom_they_belong_to(
    reader: FolderReader,
) -> None:
    activated = {row["principal"]: row["ids"] for row in rows(reader, ACTIVATED)}
    mallorys = [row for row in rows(reader, OWNED) if row["principal"] == "User:mallory"]
    assert activated["User:mallory"] >= len(mallorys) > 1
