"""A report at each level: sections are filled from what there is, and name what they lack."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.report.first_screen import Block, blocks
from quotaflow.pipelines.report.page import page
from quotaflow.pipelines.report.report import sections
from quotaflow.pipelines.report.section import ReportSection
from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas import levels
from quotaflow.schemas.levels import ADMIN_API, IN_WORDS, LEVELS, SAMPLED_LOG, TELEMETRY, WHOLE_LOG
from quotaflow.schemas.tables.catalog import TABLES

from ...schemas.views.filled_views import FILLED
from ...schemas.views.view_tables import make_answers, make_table
from .pages import Page, scope

_OF_LOG = "from a request log, sampled or whole"


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((ADMIN_API, False), id="snapshots alone"),
        pytest.param((TELEMETRY, False), id="telemetry too"),
        # A run makes the tables of all its jobs.
        pytest.param((TELEMETRY, True), id="telemetry, all tables made"),
    ],
)
def of_level(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, dict[str, ReportSection]]:
    """The sections on a warehouse that has the tables of a level and no others, or empty ones."""
    level, is_all_made = request.param
    _, made = made_of(level, tmp_path_factory.getbasetemp(), is_all_made=is_all_made)
    return level, {section.title: section for section in made}


@cache
def made_of(
    level: str, folder: Path, *, is_all_made: bool
) -> tuple[Scope, Sequence[ReportSection]]:
    """A warehouse of a level after some snapshots, and its sections."""
    path = folder / f"level-{level}-{is_all_made}"
    warehouse = Warehouse(config.WarehouseSection(path=str(path)))
    least = LEVELS.index(level)
    for name, rows in FILLED.items():
        if LEVELS.index(TABLES[name].level) <= least:
            made = rows
            if least < LEVELS.index(SAMPLED_LOG):
                made = [row for row in rows if row.get("kind") != "allocation"]
            elif name == "requests" and level == SAMPLED_LOG:
                made = [row | {"weight": 10.0} for row in rows]
            make_table(warehouse, TABLES[name], made)
        elif is_all_made:
            make_table(warehouse, TABLES[name], [])
    answers = [a.name for a in ANSWERS if is_all_made or a.table.level != SAMPLED_LOG]
    if least >= LEVELS.index(SAMPLED_LOG):
        answers = [answer.name for answer in ANSWERS]
    make_answers(warehouse, " ".join(answers))
    of_level = scope(warehouse)
    return of_level, sections(of_level)


def test_sections_have_what_snapshots_know(of_level: tuple[str, dict[str, ReportSection]]) -> None:
    _, by_title = of_level
    for title, heads in {
        "Producer ids": {"What ids cost the heap of brokers, as of the last snapshot"},
        "Client quotas": {"Client quotas that are set"},
        "Replication throttles and moves": {
            "Replicas that move, stalled ones first",
            "Throttles that are left over",
        },
    }.items():
        section = by_title[title]
        assert {grid.caption for grid in section.grids if grid.rows} == heads
        assert _OF_LOG in " ".join(section.left_out)
        assert section.advice
    assert by_title["Changes that wait"].grids[0].caption.startswith("Changes that wait")


def test_what_no_table_can_show_is_named(of_level: tuple[str, dict[str, ReportSection]]) -> None:
    level, by_title = of_level
    assert levels.IN_WORDS[level] in by_title["Overview"].sentences[0]
    for title in ("Traffic between racks", "Fetch sizes and reads that fail"):
        (sentence,) = by_title[title].sentences
        assert "a request log, sampled or whole" in sentence
    for section in by_title.values():
        assert "could not be computed" not in " ".join(section.sentences)
        # Nobody is said to be well of whom nothing is known.
        assert "was throttled" not in " ".join(section.sentences)


def test_telemetry_fills_its_section(of_level: tuple[str, dict[str, ReportSection]]) -> None:
    level, by_title = of_level
    section = by_title["Client telemetry and alerts"]
    if level == ADMIN_API:
        assert "`telemetry_pushes` has no rows of this cluster" in section.sentences[0]
        assert "from client telemetry" in section.sentences[0]
    else:
        assert "client instance" in section.sentences[0]
        assert "which never asked" in " ".join(section.left_out)


CLIENTS = (
    "Not known: what clients produced and consumed, throttles, producer ids, and who wrote configs."
)
ALERTS = "Not known: alerts on what clients measure."
OF_LOG, OF_TELEMETRY = (f"That needs {IN_WORDS[each]}." for each in (SAMPLED_LOG, TELEMETRY))
FIRST_SCREENS = {
    ADMIN_API: [f"{CLIENTS} {OF_LOG}", f"{ALERTS} {OF_TELEMETRY}"],
    TELEMETRY: [f"{CLIENTS} {OF_LOG}"],
    SAMPLED_LOG: [],
    WHOLE_LOG: [],
}


@pytest.fixture(
    scope="module",
    params=[
        ADMIN_API,
        TELEMETRY,
        *(pytest.param(level, marks=pytest.mark.faults) for level in (SAMPLED_LOG, WHOLE_LOG)),
    ],
)
def newcomer(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Scope, Sequence[ReportSection]]:
    """What a cluster of a level has, after snapshots and a run."""
    level: str = request.param
    return level, *made_of(level, tmp_path_factory.getbasetemp(), is_all_made=False)


def test_the_first_screen_says_something_at_each_level_and_names_what_the_rest_needs(
    newcomer: tuple[str, Scope, Sequence[ReportSection]],
) -> None:
    level, of_level, made = newcomer
    assert of_level.level == level
    changed, cost = blocks(of_level, made)
    gaps = [each for each in changed.sentences if each.startswith("Not known")]
    assert gaps == FIRST_SCREENS[level]
    assert len(changed.sentences) > len(gaps)
    assert_whole(changed)
    if level in {ADMIN_API, TELEMETRY}:
        assert any(re.match(r"\d+ snapshots found \d+ change", e) for e in changed.sentences)
        assert cost.sentences[0].endswith(OF_LOG)
    else:
        assert_whole(cost)
    text = Page(page(made, of_level, (changed, cost))).text
    assert IN_WORDS[level] in text
    assert "It could not be computed" not in text
    names = {name for _, name in made[0].numbers}
    assert {"brokers", "topics", "partitions"} <= names
    assert ("clients" in names) == (level in {SAMPLED_LOG, WHOLE_LOG})


def assert_whole(block: Block) -> None:
    assert block.action.endswith(".")
    for sentence in block.sentences:
        assert sentence.endswith(".")
        assert not {"None", "nan", "null"} & set(sentence.split())
