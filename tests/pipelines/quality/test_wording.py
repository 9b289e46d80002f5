"""The page of checks: what fails, in words and with what to do; it is read offline."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.quality import pages, suites, wording
from quotaflow.pipelines.quality.suites import CRITICAL, Check
from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ...documented_commands import words as arguments
from ...rows import HOSTILE, Row
from ..report.browser import Browser

AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
SUITES = suites.load({"max_clock_skew_s": 60, "max_lateness_s": 3_600})
EVERY = [(table, check) for table, checks in SUITES.items() for check in checks]
FAILING = {
    ("requests", "shipped_in_time"): 12,
    ("pipeline_progress", "lines_reconcile"): 1,
    ("quota_usage", "usage_not_negative"): 4_321,
    ("producer_id_offenders", "key_unique"): None,
}


def result(table: str, check: Check) -> Row:
    """A row of current_quality."""
    is_bad = (table, check.name) in FAILING
    row: Row = {"suite": table, "expectation": check.name, "severity": check.severity}
    row |= {"success": not is_bad, "checked_rows": 12_345, "event_time": AT}
    failed = FAILING.get((table, check.name), 0)
    details = wording.expected(check) if failed is not None else f"no answer: {HOSTILE}"
    return row | {"failed_rows": failed, "details": details}


RESULTS = [result(table, check) for table, check in EVERY if table != "client_metrics"]


@pytest.fixture(scope="module")
def page() -> str:
    return pages.page(SUITES, RESULTS, AT)


def test_the_verdict_comes_first(page: str) -> None:
    assert f"4 checks of {len(RESULTS)} in {len(SUITES) - 1} tables\nfailed: 3 critical" in page
    assert "1 warning." in page
    before, after = page.split("What fails, and what to do")
    assert "<article" not in before
    assert after.count("<article") == len(FAILING)
    # What stops plans is above what does not.
    assert after.index("requests: requests are shipped") > after.rindex('<article class="critical"')
    assert "Never checked, since a check looks at tables with new rows: client_metrics." in after


def test_a_failed_check_says_what_it_expects_how_many_rows_and_what_to_do(page: str) -> None:
    assert "quota_usage: usage is never negative" in page
    assert "4,321 of 12,345 rows are not so." in page
    assert "<code>quotaflow rebuild quota_usage --from 1d</code>" in page
    assert "<code>quotaflow backfill --from 6h</code>" in page
    assert "WHERE usage &lt; 0" in page
    assert "It was not checked. no answer: " in page


def test_a_page_without_failures_says_so() -> None:
    good = [row | {"success": True, "failed_rows": 0} for row in RESULTS]
    text = pages.page(SUITES, good, AT)
    assert f"All passed: {len(RESULTS)} checks in {len(SUITES) - 1} tables." in text
    assert "<article" not in text


def test_a_check_of_another_version_has_its_own_words() -> None:
    row = RESULTS[0] | {"expectation": "gone", "success": False, "failed_rows": 2}
    text = pages.page(SUITES, [row | {"details": HOSTILE}], AT)
    assert "<code>gone</code>" in text
    assert HOSTILE not in text


def test_a_page_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<title>quotaflow checks, 2026-11-20 12:00 UTC</title>")
    assert pages.folder(config.Conf(), tmp_path) == tmp_path
    assert pages.write(tmp_path, SUITES, RESULTS, AT) == tmp_path / "index.html"
    assert [file.name for file in tmp_path.iterdir()] == ["index.html"]
    assert pages.folder(config.Conf(), tmp_path) == tmp_path


def test_a_site_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<title>Home</title>")
    with pytest.raises(ConfigError, match="has other content than pages of checks"):
        pages.folder(config.Conf(), tmp_path)


def test_each_check_is_in_words_of_its_own() -> None:
    for table, check in EVERY:
        words = wording.expected(check)
        assert words, (table, check.name)
        assert not words.endswith(".")
    texts = [(table, wording.expected(check)) for table, check in EVERY]
    assert len(texts) == len(set(texts))


@pytest.mark.parametrize(
    ("table", "name", "words"),
    [
        ("requests", "event_time_not_null", "event_time is never null"),
        ("requests", "max_bytes_not_negative", "max_bytes is never negative"),
        ("quota_usage", "quota_level_known", "quota_level is from 1 to 8"),
        ("traffic", "direction_known", "direction is one of: produced, consumed"),
        ("plans", "reason_not_empty", "the length of reason is at least 1"),
        ("feedback_locks", "key_unique", "no two rows have the same cluster_id"),
        ("rack_traffic", "cross_rack_within_bytes", "bytes is at least cross_rack_bytes"),
    ],
)
def test_a_check_without_a_description_is_worded(table: str, name: str, words: str) -> None:
    assert next(wording.expected(c) for c in SUITES[table] if c.name == name) == words


@pytest.mark.faults
def test_the_rows_of_every_check_can_be_asked_for(warehouse: Warehouse) -> None:
    reader = Reader(warehouse).with_empty(frozenset(TABLES))
    for table, check in EVERY:
        assert reader.rows(wording.rows_query(table, check)) == [], (table, check.name)


def commands() -> Iterator[str]:
    for table, check in EVERY:
        for command in pages.COMMAND.findall(wording.remedy(TABLES[table], check)):
            if command.startswith("quotaflow "):
                yield command


def test_remedies_name_commands_and_what_can_be_rebuilt() -> None:
    from quotaflow.pipelines.maintenance.rebuild import results  # noqa: PLC0415  imports pyspark

    rebuilt = {*results(config.Conf()), "client_metrics"}
    seen = {tuple(arguments(command)) for command in commands()}
    assert {words[1] for words in seen if words[0] == "rebuild"} <= rebuilt
    assert {words[0] for words in seen} == {
        *("rebuild", "check", "run", "backfill", "snapshot", "restore")
    }
    computed = {answer.name for answer in ANSWERS}
    critical = {t: wording.remedy(TABLES[t], c) for t, c in EVERY if c.severity == CRITICAL}
    assert {t for t, remedy in critical.items() if "computes the whole table" in remedy} == computed


def shows(page: Browser) -> dict[str, Any]:
    """What a reader sees: colors, and whether the page is wider than the window."""
    style = "getComputedStyle(document.body)"
    return {
        "wide": page.value("document.documentElement.scrollWidth > innerWidth"),
        "background": page.value(f"{style}.backgroundColor"),
        "text": page.value(f"{style}.color"),
    }


@pytest.mark.parametrize("width_px", [390, 1_280])
@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
def test_it_is_read_offline_in_any_window(
    tab: Browser, tmp_path: Path, page: str, width_px: int, *, is_dark: bool
) -> None:
    file = tmp_path / "index.html"
    file.write_text(page, encoding="utf-8")
    tab.open(file, width_px, is_dark=is_dark)
    assert tab.problems == []
    assert [url for url in tab.requests if not url.startswith("file:")] == []
    dark, light = "rgb(20, 23, 28)", "rgb(255, 255, 255)"
    seen = shows(tab)
    assert (seen["wide"], seen["background"]) == (False, dark if is_dark else light)
    tab.picture(tmp_path / "page.png")
