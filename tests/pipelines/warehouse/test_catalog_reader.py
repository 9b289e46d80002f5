"""Statements over a catalog: each names all that it reads, and no other kind is sent."""

import itertools
import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pyarrow as pa
import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.errors import ConfigError, NeverMadeError, QueryError, WrongQueryError
from quotaflow.pipelines.warehouse import catalog_reader, views
from quotaflow.pipelines.warehouse import gathered as gathered_tables
from quotaflow.pipelines.warehouse.catalog_reader import CatalogReader
from quotaflow.pipelines.warehouse.time_ranges import Since
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ...cases import cases

CATALOG = Warehouse(config.WarehouseSection(catalog_schema="main.q", checkpoints="/c"))
TIME = datetime(2026, 11, 21, 12, tzinfo=UTC)


@dataclass
class Recorded:
    """Keeps statements; a catalog has all tables but those left out."""

    without: frozenset[str] = frozenset()
    statements: list[str] = field(default_factory=list)

    def run(self, statement: str) -> pa.Table:
        if statement.startswith("SHOW TABLES"):
            names = [*TABLES.keys() - self.without, "requests_of_somebody"]
            return pa.table({"tableName": names, "isTemporary": [False] * len(names)})
        self.statements.append(statement)
        return pa.table({"n": [1]})

    def stop(self) -> None:
        """Nothing runs."""


def statement(sql: str, since: Since | None = None, *without: str) -> str:
    engine = Recorded(frozenset(without))
    CatalogReader(CATALOG, engine).rows(sql, since)
    (text,) = engine.statements
    return " ".join(text.split())


@cases(
    ("sql", "text"),
    (
        "a table",
        "SELECT count(*) AS n FROM brokers",
        "WITH brokers AS ( SELECT * FROM main.q.brokers ) SELECT COUNT(*) AS n FROM brokers",
    ),
    (
        "a WITH of its own",
        "WITH own AS (SELECT * FROM brokers) SELECT count(*) AS n FROM own",
        "WITH brokers AS ( SELECT * FROM main.q.brokers ), own AS (SELECT * FROM brokers) "
        "SELECT COUNT(*) AS n FROM own",
    ),
    ("no table", "SELECT 1 AS n", "SELECT 1 AS n"),
    ("a time", "SELECT TIMESTAMP '2026-11-21 12:00:00Z' AS n", "AS TIMESTAMP) AS n"),
    ("a name in quotes", 'SELECT 1 AS "group"', "SELECT 1 AS `group`"),
    ("microseconds", "SELECT epoch_us(now()) AS n", "SELECT UNIX_MICROS(NOW()) AS n"),
)
def test_a_statement_names_all_that_it_reads(sql: str, text: str) -> None:
    assert statement(sql).lower().endswith(text.lower())


def test_a_recursive_query_stays_one() -> None:
    sql = "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t WHERE n < 3) "
    text = statement(f"{sql}SELECT count(*) AS n FROM t, brokers")
    assert text.startswith("WITH RECURSIVE brokers AS (")
    assert text.count("RECURSIVE") == 1


def test_a_view_reads_facts_and_results_of_the_time_that_is_asked_about() -> None:
    text = statement("SELECT count(*) AS n FROM throttled_clients", Since(TIME, TIME))
    assert "FROM (SELECT * FROM main.q.quota_usage WHERE event_time >= timestamp '2026" in text
    assert "timestamp" not in statement("SELECT count(*) AS n FROM current_brokers")


def test_a_table_that_is_not_there_is_named_or_has_no_rows() -> None:
    with pytest.raises(NeverMadeError, match=r"brokers was never made in main\.q"):
        statement("SELECT * FROM brokers", None, "brokers")
    engine = Recorded(frozenset({"brokers"}))
    reader = CatalogReader(CATALOG, engine).with_empty(frozenset({"brokers"}))
    assert reader.rows("SELECT count(*) AS n FROM brokers")
    assert "main.q.brokers" not in engine.statements[0]


def test_tables_are_listed_once_for_many_that_are_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Also by a command that takes ten seconds.
    clock = itertools.count(0, 0.1)
    monkeypatch.setattr(catalog_reader, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    engine = Recorded(frozenset(TABLES))
    listed = 0

    def run(text: str) -> pa.Table:
        nonlocal listed
        listed += text.startswith("SHOW TABLES")
        return Recorded.run(engine, text)

    engine.run = run  # type: ignore[method-assign]
    reader = CatalogReader(CATALOG, engine)
    assert not any(map(reader.is_made, TABLES))
    assert listed == 1


def test_threads_list_tables_once() -> None:
    engine, listings = Recorded(frozenset(TABLES)), list[str]()

    def run(text: str) -> pa.Table:
        listings.append(text)
        time.sleep(0.1)
        return Recorded.run(engine, text)

    engine.run = run  # type: ignore[method-assign]
    with ThreadPoolExecutor(8) as pool:
        assert not any(pool.map(CatalogReader(CATALOG, engine).is_made, TABLES))
    assert len(listings) == 1


@dataclass
class Lists(Recorded):
    """Answers what is gathered, with a broker and a window; a table may lack columns."""

    max_rows: int = 1
    error: QueryError | None = None
    missing: dict[str, str] = field(default_factory=dict)

    def run(self, statement: str) -> pa.Table:
        if "collect_list" not in statement:
            return super().run(statement)
        self.statements.append(statement)
        if self.error is not None:
            raise self.error
        return pa.table(
            {name: self.listed(name) for name in re.findall(r"\)\) AS (\w+)", statement)}
        )

    def listed(self, name: str) -> pa.Array:
        rows = {
            "brokers": [{"cluster_id": "c", "broker_id": 1, "event_time": TIME}],
            "quota_usage": [{"cluster_id": "c", "event_time": TIME}],
        }
        schema = pa.schema([f for f in TABLES[name].arrow if f.name != self.missing.get(name)])
        some = rows.get(name, [])
        return pa.array(
            [some if len(some) <= self.max_rows else None], pa.list_(pa.struct(list(schema)))
        )


SINCE = Since(TIME, TIME)
OF_BROKERS = "SELECT count(*) AS n FROM brokers"
OF_USAGE = "SELECT count(*) AS n FROM quota_usage WHERE event_time >= TIMESTAMPTZ '{}'"


def gathered(engine: Lists) -> CatalogReader:
    reader = CatalogReader(CATALOG, engine)
    reader.gather(["brokers", "quota_usage", "throttled_clients"], SINCE)
    return reader


def test_what_was_gathered_by_one_statement_is_asked_in_this_process() -> None:
    engine = Lists(frozenset({"client_quotas"}))
    reader = gathered(engine)
    reader.gather(["brokers"], SINCE)
    assert reader.rows(OF_BROKERS) == reader.rows(OF_USAGE.format(TIME)) == [{"n": 1}]
    assert reader.rows("SELECT * FROM throttled_clients", SINCE) == []
    with pytest.raises(NeverMadeError):
        reader.rows("SELECT * FROM client_quotas")
    (text,) = engine.statements
    assert "main.q.brokers)" in text
    assert "main.q.quota_usage WHERE event_time >= timestamp '2026" in text


def test_after_a_stop_nothing_is_answered_from_what_was_gathered() -> None:
    reader = gathered(Lists())
    reader.stop()
    with pytest.raises(QueryError, match="stopped"):
        reader.rows(OF_BROKERS)


def test_queries_are_gathered_for_by_the_times_in_their_texts() -> None:
    engine = Lists()
    reader = CatalogReader(CATALOG, engine)
    reader.gather_for([OF_BROKERS, OF_USAGE.format(TIME), "SELECT * FROM current_brokers"])
    (text,) = engine.statements
    assert "main.q.quota_usage WHERE event_time >= timestamp '2026" in text
    assert reader.rows(OF_BROKERS) == reader.rows(OF_USAGE.format(TIME)) == [{"n": 1}]
    assert len(engine.statements) == 1


@cases(
    ("sql", "since"),
    ("a table that was not named", "SELECT count(*) AS n FROM topics", SINCE),
    ("an earlier time", OF_USAGE.format(TIME - timedelta(hours=1)), SINCE),
    ("a view of all time", "SELECT count(*) AS n FROM throttled_clients", None),
)
def test_what_was_not_gathered_is_a_statement(sql: str, since: Since | None) -> None:
    engine = Lists()
    gathered(engine).rows(sql, since)
    assert len(engine.statements) == 2


def test_bytes_are_not_gathered() -> None:
    engine = Lists()
    reader = CatalogReader(CATALOG, engine)
    reader.gather(["telemetry_pushes"], SINCE)
    assert "EXCEPT (payload)" in engine.statements[0]
    reader.rows(f"SELECT payload FROM telemetry_pushes WHERE event_time >= TIMESTAMPTZ '{TIME}'")
    assert len(engine.statements) == 2
    of_views = " ".join(view.sql for view in views.load().values())
    columns = {each for name in TABLES for each in gathered_tables.bytes_of(name)}
    assert columns == {"payload", "head"}
    assert not re.search(r"\b(payload|head)\b", of_views)


def test_tables_that_cannot_be_gathered_are_asked_one_by_one() -> None:
    engine = Lists(error=QueryError("too long"))
    assert gathered(engine).rows(OF_BROKERS) == [{"n": 1}]
    assert len(engine.statements) == 2


def test_a_table_of_many_rows_or_of_another_release_is_a_statement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = Lists(missing={"brokers": "host"})
    gathered(engine).rows(OF_BROKERS)
    assert len(engine.statements) == 2
    monkeypatch.setattr(gathered_tables, "MAX_VALUES", 1)
    engine = Lists(max_rows=0)
    reader = gathered(engine)
    assert "count(*) <= 0 THEN" in engine.statements[0]
    assert "LIMIT 1)" in engine.statements[0]
    reader.gather(["brokers"], SINCE)
    reader.rows(OF_BROKERS)
    assert len(engine.statements) == 2


@cases(
    ("sql", "error", "message"),
    ("to describe", "DESCRIBE brokers", ConfigError, "quotaflow describe NAME"),
    ("to explain", "EXPLAIN SELECT * FROM brokers", ConfigError, "only SELECT"),
    ("to list", "SHOW TABLES", ConfigError, "quotaflow tables"),
    ("to write", "DELETE FROM brokers", ConfigError, "only queries are run here"),
    (
        "a WITH of a table's name",
        "WITH brokers AS (SELECT * FROM brokers) SELECT * FROM brokers",
        WrongQueryError,
        "take another name",
    ),
)
def test_what_is_no_query_of_spark_is_not_sent(
    sql: str, error: type[Exception], message: str
) -> None:
    engine = Recorded()
    with pytest.raises(error, match=message):
        CatalogReader(CATALOG, engine).rows(sql)
    assert engine.statements == []
