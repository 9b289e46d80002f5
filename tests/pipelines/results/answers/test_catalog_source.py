"""What a refresh over a catalog reads: each table once, and none again that is too large."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.results.answers import in_catalog
from quotaflow.pipelines.results.answers.in_catalog import CatalogSource, TooLargeError
from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.warehouse import gathered
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ....delta_tables import NOON

LARGE = "requests"


@dataclass
class Frame:
    """Rows of a statement."""

    rows: pa.Table

    @property
    def columns(self) -> list[str]:
        return self.rows.column_names

    def select(self, *names: str) -> "Frame":
        return Frame(self.rows.select(names))

    def limit(self, n: int) -> "Frame":
        return Frame(self.rows.slice(0, n))

    def toArrow(self) -> pa.Table:  # noqa: N802  of pyspark
        return self.rows


@dataclass
class Session:
    """A catalog in which one table has large files, with three rows: an hour apart."""

    statements: list[str] = field(default_factory=list)

    def sql(self, text: str) -> Frame:
        self.statements.append(text)
        name = text.partition("main.q.")[2].split()[0] if "main.q." in text else ""
        if text.startswith("SHOW TABLES"):
            tables = {"tableName": [*TABLES], "isTemporary": [False] * len(TABLES)}
            return Frame(pa.table(tables))
        if text.startswith("DESCRIBE DETAIL"):
            size = in_catalog.SMALL_BYTES + 1 if name == LARGE else 1
            return Frame(pa.table({"sizeInBytes": [size], "properties": [[("k", "v")]]}))
        assert text.startswith("SELECT")
        after = NOON if "WHERE" not in text else self.start(text)
        times = [NOON + timedelta(hours=i) for i in range(3)] if name == LARGE else []
        rows: list[dict[str, Any]] = [{"event_time": time} for time in times if time >= after]
        return Frame(pa.Table.from_pylist(rows, schema=TABLES[name].arrow))

    @staticmethod
    def start(text: str) -> datetime:
        return datetime.fromisoformat(text.rpartition("timestamp '")[2].rstrip("'"))

    def reads(self) -> int:
        return sum(text.startswith("SELECT") and f".{LARGE}" in text for text in self.statements)


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> CatalogSource:
    monkeypatch.setattr(in_catalog, "MAX_VALUES", 2 * gathered.width(TABLES[LARGE].arrow))
    monkeypatch.setattr(in_catalog, "check_readable", lambda *_: None)
    catalog = Warehouse(config.WarehouseSection(catalog_schema="main.q", checkpoints="/c"))
    session: Any = Session()
    return CatalogSource(catalog, NOON, session)


def test_a_table_that_is_too_large_is_read_once(source: CatalogSource) -> None:
    session: Any = source.spark
    source.prepare(ANSWERS)
    assert session.reads() == 0
    for _ in range(2):
        with pytest.raises(TooLargeError):
            source.relation(LARGE, NOON)
        with pytest.raises(TooLargeError):
            source.relation(LARGE)
    assert session.reads() == 1
    for _ in range(2):
        assert source.relation(LARGE, NOON + timedelta(hours=1)).num_rows == 2
    assert session.reads() == 2


def test_a_small_table_is_read_once_for_all_answers(source: CatalogSource) -> None:
    session: Any = source.spark
    source.prepare(ANSWERS)
    before = len(session.statements)
    for answer in ANSWERS:
        for name in {*answer.inputs} - {LARGE}:
            source.relation(name)
    assert len(session.statements) == before
