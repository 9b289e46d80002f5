"""One reader for a command: over a folder, through Spark, or through a SQL warehouse."""

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.errors import ConfigError, QueryError, WrongQueryError
from quotaflow.pipelines.feedback.planning import planning
from quotaflow.pipelines.feedback.runs import context
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.warehouse.readers import open_reader, reader_of
from quotaflow.pipelines.warehouse.spark_reader import SparkEngine
from quotaflow.pipelines.warehouse.sql_warehouse import SqlWarehouse
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.declared import BROKERS

from ...delta_tables import NOON, Fill
from ...schemas.views.view_tables import make_tables_and_answers
from .fake_sql_warehouse import WAREHOUSE, FakeSqlWarehouse, serving

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNT = "SELECT count(*) AS n FROM brokers"
ROW = {"cluster_id": "c1", "broker_id": 1, "event_time": NOON, "is_removed": False}


def test_a_plan_opens_each_table_once(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tables_and_answers(warehouse, {})
    opened = Counter[str]()
    delta_table = deltalake.DeltaTable

    def counted(place: str | Path, **options: Any) -> deltalake.DeltaTable:
        opened[Path(place).name] += 1
        return delta_table(place, **options)

    monkeypatch.setattr(deltalake, "DeltaTable", counted)
    conf = config.Conf(warehouse=warehouse.conf)
    planning.make(context.of_plans(conf), open_reader(conf), datetime.now(UTC))
    assert opened["settings"] == 1
    assert opened.most_common(1)[0][1] == 1


def test_opened_tables_keep_their_version_until_they_are_opened_again(
    warehouse: Warehouse, fill: Fill
) -> None:
    conf = config.Conf(warehouse=warehouse.conf)
    tables = open_reader(conf)
    assert not tables.is_made("brokers")
    fill("brokers", [ROW])
    assert tables.is_made("brokers")
    assert tables.rows(COUNT) == [{"n": 1}]
    fill("brokers", [ROW])
    assert tables.rows(COUNT) == [{"n": 1}]
    assert open_reader(conf).rows(COUNT) == [{"n": 2}]


def test_rows_are_read_as_arrow_in_the_types_that_a_table_declares(
    warehouse: Warehouse, fill: Fill
) -> None:
    fill("brokers", [ROW])
    schema = pa.schema([BROKERS.arrow.field(name) for name in ("event_time", "host", "broker_id")])
    query = "SELECT broker_id, host, event_time FROM brokers"
    rows = open_reader(config.Conf(warehouse=warehouse.conf)).read(query, schema)
    assert rows == pa.Table.from_pylist([ROW], schema=schema)


@pytest.mark.spark
def test_a_catalog_is_read_through_one_session(
    spark: "SparkSession", catalog: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = []

    def get(_: object) -> "SparkSession":
        sessions.append(spark)
        return spark

    monkeypatch.setattr(session, "get", get)
    conf = config.Conf(warehouse=catalog.conf)
    assert not open_reader(conf).is_made("brokers")
    catalog.ensure(lambda: spark, [BROKERS])
    sessions.clear()
    tables = open_reader(conf)
    assert tables.is_made("brokers")
    assert tables.rows(COUNT) == [{"n": 0}]
    assert tables.rows("SELECT * FROM current_brokers") == []
    assert len(sessions) == 1


@pytest.mark.spark
def test_a_table_of_a_catalog_that_was_never_made_may_count_as_empty(
    spark: "SparkSession", catalog: Warehouse
) -> None:
    tables = reader_of(catalog, lambda: spark).with_empty(frozenset({BROKERS.name}))
    assert tables.rows(COUNT) == [{"n": 0}]
    assert tables.read("SELECT * FROM brokers", BROKERS.arrow).num_rows == 0


@pytest.mark.spark
def test_a_statement_of_a_catalog_ends_when_its_time_is_over_or_its_reader_stops(
    spark: "SparkSession",
) -> None:
    slow = "SELECT count(*) FROM range(1000000000000)"
    with pytest.raises(QueryError, match="stopped after 1 s"):
        SparkEngine(lambda: spark, 1).run(slow)
    engine = SparkEngine(lambda: spark, 600)
    engine.stop()
    with pytest.raises(QueryError, match="stopped"):
        engine.run("SELECT 1 AS one")


@pytest.fixture
def fake(spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSqlWarehouse]:
    made = FakeSqlWarehouse(spark)
    with serving(made) as login:
        for name, value in login.items():
            monkeypatch.setenv(name, value)
        yield made


@pytest.mark.spark
def test_a_sql_warehouse_gives_all_rows_in_their_types(fake: FakeSqlWarehouse) -> None:
    engine = SqlWarehouse(WAREHOUSE, 600)
    rows = engine.run("SELECT id, timestamp_seconds(id) AS t, array(id) AS l FROM range(10)")
    assert rows["id"].to_pylist() == list(range(10))
    assert str(rows.schema.field("t").type) == "timestamp[us, tz=UTC]"
    nothing = engine.run("SELECT id, timestamp_seconds(id) AS t, array(id) AS l FROM range(0)")
    assert nothing.num_rows == 0
    assert nothing.schema.types[:2] == rows.schema.types[:2]
    assert nothing.schema.types[2] == pa.list_(pa.int64())
    assert fake.refused == []


@pytest.mark.spark
def test_what_a_sql_warehouse_refuses_is_one_line(
    fake: FakeSqlWarehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = SqlWarehouse(WAREHOUSE, 600)
    with pytest.raises(WrongQueryError, match="nothing_there") as raised:
        engine.run("SELECT * FROM nothing_there")
    assert "\n" not in str(raised.value)
    fake.zone = "Europe/Berlin"
    with pytest.raises(ConfigError, match="time zone Europe/Berlin"):
        SqlWarehouse(WAREHOUSE, 600).run("SELECT 1 AS one")
    monkeypatch.setenv("DATABRICKS_TOKEN", "another")
    with pytest.raises(ConfigError, match="refuses the login"):
        SqlWarehouse(WAREHOUSE, 600).run("SELECT 1 AS one")


@pytest.mark.spark
def test_a_statement_of_a_sql_warehouse_is_cancelled_when_its_time_is_over(
    fake: FakeSqlWarehouse,
) -> None:
    fake.polls = 1_000
    with pytest.raises(QueryError, match="stopped after 1 s"):
        SqlWarehouse(WAREHOUSE, 1).run("SELECT 1 AS one")
    assert fake.cancelled


@pytest.mark.spark
def test_a_stopped_statement_of_a_sql_warehouse_is_cancelled_at_once(
    fake: FakeSqlWarehouse,
) -> None:
    engine = SqlWarehouse(WAREHOUSE, 600)
    engine.run("SELECT 1 AS one")
    fake.polls = 1_000_000
    fake.polled, before = 0, len(fake.statements)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(engine.run, "SELECT 2 AS two")
        while len(fake.statements) == before or not fake.polled:
            time.sleep(0.01)
        engine.stop()
        with pytest.raises(QueryError, match="stopped"):
            running.result()
    assert fake.cancelled
    assert fake.polled < 10
