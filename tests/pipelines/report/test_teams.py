"""The report's section on teams: who owns what, and what is not known."""

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.config.cluster import ClusterSection, Team
from quotaflow.pipelines.report import teams
from quotaflow.pipelines.report.page import page
from quotaflow.pipelines.report.section import ReportSection
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...rows import Row, moved, setting
from ...schemas.views.test_snapshots_alone import replica, size, taken
from ...schemas.views.view_tables import make_tables
from .pages import Page, scope

GIB = 2**30
TEAMS = [
    Team(team="pay's", principals=["User:pay-*"], topics=["pay_ments*"]),
    Team(team="web", clients=["web-*"]),
]


def owned(warehouse: Warehouse, owners: list[Team] = TEAMS) -> Scope:
    made = scope(warehouse)
    conf = config.Conf(warehouse=warehouse.conf, teams=owners)
    return Scope(made.reader, "c1", made.since, made.until, made.now, conf)


def sent(size: int, topic: str, principal: str = "User:x", client_id: str = "x") -> Row:
    return moved(1, size, topic=topic, principal=principal, client_id=client_id)


def by_team(section: ReportSection) -> dict[tuple[str, ...], tuple[str, ...]]:
    _, of_topics = section.grids
    return {row[:2]: row[2:] for row in of_topics.rows}


def test_traffic_is_of_the_team_of_its_client_else_of_its_topic(warehouse: Warehouse) -> None:
    rows = [
        sent(1_000, "pay_ments", "User:x", "web-1"),
        sent(2_000, "pay_ments-2"),
        sent(3_000, "payXments"),
        sent(4_000, "t", "User:pay-1", "web-2"),
    ]
    make_tables(warehouse, {"traffic": rows})
    section = teams.section(owned(warehouse))
    assert {key: row[0] for key, row in by_team(section).items()} == {
        ("pay's", "t"): "4.0 kB",
        ("no team", "payXments"): "3.0 kB",
        ("pay's", "pay_ments-2"): "2.0 kB",
        ("web", "pay_ments"): "1.0 kB",
    }
    assert section.sentences == ("2 teams in this time, the greatest first: pay's and web.",)
    assert section.advice == "Name an owner in conf (`teams`) for the 3.0 kB of no team."


def kept(topic: str, broker_id: int, size_bytes: int) -> list[Row]:
    """A replica of a topic, and its size."""
    return [
        replica(0, broker_id, topic=topic, topic_id=topic),
        size(0, broker_id, size_bytes, topic=topic),
    ]


def test_costs_and_stored_bytes_are_known_or_say_why_not(warehouse: Warehouse) -> None:
    logs = [*kept("pay_ments", 1, 500), *kept("pay_ments", 2, 700)]
    tables = {
        "traffic": [sent(GIB, "pay_ments", client_id="web-1"), sent(1, "t")],
        "replicas": [row for row in logs if "log_dir" not in row] + kept("t", 1, 0)[:1],
        "replica_sizes": [row for row in logs if "log_dir" in row],
        "pipeline_progress": taken(0, 1_800),
        "settings": [setting("prices.produced_per_gib", 2.0), setting("prices.currency", "EUR")],
    }
    make_tables(warehouse, tables)
    section = teams.section(owned(warehouse))
    rows = by_team(section)
    assert rows["web", "pay_ments"][-3:] == ("0 bytes", "", "2.00 EUR")
    assert rows["pay's", "pay_ments"][-3:] == ("1.2 kB", "", "")
    assert rows["no team", "t"][-3:] == ("not known", "", "less than 0.01 EUR")
    reasons = " ".join(section.left_out)
    assert "Stored bytes and their cost cover the 30 min between snapshots." in reasons
    assert "1 topic has hours with a replica of unknown size" in reasons
    assert "No cost is known" not in reasons


def test_without_teams_the_section_names_the_key_of_conf(warehouse: Warehouse) -> None:
    make_tables(warehouse, {"traffic": [sent(5, "t")]})
    section = teams.section(owned(warehouse, []))
    assert section.sentences[0].startswith("Conf names no `teams`")
    assert section.advice == "No step is needed."
    assert "Costs are not known: no snapshot has prices of conf (`prices`)." in section.left_out


@pytest.mark.parametrize("pattern", ["", "a" * 256, "*a*a*a*a*", "a\nb", "{cluster}"])
def test_a_pattern_that_costs_much_or_has_marks_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="write 1 to 255 characters"):
        Team(team="t", topics=[pattern])


def test_a_team_without_patterns_is_refused() -> None:
    with pytest.raises(ValueError, match="name principals, clients or topics of the team"):
        Team(team="t")


def test_the_head_has_the_names_of_conf(warehouse: Warehouse) -> None:
    names = ClusterSection(name="orders", environment="production", owner="ops <b>")
    made = scope(warehouse)
    conf = config.Conf(warehouse=warehouse.conf, cluster=names)
    named = Scope(made.reader, "c1", made.since, made.until, made.now, conf)
    read = Page(page([], named))
    assert "quotaflow report of orders" in read.text
    assert "production · owner: ops <b> · cluster id: c1" in read.text
    assert "quotaflow report of cluster c1" in Page(page([], made)).text
