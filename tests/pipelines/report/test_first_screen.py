"""The first screen: to-dos with one action each, numbers against the period before, costs."""

import re
from dataclasses import replace
from datetime import timedelta

from quotaflow.pipelines import config
from quotaflow.pipelines.areas.finding import NOW as AT_ONCE
from quotaflow.pipelines.areas.finding import SOON
from quotaflow.pipelines.report import rack_traffic
from quotaflow.pipelines.report.first_screen import Block, blocks, to_dos
from quotaflow.pipelines.report.page import page
from quotaflow.pipelines.report.section import ReportSection
from quotaflow.pipelines.terminal import texts
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...rows import Row, altered, at, moved, setting
from ...schemas.views.view_tables import make_tables
from .pages import Page, alarm, scope

_DAY_S = 86_400
ALERTS = "Not known: alerts on what clients measure. That needs client telemetry."


def compared(warehouse: Warehouse, first_s: float) -> Block:
    """The block of changes on tables whose first row is of this second; a day begins at 0."""
    traffic = [moved(first_s, 1), moved(-60, 1_000), moved(60, 1_500)]
    alterations = [altered(60, "retention.ms", "9"), altered(61, "retention.ms", "8", error_code=7)]
    make_tables(warehouse, {"traffic": traffic, "config_alterations": alterations})
    changed, _ = blocks(scope(warehouse, since=at(0), until=at(_DAY_S)), ())
    return changed


def test_numbers_are_compared_with_the_day_before(warehouse: Warehouse) -> None:
    changed = compared(warehouse, -2 * _DAY_S)
    assert changed.title == "What changed since yesterday"
    assert [(tile.name, tile.value, tile.note) for tile in changed.tiles] == [
        ("Clients produced", "1.5 kB", "50 % more than the day before (1.0 kB)"),
        ("Clients consumed", "0 bytes", "as the day before"),
        ("Brokers throttled clients for", "0 ms", "as the day before"),
        ("New producer ids", "0", "as the day before"),
    ]
    produced, *others = [re.findall("<title>(.*?)</title>", tile.figure) for tile in changed.tiles]
    assert produced == ["11-21 12:00: 1.5 kB"], "the day before has no part in the line"
    assert others == [[], [], []]
    assert changed.sentences == (
        "Configs and quotas written: 1, and none the day before.",
        ALERTS,
    )
    expected = "`quotaflow show config_alterations` names who is behind the number that rose most."
    assert changed.action == expected


def test_without_a_whole_period_before_one_sentence_says_so(warehouse: Warehouse) -> None:
    changed = compared(warehouse, -_DAY_S / 2)
    assert [tile.note for tile in changed.tiles] == [""] * 4
    assert changed.sentences == (
        "Configs and quotas written: 1.",
        "No number can be compared: the day before is not known.",
        ALERTS,
    )
    assert changed.action.startswith("Let `quotaflow run` read on")


def test_a_warehouse_without_clients_knows_neither_changes_nor_costs(warehouse: Warehouse) -> None:
    for block in blocks(scope(warehouse), ()):
        assert block.sentences[0].startswith("No ")
        assert block.action == ""


def rack_row(crossed: int | None) -> Row:
    row = {"cluster_id": "c1", "event_time": at(0), "flow": "consumed", "broker_id": 1}
    row |= {"client_rack": "a", "broker_rack": "b", "is_rack_inferred": False, "requests": 1}
    return row | {"bytes": 2**31, "cross_rack_bytes": crossed}


def test_costs_have_the_prices_of_conf_and_say_where_none_is_known(warehouse: Warehouse) -> None:
    tables = {
        "rack_traffic": [rack_row(2**30), rack_row(None) | {"client_rack": None}],
        "preferred_replicas": [],
    }
    make_tables(warehouse, {**tables, "settings": [], "traffic": [moved(0, 2**31)]})
    _, cost = blocks(scope(warehouse), ())
    assert cost.sentences[:2] == (
        "1.1 GB of 4.3 GB crossed racks.",
        "For 2.1 GB the rack of one side is not known.",
    )
    assert cost.sentences[2].startswith("The amount of money is not known: ")
    assert len(cost.sentences) == 3


def test_costs_are_amounts_with_prices(warehouse: Warehouse) -> None:
    tables = {"rack_traffic": [rack_row(2**30)], "preferred_replicas": []}
    prices = {"cross_rack_per_gib": "0.5", "produced_per_gib": 2.0, "currency": "EUR"}
    settings = [setting(f"prices.{name}", value) for name, value in prices.items()]
    make_tables(warehouse, {**tables, "settings": settings, "traffic": [moved(0, 2**31)]})
    racks = ReportSection(rack_traffic.TITLE, advice="First: set client.rack=a.")
    # Costs are by hour: the first one began before the time of the report.
    _, cost = blocks(scope(warehouse, since=at(1_800)), (racks,))
    assert cost.title == f"What it costs since {texts.moment(at(0))} UTC"
    assert cost.sentences[1:] == (
        "Bytes between racks cost 0.50 EUR.",
        "Clients and topics cost 4.00 EUR: 4.00 EUR "
        "produced, 0.00 EUR between racks. No client or topic pays for replication between racks.",
    )
    assert cost.action == "Set client.rack=a."


def test_bytes_between_racks_have_the_time_of_their_hours(warehouse: Warehouse) -> None:
    later = rack_row(2**30) | {"event_time": at(2_400)}
    empty = ("replica_advice", "producer_rack_advice", "client_racks", "preferred_replicas")
    tables: dict[str, list[Row]] = {name: [] for name in (*empty, "settings")}
    make_tables(warehouse, tables | {"rack_traffic": [rack_row(2**30), later]})
    section = rack_traffic.section(scope(warehouse, since=at(1_800)))
    assert section.sentences[0].startswith("Consumers read 4.3 GB")
    assert section.time_range == texts.time_range(at(0), at(2_400))


def test_each_alarm_has_one_action_and_the_worst_comes_first() -> None:
    own = ReportSection("Own", alarms=(alarm(SOON, "Near.", "Do this."),), advice="That; more.")
    other = ReportSection("Other", alarms=(alarm(AT_ONCE, "Bad."),), advice="Do one; do two.")
    quiet = ReportSection("Quiet", alarms=(alarm(SOON, "Odd."),), advice="No step is needed.")
    actions = [(each.alarm.text, each.action) for each in to_dos([own, other, quiet])]
    assert actions == [("Bad.", "Do one."), ("Near.", "Do this."), ("Odd.", "")]


def test_the_first_screen_folds_what_is_less_urgent_and_names_no_folder(
    warehouse: Warehouse,
) -> None:
    alarms = tuple(alarm(SOON, f"Alarm {n}.") for n in range(7))
    shown = scope(warehouse, now=at(_DAY_S) + timedelta(days=1))
    text = page([ReportSection("Late", alarms=alarms)], shown, (Block("Cost", ("Much.",)),))
    read = Page(text)
    assert "2 more, less urgent" in read.text
    assert read.text.index("Alarm 0.") < read.text.index("Much.") < read.text.index("Contents")
    assert str(warehouse.conf.location) not in text
    conf = config.Conf(warehouse=config.WarehouseSection(catalog_schema="main.kafka"))
    named = page([], replace(shown, conf=conf))
    assert "from main.kafka" in Page(named).text
