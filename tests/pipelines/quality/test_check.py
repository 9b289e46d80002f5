"""`quotaflow check` over real tables: failures, new rows, and stored results."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from quotaflow.pipelines import config
from quotaflow.pipelines.quality.check import CheckReport, CheckRequest, check
from quotaflow.pipelines.quality.suites import BETWEEN, NOT_NULL, Check
from quotaflow.pipelines.quality.validation import Validation
from quotaflow.pipelines.warehouse import row_writer
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ...delta_tables import Fill
from ...rows import HOSTILE, Row
from ...schemas.views.view_tables import rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FROZEN = datetime.now(UTC)


def now() -> datetime:
    return datetime.now(UTC)


def plan(number: int, **others: Any) -> Row:
    row = {"cluster_id": "c1", "event_time": FROZEN, "plan_id": HOSTILE, "number": number}
    return row | {"reason": "because", "evidence_table": "requests", "operation": "SET"} | others


def change(step: str) -> Row:
    row = {"event_time": now(), "run_id": "r", "change_id": HOSTILE, "number": 0, "step": step}
    return row | {"cluster_id": "c1", "reason": "because", "purpose": "apply"}


def names(report: CheckReport) -> dict[tuple[str, str], int | None]:
    """Failed checks, and the number of failed rows."""
    return {(row["suite"], row["expectation"]): row["failed_rows"] for row in report.failed}


@pytest.mark.faults
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_what_is_not_met_is_kept_and_not_looked_at_twice(warehouse: Warehouse, fill: Fill) -> None:
    conf = config.Conf(warehouse=warehouse.conf)
    fill("config_changes", [change("begun")])
    request = CheckRequest(["config_changes"])
    report = check(conf, request, now(), lambda _: None)
    assert (names(report), report.is_critical) == (
        {("config_changes", "begun_has_an_end"): 1},
        False,
    )
    assert check(conf, request, now(), lambda _: None).rows == []
    failed = rows(warehouse, "SELECT expectation FROM current_quality WHERE NOT success")
    assert failed == [{"expectation": "begun_has_an_end"}]


@pytest.mark.faults
@pytest.mark.spark
def test_in_a_catalog_too(spark: "SparkSession", catalog: Warehouse) -> None:
    conf = config.Conf(warehouse=catalog.conf)
    table = TABLES["config_changes"]
    catalog.ensure(lambda: spark, [table])

    request = CheckRequest([table.name])
    for number in range(2):
        content = pa.Table.from_pylist([change("begun") | {"number": number}], schema=table.arrow)
        row_writer.append(lambda: spark, catalog, table, content)
        assert names(check(conf, request, now(), lambda _: None)).keys() == {
            (table.name, "begun_has_an_end")
        }
        assert check(conf, request, now(), lambda _: None).rows == []


@pytest.mark.faults
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_what_fails_is_told_until_it_is_fixed(warehouse: Warehouse, fill: Fill) -> None:
    conf = config.Conf(warehouse=warehouse.conf)
    bad = [plan(0), plan(0), plan(1, reason=""), plan(2, reason=None, operation="DROP")]
    fill("plans", [*bad, plan(3)])
    fill("config_changes", [change("begun")])
    lines: list[str] = []
    request = CheckRequest(["plans", "config_changes"])

    first = check(conf, request, now(), lines.append)
    assert names(first) == {
        ("plans", "key_unique"): 2,
        ("plans", "reason_not_null"): 1,
        ("plans", "reason_not_empty"): 1,
        ("plans", "operation_known"): 1,
        ("config_changes", "begun_has_an_end"): 1,
    }
    assert first.is_critical
    assert [text.partition(": ")[0] for text in first.advice] == [s for s, _ in names(first)]
    assert HOSTILE not in "".join(first.advice)
    assert any(line.startswith("plans: 5 rows") and "operation_known" in line for line in lines)

    # A warning is not looked at again until something is written; what is critical is.
    DeltaTable(warehouse.folder("plans")).delete("number < 3")
    fixed = check(conf, request, now(), lines.append)
    assert {row["suite"] for row in fixed.rows} == {"plans"}
    assert (names(fixed), fixed.is_critical) == ({}, False)

    nothing = check(conf, request, now(), lines.append)
    assert nothing.rows == []
    failed = rows(warehouse, "SELECT * FROM current_quality WHERE NOT success")
    assert [row["expectation"] for row in failed] == ["begun_has_an_end"]


@pytest.mark.spark
def test_what_cannot_be_told_has_failed(spark: "SparkSession") -> None:
    frame = spark.createDataFrame([(1,)], "a int")
    sql = {"unexpected_rows_query": "SELECT nothing_of_the_kind FROM {batch}"}
    checks = [
        Check("odd", "unexpected_rows_expectation", sql),
        Check("missing", NOT_NULL, {"column": "b"}),
        Check("fine", BETWEEN, {"column": "a", "min_value": 0}),
    ]
    odd, missing, fine = Validation().verdicts("t", checks, frame)
    assert (odd.success, missing.success, fine.success) == (False, False, True)
    assert (odd.failed_rows, missing.failed_rows, fine.failed_rows) == (None, None, 0)
    assert "nothing_of_the_kind" in (odd.details or "")
