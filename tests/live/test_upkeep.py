"""What a real run left: removed rows come back from the topic, results from their facts."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.maintenance import rebuild, upkeep
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import CLIENT_METRICS

from ..command_line import Command, in_options
from .tables_read import contents, query

pytestmark = pytest.mark.faults
KEPT = {*TABLES} - {"answer_state"}
"""All tables, without the versions of tables that answers were computed from."""
INGESTED = ("requests", "telemetry_pushes", "telemetry_subscriptions", "quarantine")


@pytest.fixture
def copied(filled: Path, tmp_path: Path) -> Path:
    """A copy of the shared warehouse, to write into."""
    return Path(shutil.copytree(filled, tmp_path / "warehouse"))


@pytest.fixture
def over_copy(command: Command, login: list[str], copied: Path) -> Command:
    """Runs commands over the copy."""
    return Command(command.capsys, tuple(in_options(*login, f"warehouse.path={copied}")))


def delete(login: list[str], folder: Path, table: str, where: str) -> None:
    """By Spark: delta-rs does not write to clustered tables."""
    conf = config.load(overrides=[*login, f"warehouse.path={folder}"])
    target = Warehouse(conf.warehouse).target(table)
    session.get(conf.spark).sql(f"DELETE FROM {target} WHERE {where}")


def test_a_backfill_adds_what_was_lost_of_each_table_and_then_nothing(
    filled: Path, copied: Path, login: list[str], over_copy: Command
) -> None:
    for name in INGESTED:
        delete(login, copied, name, "source_offset % 3 = 0")
    assert contents(copied, INGESTED) != contents(filled, INGESTED)
    for is_again in (False, True):
        error_text = over_copy("backfill", "--from", "1d", "--slice", "1d").err
        assert contents(copied, {"requests"}) == contents(filled, {"requests"})
        assert (" info 0 rows added\n" in error_text) is is_again
    over_copy("backfill", "ingest_receiver", "--from", "1d", "--slice", "1d")
    assert contents(copied, INGESTED) == contents(filled, INGESTED)


@pytest.mark.shows("removes old rows, rolls up, rebuilds and backfills")
def test_every_result_is_rebuilt_as_streaming_wrote_it(
    filled: Path, copied: Path, login: list[str], over_copy: Command
) -> None:
    conf = config.load(overrides=[*login, f"warehouse.path={copied}"])
    names = [CLIENT_METRICS.name, *rebuild.results(conf)]
    since = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    for name in names:
        delete(login, copied, name, "true")
        over_copy("rebuild", name, "--from", since, "--slice", "12h")
        assert contents(copied, {name}) == contents(filled, {name})
        count = f"SELECT count(*) AS rows FROM {name}"
        assert query(copied, count) == query(filled, count), name


def test_upkeep_of_a_real_warehouse_loses_nothing_and_streams_go_on(
    filled: Path, copied: Path, login: list[str], over_copy: Command
) -> None:
    conf = config.load(overrides=[*login, f"warehouse.path={copied}"])
    by_table = {t.name: t for t in upkeep.run_upkeep(conf, [], datetime.now(UTC), lambda _: None)}
    assert {t.rows_removed for t in by_table.values()} == {0}
    assert by_table["requests"].files_after == 1 < by_table["requests"].files_before
    assert contents(copied, KEPT) == contents(filled, KEPT)
    again = upkeep.run_upkeep(conf, [], datetime.now(UTC), lambda _: None)
    assert all(t.files_before == t.files_after for t in again)
    assert all(t.disk_bytes_before == t.disk_bytes_after for t in again)
    over_copy("run", "fetches", "request_results", "fetch_results", "--once")
    assert contents(copied, KEPT) == contents(filled, KEPT)
