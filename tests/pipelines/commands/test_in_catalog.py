"""Each command that reads prints the same over a folder and over the catalog of the same tables."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.serve.site import QuotaflowSite
from quotaflow.pipelines.serve.tables import ServedTables
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ...command_line import Command, in_options
from ...schemas.views.filled_views import FILLED
from ...schemas.views.view_tables import make_tables_and_answers
from ..warehouse.fake_sql_warehouse import WAREHOUSE, FakeSqlWarehouse, serving

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SCHEMA = "spark_catalog.same"
SPARK, SQL_WAREHOUSE = "spark", "sql_warehouse"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables in which every view has rows."""
    made = tmp_path_factory.mktemp("same")
    make_tables_and_answers(Warehouse(config.WarehouseSection(path=str(made))), FILLED)
    (made / "_checkpoints").mkdir(exist_ok=True)
    return made


@pytest.fixture(scope="module")
def schema(spark: "SparkSession", folder: Path) -> Iterator[str]:
    """A schema of a catalog that has those tables."""
    spark.sql(f"CREATE SCHEMA {SCHEMA}")
    for name in TABLES:
        if (folder / name).is_dir():
            place = str(folder / name)
            spark.sql(f"CREATE TABLE {SCHEMA}.{name} USING DELTA LOCATION '{place}'")
    yield SCHEMA
    spark.sql(f"DROP SCHEMA {SCHEMA} CASCADE")


@pytest.fixture(scope="module")
def fake(spark: "SparkSession") -> Iterator[FakeSqlWarehouse]:
    made = FakeSqlWarehouse(spark, polls=0)
    with serving(made) as login, pytest.MonkeyPatch.context() as patch:
        for name, value in login.items():
            patch.setenv(name, value)
        yield made


def options(schema: str, folder: Path, engine: str) -> list[str]:
    """The options of a command over the catalog."""
    place = [f"warehouse.catalog_schema={schema}", f"warehouse.checkpoints={folder}/_checkpoints"]
    return in_options(*place, *([f"warehouse.sql_warehouse={WAREHOUSE}"] * (engine != SPARK)))


def alike(text: str, schema: str, folder: Path) -> str:
    """Without the place of the tables, the clock, and microseconds: a log of files has none."""
    text = text.replace(f", from {schema}.", ".").replace(schema, str(folder))
    text = re.sub(r'data-tag="[^"]*"|\d\d:\d\d:\d\d UTC', "", text)
    return re.sub(r'(\d\d:\d\d:\d\d\.\d{3})\d{3}Z","size_bytes"', r'\1000Z","size_bytes"', text)


SINCE = ("--since", "2026-11-20T00:00:00Z")


def slow(*words: str) -> Any:
    """Spark plans its statements for a minute."""
    return pytest.param(words, marks=pytest.mark.faults)


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize("engine", [SPARK, SQL_WAREHOUSE])
@pytest.mark.parametrize(
    "words",
    [
        ("describe", "quota_usage", "--json"),
        ("describe", "throttled_clients", "--json"),
        ("show", "quota_usage", "--json"),
        ("show", "plans", "--where", "number = 0"),
        ("show", "group_lag"),
        ("sql", "SELECT api, count(*) AS n FROM requests GROUP BY api ORDER BY api", "--json"),
        ("sql", "WITH own AS (SELECT * FROM throttled_clients) SELECT count(*) AS n FROM own"),
        ("what-if", "--producer-ids-rate", "0.001"),
        ("what-if", "quota", "--user", "alice", "--producer-byte-rate", "9", *SINCE),
        slow("tables", "--all", "--json"),
        slow("why", "alice"),
        slow("why", "alice", "--all"),
        slow("report", "--out", "-"),
    ],
    ids=lambda words: " ".join(words[:2]).partition(" (")[0][:24],
)
def test_a_command_prints_the_same(
    command: Command, folder: Path, schema: str, engine: str, words: tuple[str, ...]
) -> None:
    expected = command(*words, *in_options(f"warehouse.path={folder}")).out
    printed = command(*words, *options(schema, folder, engine)).out
    assert alike(printed, schema, folder) == alike(expected, schema, folder)
    assert expected.strip()


@pytest.mark.faults
@pytest.mark.usefixtures("fake")
def test_status_and_metrics_say_the_same_but_for_files(
    command: Command, folder: Path, schema: str
) -> None:
    expected, printed = (
        command("status", "--json", *place, code=1).rows[0]
        for place in (in_options(f"warehouse.path={folder}"), options(schema, folder, SPARK))
    )
    for row in (expected, printed):
        row.pop("at")
        assert row.pop("free_share")["checkpoints"] > 0
        # Both go by the clock.
        for job in row["jobs"]:
            job.pop("silent_s")
            job.pop("behind_s")
    assert printed == expected
    assert printed["jobs"]


@pytest.mark.faults
@pytest.mark.usefixtures("fake")
def test_pages_say_the_same(folder: Path, schema: str) -> None:
    checkpoints = f"{folder}/_checkpoints"
    places = (
        config.WarehouseSection(path=str(folder)),
        config.WarehouseSection(
            catalog_schema=schema, checkpoints=checkpoints, sql_warehouse=WAREHOUSE
        ),
    )
    now = datetime.now(UTC)
    sites = [
        QuotaflowSite(
            ServedTables(config.Conf(warehouse=place), None, timedelta(days=1), lambda: now), 30
        )
        for place in places
    ]
    for path in ("/", "/client?name=alice", "/group?name=g", "/find?q=ali"):
        expected, printed = (site.answer(path) for site in sites)
        assert printed.status == expected.status, path
        shown = alike(printed.body.decode(), schema, folder)
        assert shown == alike(expected.body.decode(), schema, folder), path


def test_a_catalog_without_tables_names_what_fills_them(command: Command, tmp_path: Path) -> None:
    places = options("spark_catalog.default", tmp_path, SPARK)
    assert "table requests was never made in spark_catalog.default" in command.error(
        "show", "requests", *places, code=1
    )


@pytest.mark.usefixtures("schema")
def test_a_wrong_query_is_one_line(command: Command, folder: Path, schema: str) -> None:
    places = options(schema, folder, SPARK)
    assert "nothing" in command.error("sql", "SELECT nothing FROM requests", *places)
    assert "no table reqests" in command.error("sql", "SELECT * FROM reqests", *places)
    assert "only queries" in command.error("sql", "DROP TABLE requests", *places)
