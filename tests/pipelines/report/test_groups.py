"""The report's section on groups: causes with what helps, and alarms by how a lag changes."""

from collections import defaultdict

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.areas.groups import BEHIND, FALLS_BEHIND
from quotaflow.pipelines.report import groups
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...rows import Row
from ...schemas.views.test_why_groups_lag import THROTTLES, USAGE
from ...schemas.views.test_why_groups_lag import scene as lagging
from ...schemas.views.view_tables import make_tables_and_answers
from .pages import scope

LAGS = {
    "falls": lagging(requests=THROTTLES, quota_usage=[USAGE]),
    "stays": lagging((0, 0, 1_000)),
    "keeps up": lagging((0, 1_000, 2_000)),
}


@pytest.fixture(scope="module")
def lags(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A cluster for each lag."""
    warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path_factory.mktemp("lags"))))
    content = defaultdict[str, list[Row]](list)
    for cluster, tables in LAGS.items():
        for name, rows in tables.items():
            content[name] += [row | {"cluster_id": cluster} for row in rows]
    make_tables_and_answers(warehouse, content)
    return warehouse


def test_a_group_that_falls_behind_is_an_alarm_with_its_cause(lags: Warehouse) -> None:
    section = groups.section(scope(lags, "falls"))
    assert section.sentences == (
        "1 pair of group and topic is known; more than a minute behind: g.",
    )
    (alarm,) = section.alarms
    assert (alarm.problem, alarm.text) == (
        FALLS_BEHIND,
        "The lag of g grows: a quota stops its fetches.",
    )
    causes, behind = section.grids
    assert causes.rows[0][:4] == ("g", "t", "1,100", "growing")
    assert causes.rows[0][4].startswith("a quota stops its fetches (consumer_byte_rate) (sure); ")
    assert causes.rows[0][5].startswith("raise consumer_byte_rate of the group's clients")
    assert behind.rows[0][:5] == ("g", "classic", "t", "1,100", "11 min")


def test_a_lag_that_stays_is_less_urgent_and_one_that_shrinks_is_none(lags: Warehouse) -> None:
    (alarm,) = groups.section(scope(lags, "stays")).alarms
    assert (alarm.problem, alarm.text) == (
        BEHIND,
        "The lag of g stays: the tables do not show the cause.",
    )


def test_what_snapshots_cannot_show_is_named(warehouse: Warehouse) -> None:
    make_tables_and_answers(warehouse, lagging((0, 100, 1_500), group_members=[]))
    section = groups.section(scope(warehouse))
    assert section.alarms == ()
    assert "show in a request log" in section.left_out[0]


def test_a_group_that_keeps_up_has_nothing_to_do(lags: Warehouse) -> None:
    section = groups.section(scope(lags, "keeps up"))
    assert section.advice.startswith("No step is needed")
    sentence = "1 pair of group and topic is known; more than a minute behind: none."
    assert section.sentences == (sentence,)
