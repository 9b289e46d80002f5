"""Causes planted into groups of a real cluster are named first, and no other is sure."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines.jobs import runner

from ..simulators.groups.confusion import SURE
from . import lag_scene
from .conftest import conf_of_scene
from .lag_scene import GROUPS, KEEPS_UP, LOG, PREFIX
from .tables_read import query

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1_800)]
JOBS = ["ingest_request_log", "client_metrics", "fetches", "fetch_results", "request_results"]
PLANTED = [group.removeprefix(PREFIX) for group in GROUPS if group != KEEPS_UP]
Causes = Mapping[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def named(
    cluster: LocalCluster, login: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Causes:
    """Causes by group, the surest first."""
    conf = conf_of_scene(login, tmp_path_factory.mktemp("lag"), LOG)
    lag_scene.play(cluster, conf)
    runner.run(conf, JOBS, None, lambda _: None)
    return causes(conf.warehouse.folder)


def causes(folder: Path) -> Causes:
    rows = query(folder, f"SELECT * FROM why_groups_lag WHERE group_id LIKE '{PREFIX}%'")
    named = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["rank"]):
        named[row["group_id"]].append(row)
    return named


def test_who_keeps_up_is_not_listed(named: Causes) -> None:
    assert named.keys() == set(GROUPS) - {KEEPS_UP}


@pytest.mark.parametrize("cause", PLANTED)
def test_a_planted_cause_is_named_first_and_no_other_is_sure(named: Causes, cause: str) -> None:
    first, *others = named[PREFIX + cause]
    assert first["cause"] == cause, (first, others)
    assert [row for row in others if (row["confidence"] or 0) >= SURE] == []
