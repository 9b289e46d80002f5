"""The whole pipeline on an object store: from brokers to a report, a plan, its writes and back.

The same topics fill a folder beside it: every table and answer must have the same rows.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.config import Conf, WarehouseSection
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.pipelines.snapshots import take
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ..command_line import Command, in_options
from ..stores.object_server import ObjectServer, started
from . import live_configs
from .drive import Run
from .tables_read import POINTS

pytestmark = [pytest.mark.more, pytest.mark.timeout(1_800)]

MALLORY = "mallory"
CHANGES_WAIT = 3
WAYS = (
    # Several batches, so that a checkpoint is read again.
    "ingest.max_offsets_per_trigger=1000",
    "plan.max_input_age_s=86400",
    "plan.min_history_s=1",
    "results.settle_s=1",
    f"quotas.advised_users=[{MALLORY}]",
)
OF_RUNS = {"query_progress", "quality_results", "answer_state", "feedback_locks"}
"""Tables about runs, whose rows differ from one run to the next."""
COLUMNS = {
    "client_metrics": POINTS,
    "pipeline_progress": "job, batch_id, target, outcome, reason, row_count",
    # Whose write it was, and when, differs.
    "config_changes": "entity_type, entity_name, config_key, config_value, step, purpose, reason",
}
"""What is compared of a table, where that is not all of it."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """Conf of a warehouse, and the words that give it to a command."""

    conf: Conf
    words: Sequence[str]

    def do(self, *arguments: str) -> int:
        """Run a command as a user does; its exit code."""
        return execute([*arguments, *self.words])

    def rows(self, table: str) -> Counter[str]:
        reader = FolderReader(Warehouse(self.conf.warehouse))
        if not reader.is_made(table):
            return Counter({"never made": 1})
        return Counter(map(repr, reader.rows(f"SELECT {COLUMNS.get(table, '*')} FROM {table}")))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectServer]:
    with started(tmp_path_factory.mktemp("objects")) as running:
        yield running


@pytest.fixture(scope="module")
def both(
    login: list[str], run: Run, server: ObjectServer, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Deployment, Deployment]:
    """A folder and a store after every job, of the same topics and the same moment."""
    assert run.line_counts.acked > 0
    folder = tmp_path_factory.mktemp("both")
    local = deployment(login, WarehouseSection(path=str(folder / "warehouse")))
    remote = deployment(login, server.section("live", folder / "checkpoints"))
    now = datetime.now(UTC)
    for each in (local, remote):
        assert each.do("run", "facts", "--once") == 0
    for each in (local, remote):
        take.take(each.conf, now, print)
    for each in (local, remote):
        assert each.do("run", "results", "--once") == 0
    return local, remote


def deployment(login: list[str], section: WarehouseSection) -> Deployment:
    given = section.model_dump(exclude_defaults=True)
    store = given.pop("store", {})
    pairs = [f"warehouse.{key}={value}" for key, value in given.items()]
    pairs += [f"warehouse.store.{key}={value}" for key, value in store.items()]
    pairs = [*login, *WAYS, *pairs]
    return Deployment(config.load(overrides=pairs), in_options(*pairs))


def differing(both: tuple[Deployment, Deployment]) -> dict[str, Any]:
    """Tables with other rows in the store than in the folder, with a row of each side."""
    different = {}
    for name in sorted(set(TABLES) - OF_RUNS):
        local, remote = (each.rows(name) for each in both)
        if local != remote:
            different[name] = (list(local - remote)[:1], list(remote - local)[:1])
    return different


def test_every_table_has_the_rows_that_a_folder_has(both: tuple[Deployment, Deployment]) -> None:
    assert differing(both) == {}
    _, remote = both
    filled = {name for name in TABLES if remote.rows(name).total() > 1}
    assert {"requests", "client_metrics", "quota_usage", "replicas", "producer_id_rates"} <= filled
    (batches,) = FolderReader(Warehouse(remote.conf.warehouse)).rows(
        "SELECT count(DISTINCT batch_id) AS n FROM pipeline_progress "
        "WHERE job = 'ingest_request_log'"
    )
    assert batches["n"] > 1


def test_a_plan_is_applied_and_given_back_from_a_store(
    both: tuple[Deployment, Deployment], command: Command, tmp_path: Path
) -> None:
    """The folder first, then the store: what one writes and takes back, the other writes too."""
    page = tmp_path / "report.html"
    for each in both:
        entity = ConfigEntity(str(each.conf.kafka.cluster_id), "user", MALLORY)
        run = Command(command.capsys, tuple(each.words))
        planned = run("plan", "--json", code=CHANGES_WAIT).rows
        expected = {
            row["config_key"]: row["config_value"]
            for row in planned
            if row["entity_name"] == MALLORY
        }
        assert expected
        run("apply", "--yes")
        assert values(each, entity).items() >= expected.items()
        run("restore", "--all", "--yes")
        assert not values(each, entity).keys() & expected.keys()
        run("report", "--out", str(page))
        assert f"User:{MALLORY}" in page.read_text(encoding="utf-8")


def values(each: Deployment, entity: ConfigEntity) -> dict[str, str]:
    with live_configs.opened(each.conf) as configs:
        return dict(configs.read(entity))
