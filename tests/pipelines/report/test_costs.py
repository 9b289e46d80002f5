"""Costs: one total, whichever page, view or query shows it, and an amount at its price."""

from dataclasses import replace
from datetime import date

import pytest

from quotaflow.pipelines.areas.costs import COST_ITEMS, ITEMS, costs_of
from quotaflow.pipelines.areas.names import TOPIC
from quotaflow.pipelines.config.cluster import Team
from quotaflow.pipelines.dashboard.questions import QUESTIONS
from quotaflow.pipelines.report.first_screen import blocks
from quotaflow.pipelines.report.teams import section
from quotaflow.pipelines.serve.drawings import CostList, conditions, drawings
from quotaflow.pipelines.terminal import texts
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...rows import Row, at, moved, read_remotely, setting
from ...schemas.views.test_snapshots_alone import replica, size, taken
from ...schemas.views.view_tables import make_tables
from .test_teams import owned

GIB = 2**30
HOUR_S = 3_600
PRICES = {
    "produced_per_gib": 1.0,
    "consumed_per_gib": 2.0,
    "cross_rack_per_gib": 4.0,
    "remote_read_per_gib": 8.0,
    # An hour of a GiB costs 16.
    "stored_per_gib_month": 16.0 * 730,
}
SETTINGS = [
    setting("prices.currency", "EUR"),
    *(setting(f"prices.{key}", price) for key, price in PRICES.items()),
]
TEAMS = [Team(team="shop", topics=["orders"]), Team(team="logs", principals=["User:log"])]
STORED = [replica(0, 1, topic="orders"), size(0, 1, GIB, topic="orders")]
OTHERS = [replica(0, 1, topic="audit", topic_id="a"), size(0, 1, GIB // 2, topic="audit")]
TABLES: dict[str, list[Row]] = {
    "traffic": [
        moved(1, GIB, topic="orders", cross_rack_bytes=GIB // 4),
        moved(2, GIB, topic="orders", direction="consumed", principal="User:log"),
        moved(3, GIB, topic="audit", cross_rack_bytes=0),
    ],
    "remote_reads": [read_remotely(5, GIB)],
    "replicas": [row for row in (*STORED, *OTHERS) if "log_dir" not in row],
    "replica_sizes": [row for row in (*STORED, *OTHERS) if "log_dir" in row],
    "pipeline_progress": taken(0, HOUR_S),
    "settings": SETTINGS,
}
SHOP = 1.0 + 1.0 + 8.0 + 16.0
LOGS = 2.0
NOBODY = 1.0 + 8.0
ALL = SHOP + LOGS + NOBODY


@pytest.fixture
def filled(warehouse: Warehouse) -> Warehouse:
    make_tables(warehouse, TABLES)
    return warehouse


def price_of(item: str) -> str:
    """The key of conf with the price of an item."""
    return "stored_per_gib_month" if item == "stored" else f"{item}_per_gib"


def eur(amount: float) -> str:
    return texts.money(amount, "EUR")


def test_every_place_shows_one_total(filled: Warehouse) -> None:
    scope = owned(filled, TEAMS)
    costs = costs_of(scope)
    assert costs.total["cost"] == pytest.approx(ALL)
    assert costs.total["known_s"] == HOUR_S
    for rows in (costs.teams, costs.topics):
        assert sum(row["cost"] for row in rows) == pytest.approx(ALL)

    (_, block) = blocks(scope, ())
    assert block.sentences[-1] == (
        f"Clients and topics cost {eur(ALL)}: 2.00 EUR produced, "
        "2.00 EUR consumed, 1.00 EUR between racks, 8.00 EUR read from remote storage, "
        "24.00 EUR kept on disks. No client or topic pays for replication between racks."
    )
    of_teams, of_topics = section(scope).grids
    assert {row[0]: row[-1] for row in of_teams.rows} == {
        "shop": eur(SHOP),
        "no team": eur(NOBODY),
        "logs": eur(LOGS),
    }
    assert {row[:2]: row[-2:] for row in of_topics.rows} == {
        ("shop", "orders"): (eur(16.0), eur(SHOP)),
        ("logs", "orders"): ("", eur(LOGS)),
        ("no team", "audit"): (eur(8.0), eur(NOBODY)),
    }

    (sums,) = scope.rows(
        "SELECT (SELECT sum(cost) FROM traffic_by_hour) "
        "+ (SELECT sum(remote_read_cost) FROM remote_reads_by_hour) "
        "+ (SELECT sum(storage_cost) FROM storage_by_hour) AS cost"
    )
    assert sums["cost"] == pytest.approx(ALL)
    days = date(2000, 1, 1), date(2099, 12, 31)
    for name in ("costs", "costs_of_topics"):
        rows = scope.reader.rows(QUESTIONS[name].between(*days))
        assert sum(row["cost"] for row in rows) == pytest.approx(ALL), name


def test_the_page_of_a_topic_has_its_items(filled: Warehouse) -> None:
    scope = owned(filled, TEAMS)
    (costs,) = [each for each in drawings(TOPIC, ()) if isinstance(each, CostList)]
    parts = conditions(scope, TOPIC, "orders")
    assert parts
    drawn = costs.draw(scope, parts)
    assert drawn
    assert {row[0]: row[2:] for row in drawn.rows} == {
        "kept on disks": ("GiB-month", eur(16.0)),
        "read from remote storage": ("GiB", eur(8.0)),
        "consumed": ("GiB", eur(2.0)),
        "produced": ("GiB", eur(1.0)),
        "between racks": ("GiB", eur(1.0)),
    }


def test_a_cost_is_an_amount_at_its_price(filled: Warehouse) -> None:
    rows = owned(filled).rows(f"SELECT * FROM ({COST_ITEMS}) AS costs")
    assert {row["item"] for row in rows} == set(ITEMS)
    for row in rows:
        assert row["cost"] == pytest.approx(row["amount"] * PRICES[price_of(row["item"])])
        assert row["currency"] == "EUR"


@pytest.mark.parametrize("item", ITEMS)
def test_an_item_without_a_price_has_no_cost_and_the_others_have_theirs(
    warehouse: Warehouse, item: str
) -> None:
    left = [row for row in SETTINGS if row["setting"] != f"prices.{price_of(item)}"]
    make_tables(warehouse, TABLES | {"settings": left})
    total = costs_of(owned(warehouse)).total
    assert {each for each in ITEMS if total[f"{each}_cost"] is None} == {item}


def test_without_a_request_log_storage_alone_has_a_cost(warehouse: Warehouse) -> None:
    alone = {name: rows for name, rows in TABLES.items() if name not in {"traffic", "remote_reads"}}
    make_tables(warehouse, alone)
    scope = owned(warehouse, TEAMS)
    assert blocks(scope, ())[1].sentences == (
        "No bytes between racks are known of this time. That needs a request log, sampled or "
        "whole.",
        "Clients and topics cost 24.00 EUR: 24.00 EUR kept on disks. No client or topic pays for "
        "replication between racks.",
    )
    assert [row[-1] for row in section(scope).grids[0].rows] == [eur(16.0), eur(8.0)]


def test_costs_of_another_time_are_another_sum(filled: Warehouse) -> None:
    later = costs_of(replace(owned(filled), since=at(24 * HOUR_S)))
    assert (later.teams, later.topics) == ([], [])
    assert {later.total[name] for name in ("cost", "last_hour", "known_s")} == {None}
