"""The scope of a report: its cluster, time range and steps."""

from dataclasses import replace
from datetime import timedelta

import pytest

from quotaflow.pipelines.areas.clusters import choose_cluster, clusters
from quotaflow.pipelines.areas.scope import MAX_POINTS
from quotaflow.pipelines.errors import ConfigError, NeverMadeError
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...cases import cases
from ...delta_tables import NOON, Fill
from ...rows import at
from .pages import scope


def test_the_only_cluster_needs_no_name() -> None:
    assert choose_cluster({"c1": NOON}, None) == "c1"
    assert choose_cluster({}, None) == ""


def test_one_of_several_clusters_must_be_named() -> None:
    cluster_ids = {"c1": NOON, "c2": NOON}
    assert choose_cluster(cluster_ids, "c2") == "c2"
    with pytest.raises(ConfigError, match=r"have 2 clusters: choose one with --cluster: c1, c2"):
        choose_cluster(cluster_ids, None)


def test_a_cluster_that_is_not_there_is_an_error_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"no cluster prod-q \(did you mean prod-a\?\)"):
        choose_cluster({"prod-a": NOON, "x": NOON}, "prod-q")


def test_a_warehouse_that_was_never_made_is_an_error(warehouse: Warehouse) -> None:
    with pytest.raises(NeverMadeError, match="pipeline_progress was never made"):
        clusters(FolderReader(warehouse))


def test_the_newest_event_is_that_of_clients_not_of_snapshots(filled: Warehouse) -> None:
    assert clusters(FolderReader(filled)) == {"c1": at(65)}


def test_what_was_counted_before_the_cluster_was_named_makes_no_other(
    warehouse: Warehouse, fill: Fill
) -> None:
    counts = [
        {"cluster_id": cluster_id, "event_time": NOON, "job": "fetches", "row_count": 1}
        for cluster_id in ("c1", None)
    ]
    fill("pipeline_progress", counts)
    assert set(clusters(FolderReader(warehouse))) == {"c1"}


def test_names_are_quoted_in_queries(filled: Warehouse) -> None:
    rows = scope(filled, "c1' OR '1' = '1").rows(
        "SELECT count(*) AS n FROM traffic WHERE cluster_id = {cluster}"
    )
    assert rows == [{"n": 0}]


def test_times_past_the_years_of_python_are_none(filled: Warehouse) -> None:
    (row,) = scope(filled).rows(
        "SELECT make_timestamp(9000000000000000000) AS far, "
        "timestamp '2026-11-21T12:00:00Z' AS near"
    )
    assert row["far"] is None
    assert row["near"] == NOON


@cases(("least_s", "step_s"), ("120 points at most", 1, 10), ("not less than asked", 60, 60))
def test_steps_keep_a_line_short(filled: Warehouse, least_s: int, step_s: int) -> None:
    assert scope(filled).extent("replica_offsets") == (NOON, NOON + timedelta(minutes=14))
    assert MAX_POINTS == 120
    assert scope(filled).step_s("replica_offsets", least_s) == step_s


def test_scopes_of_nearly_one_time_open_tables_once(filled: Warehouse) -> None:
    first = scope(filled)
    for second in range(3):
        times = {"since": at(60 + second), "until": at(65 + second)}
        replace(first, **times).rows("SELECT count(*) AS n FROM traffic")
    assert isinstance(first.reader, FolderReader)
    assert len(first.reader._database._schemas.made) == 1, (
        "else a page of each name opens them again"
    )
