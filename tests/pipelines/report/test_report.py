"""The report: what it says of a warehouse, and that nothing a client named can act in it."""

import json
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import pytest

from quotaflow.pipelines.reader import NeverMadeError, Reader
from quotaflow.pipelines.report import heat_map, rack_traffic, section
from quotaflow.pipelines.report.page import page
from quotaflow.pipelines.report.report import report
from quotaflow.pipelines.report.section import Chart, Grid, Section
from quotaflow.pipelines.warehouse import Warehouse

from ..view_rows import FILLED, choice, crossed, make_tables, setting

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


class Page(HTMLParser):
    """What a browser makes of the page: its tags, texts, and the addresses it would ask."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self._in_script = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._in_script = tag == "script"
        self.addresses += [value or "" for name, value in attrs if name in {"src", "href"}]

    def handle_data(self, data: str) -> None:
        (self.scripts if self._in_script else self.texts).append(data)

    def handle_endtag(self, tag: str) -> None:
        self._in_script = self._in_script and tag != "script"

    @property
    def charts(self) -> list[dict[str, Any]]:
        return [json.loads(text) for text in self.scripts if text.startswith('{"data"')]


def test_a_report_tells_what_crosses_racks(warehouse: Warehouse) -> None:
    make_tables(warehouse, FILLED)
    read = Page(report(Reader(warehouse), NOON))
    said = " ".join(read.texts)
    assert "Consumers read 1.1 GB in the last day; 1.1 GB crossed racks" in said
    assert "set client.rack=az-b at client orders of User:alice" in said
    assert [chart["data"][0]["y"] for chart in read.charts] == [["az-b"], ["not known"], ["az-c"]]


def test_the_page_asks_no_network(warehouse: Warehouse) -> None:
    make_tables(warehouse, FILLED)
    read = Page(report(Reader(warehouse), NOON))
    assert read.addresses == []
    assert "link" not in read.tags


def test_what_clients_named_stays_text(warehouse: Warehouse) -> None:
    named = {"client_rack": HOSTILE, "client_id": HOSTILE, "topic": HOSTILE}
    content = {
        "rack_traffic": [crossed(0, 8, client_rack=HOSTILE)],
        "preferred_replicas": [choice(0, 8, is_rack_inferred=False, **named)],
        "settings": [setting("prices.currency", HOSTILE)],
    }
    make_tables(warehouse, content)
    read = Page(report(Reader(warehouse), NOON))
    assert "img" not in read.tags
    plain = Page(page([], NOON, "w"))
    assert read.tags.count("script") == plain.tags.count("script") + len(read.charts)
    (rack,) = read.charts[0]["data"][0]["y"]
    assert rack.startswith("&lt;/script&gt;")
    assert any(text.startswith("see why </script>") for text in read.texts)


def test_clusters_are_told_apart(warehouse: Warehouse) -> None:
    one, two = crossed(0, 1_000), crossed(0, 2_000, cluster_id="c2", client_rack="az-z")
    make_tables(warehouse, {"rack_traffic": [one, two]})
    told = rack_traffic.section(Reader(warehouse))
    assert [sentence[:36] for sentence in told.sentences] == [
        "Cluster c1: consumers read 1.0 kB in",
        "Cluster c2: consumers read 2.0 kB in",
    ]
    assert [chart.caption[:10] for chart in told.charts] == ["Cluster c1", "Cluster c2"]


def test_a_client_may_name_any_number_of_racks(warehouse: Warehouse) -> None:
    rows = [crossed(0, 100 + n, client_rack=f"rack-{n:02}") for n in range(40)]
    make_tables(warehouse, {"rack_traffic": rows})
    (chart,) = rack_traffic.section(Reader(warehouse)).charts
    assert json.loads(chart.figure)["data"][0]["y"] == [f"rack-{n}" for n in range(16, 40)]
    assert chart.caption.endswith("(the greatest 24 of 40 pairs)")


def test_bytes_of_racks_nobody_knows_are_told(warehouse: Warehouse) -> None:
    rows = [crossed(0, 500, client_rack=None, cross_rack_bytes=None)]
    make_tables(warehouse, {"rack_traffic": rows})
    told = rack_traffic.section(Reader(warehouse))
    assert told.sentences[0].endswith("For 500 bytes the rack of one side is not known.")
    assert told.grids[0].rows == ()


def test_tables_that_were_never_made_are_an_error(warehouse: Warehouse) -> None:
    with pytest.raises(NeverMadeError, match="quotaflow snapshot"):
        report(Reader(warehouse), NOON)


def test_what_is_empty_says_so() -> None:
    grid = Grid("steps", ("step",), (), empty="Nothing to do.")
    read = Page(page([Section("Racks", ("Quiet.",), grids=(grid,))], NOON, "w"))
    assert {"Racks", "Quiet.", "Nothing to do."} <= set(read.texts)
    assert "th" not in read.tags


def test_a_chart_has_its_words_beside_it() -> None:
    chart = Chart(heat_map.heat_map({("a", "b"): 1.0}, "from", "to"), 'so "much"')
    text = page([Section("Racks", (), charts=(chart,))], NOON, "w")
    assert 'aria-label="so &#34;much&#34;"' in text
    assert 'so "much"' in Page(text).texts


def test_pairs_without_bytes_stay_blank_and_unknown_racks_come_last() -> None:
    cells = {(None, "x"): 5.0, ("b", "y"): 1_500_000.0, ("a", "x"): 0.0}
    data = json.loads(heat_map.heat_map(cells, "from", "to"))["data"][0]
    assert data["y"] == ["a", "b", "not known"]
    assert data["text"] == [["0 bytes", ""], ["", "1.5 MB"], ["5 bytes", ""]]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param(None, "not known", id="none"),
        pytest.param("az-a", "az-a", id="plain"),
        pytest.param("a\u202eb\n", "a\ufffdb\ufffd", id="what does not print"),
        pytest.param("x" * 60, "x" * 47 + "…", id="too long"),
        pytest.param("<b>&amp;", "&lt;b&gt;&amp;amp;", id="markup"),
    ],
)
def test_labels_are_bounded_text(name: str | None, shown: str) -> None:
    assert section.label(name) == shown


def test_the_policy_of_the_page_allows_nothing_from_elsewhere() -> None:
    text = page([], NOON, "w")
    policy = re.search(r'Content-Security-Policy"\s+content="([^"]+)"', text)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "http" not in policy[1]
