"""A report at each level: sections are filled from what there is, and name what they lack."""

from pathlib import Path

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.report.report import sections
from quotaflow.pipelines.report.section import ReportSection
from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas import levels
from quotaflow.schemas.levels import ADMIN_API, LEVELS, SAMPLED_LOG, TELEMETRY
from quotaflow.schemas.tables.catalog import TABLES

from ...schemas.views.filled_views import FILLED
from ...schemas.views.view_tables import make_answers, make_table
from .pages import scope

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
    return level, report_of(level, tmp_path_factory.mktemp(level), is_all_made=is_all_made)


def report_of(level: str, folder: Path, *, is_all_made: bool) -> dict[str, ReportSection]:
    warehouse = Warehouse(config.WarehouseSection(path=str(folder)))
    least = LEVELS.index(level)
    for name, rows in FILLED.items():
        if LEVELS.index(levels.of_table(name)) <= least:
            made = [row for row in rows if row.get("kind") != "allocation"]
            make_table(warehouse, TABLES[name], made)
        elif is_all_made:
            make_table(warehouse, TABLES[name], [])
    answers = [a.name for a in ANSWERS if is_all_made or levels.of_table(a.name) != SAMPLED_LOG]
    make_answers(warehouse, " ".join(answers))
    return {section.title: section for section in sections(scope(warehouse))}


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
        assert "telemetry_pushes has no rows of this cluster" in section.sentences[0]
        assert "from client telemetry" in section.sentences[0]
    else:
        assert "client instance" in section.sentences[0]
        assert "which never asked" in " ".join(section.left_out)
