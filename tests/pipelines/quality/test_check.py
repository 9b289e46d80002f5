"""`quotaflow check` over real tables: what fails, what is new, and what is kept of it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from quotaflow.pipelines import config
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.quality import pages
from quotaflow.pipelines.quality.check import Asked, Found, check
from quotaflow.pipelines.quality.suites import BETWEEN, NOT_NULL, Check
from quotaflow.pipelines.quality.validation import Validation
from quotaflow.pipelines.warehouse import Warehouse

from ..conftest import Fill
from ..view_rows import HOSTILE, rows
from .planted import source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]


def now() -> datetime:
    return datetime.now(UTC)


def request(offset: int, **others: Any) -> Row:
    """A request that was completed just now."""
    time = now() - timedelta(minutes=1)
    row = source(offset) | {"event_time": time, "record_time": time}
    return row | {"api": "FETCH", "client_id": HOSTILE} | others


def plan(number: int, **others: Any) -> Row:
    row = {"cluster_id": "c1", "event_time": now(), "plan_id": "p", "number": number}
    return row | {"reason": "because", "evidence_table": "requests", "operation": "SET"} | others


def names(found: Found) -> set[tuple[str, str]]:
    return {(row["suite"], row["expectation"]) for row in found.failed}


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_what_fails_is_told_until_it_is_mended(warehouse: Warehouse, fill: Fill) -> None:
    conf = config.Conf(warehouse=warehouse.conf)
    progress = {"cluster_id": "c1", "event_time": now(), "job": "ingest_request_log"}
    fill("pipeline_progress", [progress | {"outcome": "in", "row_count": 9, "query_id": "q"}])
    fill("requests", [request(1), request(1), request(2, total_time_ms=-1.0)])
    fill("plans", [plan(0), plan(1, reason=""), plan(2, reason=None, operation="DROP")])
    lines: list[str] = []
    asked = Asked(["requests", "plans"])

    first = check(conf, asked, now(), lines.append)
    assert names(first) == {
        ("requests", "key_unique"),
        ("requests", "total_time_ms_not_negative"),
        ("plans", "reason_not_null"),
        ("plans", "reason_not_empty"),
        ("plans", "operation_known"),
    }
    counts = {row["expectation"]: row["failed_rows"] for row in first.failed}
    assert counts["key_unique"] == 2
    assert counts["total_time_ms_not_negative"] == 1
    assert first.is_critical
    assert any("requests: 3 rows" in line and "key_unique" in line for line in lines)

    DeltaTable(warehouse.folder("plans")).delete("number > 0")
    # Not written to since, and still looked at: it failed.
    again = check(conf, asked, now(), lines.append)
    assert names(again) == {(s, e) for s, e in names(first) if s == "requests"}

    DeltaTable(warehouse.folder("requests")).delete("source_offset = 1")
    mended = check(conf, asked, now(), lines.append)
    assert {row["suite"] for row in mended.rows} == {"requests"}
    assert names(mended) == {("requests", "total_time_ms_not_negative")}
    assert not mended.is_critical

    nothing = check(conf, asked, now(), lines.append)
    assert (nothing.rows, nothing.index) == ([], None)
    standing = rows(warehouse, "SELECT * FROM quality_now WHERE NOT success")
    assert [row["expectation"] for row in standing] == ["total_time_ms_not_negative"]

    fill("requests", [request(3)])
    assert names(check(conf, asked, now(), lines.append)) == names(mended)
    since = Asked(["requests"], since=now() + timedelta(hours=1))
    assert names(check(conf, since, now(), lines.append)) == set()
    _look_at(mended.index)  # the page of plans is of the run before


def _look_at(index: Path | None) -> None:
    """Pages name no row, ask no network, and lead to each other."""
    assert index is not None
    text = index.read_text(encoding="utf-8")
    assert "requests" in text
    assert "plans" in text
    pages_there = list(index.parent.rglob("validations/**/*.html"))
    assert len(pages_there) == 2
    for page in pages_there:
        assert page.relative_to(index.parent).as_posix() in text
        assert "Content-Security-Policy" in page.read_text(encoding="utf-8")
        assert HOSTILE not in page.read_text(encoding="utf-8")


@pytest.mark.spark
def test_what_cannot_be_told_has_failed(spark: "SparkSession") -> None:
    frame = spark.createDataFrame([(1,)], "a int")
    sql = {"unexpected_rows_query": "SELECT nothing_of_the_kind FROM {batch}"}
    checks = [
        Check("odd", "unexpected_rows_expectation", sql),
        Check("missing", NOT_NULL, {"column": "b"}),
        Check("fine", BETWEEN, {"column": "a", "min_value": 0}),
    ]
    odd, missing, fine = Validation(now()).verdicts("t", checks, frame)
    assert (odd.success, missing.success, fine.success) == (False, False, True)
    assert (odd.failed_rows, missing.failed_rows, fine.failed_rows) == (None, None, 0)
    assert "nothing_of_the_kind" in (odd.details or "")


def test_pages_go_where_nothing_else_is(tmp_path: Path, warehouse: Warehouse) -> None:
    conf = config.Conf(warehouse=warehouse.conf)
    assert pages.folder(conf) == warehouse.conf.folder / "_data_docs"
    (tmp_path / "mine").mkdir()
    assert pages.folder(conf, tmp_path / "mine") == tmp_path / "mine"
    (tmp_path / "mine" / "notes.txt").touch()
    with pytest.raises(ConfigError, match="holds something else than pages of checks"):
        pages.folder(conf, tmp_path / "mine")
