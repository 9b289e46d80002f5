"""Errors about names and rights of a catalog: one line with what to do, in every command."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from pyspark import errors
from pyspark.errors import PySparkException

from quotaflow.pipelines import __main__ as command_line
from quotaflow.pipelines.errors import ConfigError, JobError
from quotaflow.pipelines.spark import catalog_errors, failures
from quotaflow.pipelines.spark.spark_errors import spark_errors

from ...cases import cases

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INSUFFICIENT = "[INSUFFICIENT_PERMISSIONS] Insufficient privileges:\nUser does not have "
ENDED = "TO `LOGIN`; `quotaflow ddl --grants` prints all rights"


@cases(
    ("message", "line"),
    (
        "a catalog of Unity Catalog",
        f"{INSUFFICIENT}USE CATALOG on Catalog 'main'. SQLSTATE: 42501",
        "lacks USE CATALOG on catalog main: let its owner run GRANT USE CATALOG ON CATALOG main",
    ),
    (
        "a table, whose name needs quotes",
        f"{INSUFFICIENT}SELECT on Table 'main.quota-flow.requests' SQLSTATE: 42501",
        "lacks SELECT on table main.`quota-flow`.requests: let its owner run GRANT SELECT ON TABLE "
        "main.`quota-flow`.requests",
    ),
    (
        "a schema, of a service's answer within another error",
        "com.x.Y: PERMISSION_DENIED: User does not have CREATE TABLE on Schema 'm.q'.\n\tat a.b",
        "lacks CREATE TABLE on schema m.q: let its owner run GRANT CREATE TABLE ON SCHEMA m.q",
    ),
    (
        "an access list of a Hive metastore",
        f"{INSUFFICIENT}permission READ_METADATA,USAGE on database `default`. SQLSTATE: 42501",
        "lacks READ_METADATA,USAGE on database default: let its owner run GRANT "
        "READ_METADATA,USAGE ON DATABASE default",
    ),
    (
        "what has no name",
        f"{INSUFFICIENT}permission SELECT on any file. SQLSTATE: 42501",
        "lacks SELECT on any file: let its owner run GRANT SELECT ON ANY FILE",
    ),
)
def test_a_missing_right_is_named_with_its_grant(message: str, line: str) -> None:
    assert failures.one_line(PySparkException(message)) == f"this login {line} {ENDED}"


@cases(
    ("message", "line"),
    (
        "a catalog of Databricks",
        "[NO_SUCH_CATALOG_EXCEPTION] Catalog 'main' was not found. Please verify the name.",
        "no catalog main here: ",
    ),
    (
        "a catalog whose tables are listed in a local session",
        "Nested databases are not supported by v1 session catalog: main.quotaflow.",
        "no catalog main of main.quotaflow here: ",
    ),
    (
        "a table that Delta looks for",
        "[DELTA_TABLE_NOT_FOUND] Delta table `a`.`b`.`c` doesn't exist.",
        "no table or view a.b.c, or this login may not see it: ",
    ),
)
def test_a_missing_name_is_wrong_conf(message: str, line: str) -> None:
    error = catalog_errors.explained(message)
    assert isinstance(error, ConfigError)
    assert str(error).startswith(line)


@pytest.mark.spark
def test_a_real_session_says_which_name_is_missing(spark: "SparkSession") -> None:
    def line(run: Callable[[], Any]) -> str:
        with pytest.raises(spark_errors()) as raised:
            run()
        assert isinstance(failures.as_error(raised.value), ConfigError)
        return failures.one_line(raised.value)

    no_catalog = "no catalog main of main.a.t here: "
    no_schema = "no schema spark_catalog.nosuch, or this login may not use it: "
    no_table = "no table or view spark_catalog.default.nosuch, or this login may not see it: "
    for starts, runs in {
        no_catalog: (
            lambda: spark.catalog.tableExists("main.a.t"),
            lambda: spark.read.table("main.a.t").collect(),
            lambda: spark.sql("CREATE TABLE main.a.t (a INT) USING delta"),
        ),
        "no catalog nosuch here: ": (lambda: spark.sql("SET CATALOG nosuch"),),
        no_schema: (
            lambda: spark.sql("CREATE TABLE spark_catalog.nosuch.t (a INT) USING delta"),
            lambda: spark.range(1).write.format("delta").saveAsTable("spark_catalog.nosuch.t"),
        ),
        no_table: (
            lambda: spark.sql("DESCRIBE HISTORY spark_catalog.default.nosuch"),
            lambda: spark.read.table("spark_catalog.default.nosuch"),
            lambda: spark.sql("DELETE FROM spark_catalog.default.nosuch WHERE a = 1"),
        ),
    }.items():
        assert [text for text in map(line, runs) if not text.startswith(starts)] == []


KINDS = sorted(
    name
    for name in errors.__all__
    if isinstance(kind := getattr(errors, name), type)
    and issubclass(kind, PySparkException)
    and not name.startswith("PySpark")
)


@pytest.mark.parametrize("name", [*KINDS, "PySparkException"])
def test_no_kind_of_error_of_spark_shows_a_stack_trace(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raised = getattr(errors, name)(
        "[ANY] first\n\tat a.B.c(D.java:1)\nCaused by: e.F: last\n\tat g"
    )

    def fail(*_: object) -> int:
        raise raised

    monkeypatch.setattr(command_line, "_done", fail)
    assert command_line.execute(["plan"]) == JobError.exit_code
    assert capsys.readouterr().err == "error: Spark: [ANY] first: e.F: last\n"


def test_a_wrong_use_of_pyspark_is_a_fault_of_our_own() -> None:
    assert failures.as_error(errors.PySparkTypeError("no column")) is None
