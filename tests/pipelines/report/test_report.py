"""The report on a warehouse, and that no name of a client can act in it."""

import re
from collections.abc import Sequence

from quotaflow.pipelines.report import plan, producer_ids
from quotaflow.pipelines.report.page import page
from quotaflow.pipelines.report.report import SECTIONS, sections
from quotaflow.pipelines.report.section import Figure, ReportSection, grid, number, text
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from .pages import NOW, Page, alarm, scope

_TITLES = [
    "Overview",
    "Diagnoses",
    "Producer ids",
    "Client quotas",
    "Replication throttles and moves",
    "Traffic between racks",
    "Cost by team",
    "Fetch sizes and reads that fail",
    "Groups",
    "Client telemetry and alerts",
    "Changes that wait",
    "Changes that were made",
    "Quality of the tables",
    "Health of the pipeline",
]


def test_every_section_tells_something(report_sections: Sequence[ReportSection]) -> None:
    assert [section.title for section in report_sections] == _TITLES
    assert len({section.anchor for section in report_sections}) == len(_TITLES)
    assert failures(report_sections) == []
    for section in report_sections:
        assert section.time_range, section
        assert section.advice or section.title == "Overview", section


def test_the_page_asks_no_network_and_every_link_leads_somewhere(
    filled: Warehouse, report_sections: Sequence[ReportSection]
) -> None:
    read = Page(page(report_sections, scope(filled)))
    assert all(address.startswith("#") for address in read.addresses)
    assert {address[1:] for address in read.addresses} <= set(read.ids)
    assert not {"link", "iframe", "object"} & set(read.tags)


def test_rows_before_the_time_asked_for_are_left_out_and_told(filled: Warehouse) -> None:
    (sentence,) = producer_ids.section(scope(filled, since=NOW)).left_out
    assert "`producer_id_uses` has no rows since 2026-11-21 14:00:00 UTC" in sentence
    assert "its newest is of 2026-11-21 12:00:00" in sentence


def test_a_cluster_without_rows_is_told_what_would_bring_some(filled: Warehouse) -> None:
    # The plan takes seconds to compute, and is empty here.
    made = dict(SECTIONS)
    del made[plan.TITLE]
    empty = [section(scope(filled, "")) for section in made.values()]
    for section in empty:
        sentences = " ".join((*section.sentences, *section.left_out))
        assert re.search(r"`quotaflow \w+|[Nn]othing", sentences), section
        assert not section.charts, "no empty chart"
        assert not section.alarms
    read = Page(page(empty, scope(filled, "")))
    assert "No job has rows of a cluster yet" in read.text
    assert "Nothing is known to be wrong." in read.text


def failures(report_sections: Sequence[ReportSection]) -> list[str]:
    return [
        sentence
        for each in report_sections
        for sentence in each.sentences
        if "could not be computed" in sentence
    ]


def test_sections_without_their_tables_say_which_command_makes_them(warehouse: Warehouse) -> None:
    by_title = {section.title: section for section in sections(scope(warehouse))}
    (sentence,) = by_title["Traffic between racks"].sentences
    assert sentence.startswith("Nothing yet, for it needs a request log, sampled or whole: ")
    assert "table rack_traffic was never made" in sentence
    assert "run request_results --once" in sentence


def test_a_table_that_cannot_be_read_costs_its_section_and_is_an_alarm(
    warehouse: Warehouse,
) -> None:
    log = warehouse.folder("rack_traffic") / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("not a log")
    by_title = {section.title: section for section in sections(scope(warehouse))}
    racks = by_title["Traffic between racks"]
    assert racks.sentences[0].startswith("It could not be computed: ")
    assert racks.alarms
    assert by_title["Fetch sizes and reads that fail"].sentences[0].startswith("Nothing yet")


def test_what_clients_named_stays_text(
    filled: Warehouse, report_sections: Sequence[ReportSection]
) -> None:
    text = page(report_sections, scope(filled))
    read = Page(text)
    assert not {"img", "b"} & set(read.tags)
    assert "script" not in read.tags, "charts need none"
    assert read.tags.count("figure") == sum(len(each.charts) for each in report_sections)
    assert len(text.encode()) < 1_000_000
    assert not {"\u202e", "\u2066", "\x00", "\x1b"} & set(text)
    assert "x" * 500 not in read.text
    assert re.findall(r"\b49\b", read.text) == [], "no template is run"
    assert "</script><script>alert(1)" in read.text, "it is shown"


def test_alarms_come_first_and_lead_to_their_section(warehouse: Warehouse) -> None:
    late = ReportSection("Late", alarms=(alarm(3, "One day."),))
    now = ReportSection("Now", alarms=(alarm(1, "At once: `quotaflow why`."),))
    read = Page(page([ReportSection("Overview"), late, now], scope(warehouse)))
    assert read.text.index("At once") < read.text.index("One day")
    assert read.addresses[:2] == ["#now", "#late"]
    assert "code" in read.tags


def test_lists_are_cut_and_say_how_many_more_there_are(warehouse: Warehouse) -> None:
    rows = [{"name": n, "of_all": 1_234} for n in range(30)]
    cut = grid("Names", rows, (text("name", "name"), number("n", "name")), "None.")
    assert len(cut.rows) == 20
    assert cut.caption == "Names (the first 20 of 1,234)"
    read = Page(page([ReportSection("All", grids=(cut,))], scope(warehouse)))
    assert read.tags.count("caption") == 1
    assert read.tags.count("th") == 2


def test_what_is_empty_says_so(warehouse: Warehouse) -> None:
    none = grid("steps", [], (text("step", "step"),), empty="Nothing to do.")
    read = Page(
        page([ReportSection("Racks", sentences=("Quiet.",), grids=(none,))], scope(warehouse))
    )
    assert "steps: Nothing to do." in read.text
    assert "table" not in read.tags


def test_a_chart_has_its_words_beside_it(warehouse: Warehouse) -> None:
    chart = Figure("<svg></svg>", 'so "much"')
    text = page([ReportSection("Racks", charts=(chart,))], scope(warehouse))
    assert 'aria-label="so &#34;much&#34;"' in text
    assert 'so "much"' in Page(text).texts


def test_the_policy_of_the_page_allows_nothing_from_elsewhere(warehouse: Warehouse) -> None:
    text = page([], scope(warehouse))
    policy = re.search(r'Content-Security-Policy"\s+content="([^"]+)"', text)
    assert policy is not None
    assert policy[1] == "default-src 'none'; style-src 'unsafe-inline'"
