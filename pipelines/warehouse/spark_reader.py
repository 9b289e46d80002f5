"""Runs statements in a Spark session, and queries in Spark's own dialect."""

import itertools
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import ConfigError, QueryError, WrongQueryError
from quotaflow.pipelines.spark import failures, session
from quotaflow.pipelines.spark.spark_errors import spark_errors
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.query_check import check_encoding
from quotaflow.pipelines.warehouse.reader import LATE
from quotaflow.pipelines.warehouse.warehouse import OpenSession, Warehouse
from quotaflow.schemas.tables.catalog import TABLES

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_NUMBERS = itertools.count()
_QUERY = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/|\()*(?:select|with|values)\b", re.I | re.S)
# Names, comments and text. A backslash escapes only in Spark's text.
_NAMED = r"`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/"
_QUOTED = (
    re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|" + _NAMED, re.S),
    re.compile(r"'[^']*'|\"[^\"]*\"|" + _NAMED, re.S),
)
_WRITES = re.compile(
    r"\b(?:insert\s+(?:into|overwrite)|merge\s+(?:with\s+schema\s+evolution\s+)?into|delete\s+from"
    r"|update\b(?=[^(),]*?\bset\b))",
    re.I,
)


def check_query(sql: str) -> None:
    """Raise ConfigError unless the text is a query: engines can also write, and read files."""
    check_encoding(sql)
    if not _QUERY.match(sql):
        word = (sql.split() or ["nothing"])[0]
        raise ConfigError(f"only queries are run here (SELECT, WITH or VALUES), not {word[:40]}")
    # In Spark, statements that write may start with WITH too.
    for quoted in _QUOTED:
        if match := _WRITES.search(quoted.sub(" ", sql)):
            word = " ".join(match[0].split()).upper()
            raise ConfigError(f"only queries are run here, and {word} writes")


def query(
    conf: Conf, sql: str, limit: int | None, report: Callable[[str], None] = lambda _: None
) -> "pa.RecordBatchReader":
    """The rows of a query, at most `limit`. Raises QueryError with Spark's first line."""
    check_query(sql)
    spark = session.get(conf.spark, report)
    with _errors():
        register(spark, Warehouse(conf.warehouse), sql)
        rows = spark.sql(sql)
        return (rows if limit is None else rows.limit(limit)).toArrow().to_reader()


@dataclass(frozen=True)
class SparkEngine:
    """Runs statements in a Spark session: of a cluster, of Spark Connect, or of this process."""

    open_session: OpenSession
    timeout_s: int
    _stopped: threading.Event = field(default_factory=threading.Event, compare=False)
    _running: set[str] = field(default_factory=set, repr=False, compare=False)

    def run(self, statement: str) -> "pa.Table":
        """All rows of a statement. Raises as `CatalogEngine.run`."""
        spark = self._spark
        with self._timed(spark), _errors():
            return spark.sql(statement).toArrow()

    def stop(self) -> None:
        """End statements that other threads run, and let no other begin."""
        self._stopped.set()
        for name in list(self._running):
            session.cancel(self._spark, name)

    @cached_property
    def _spark(self) -> "SparkSession":
        return self.open_session()

    @contextmanager
    def _timed(self, spark: "SparkSession") -> Iterator[None]:
        """Stop the statement of this thread when its time is over."""
        if self._stopped.is_set():
            raise QueryError("stopped")
        name, is_late = f"quotaflow-{next(_NUMBERS)}", threading.Event()

        def end() -> None:
            is_late.set()
            session.cancel(spark, name)

        timer = threading.Timer(self.timeout_s, end)
        self._running.add(name)
        timer.start()
        try:
            with session.named(spark, name):
                yield
        except KeyboardInterrupt:
            session.cancel(spark, name)
            raise
        except QueryError:
            if self._stopped.is_set():
                raise QueryError("stopped") from None
            if is_late.is_set():
                raise QueryError(LATE.format(self.timeout_s)) from None
            raise
        finally:
            timer.cancel()
            self._running.discard(name)


@contextmanager
def _errors() -> Iterator[None]:
    """Turn Spark's errors within the block into a QueryError with their first line."""
    # After the session's own check.
    from pyspark.errors import AnalysisException  # noqa: PLC0415

    try:
        yield
    except spark_errors() as error:
        # Those that Spark cannot parse are errors of analysis too.
        kind = WrongQueryError if isinstance(error, AnalysisException) else QueryError
        raise kind(failures.one_line(error)) from None


def register(spark: "SparkSession", warehouse: Warehouse, sql: str) -> None:
    """Give the session the tables and views that a query reads, by their names.

    Skips tables that do not exist, and views that need those. A table that no view needs is empty
    if it does not exist.
    """
    made = set[str]()
    named_tables, named_views = views.dependencies(sql)
    required = views.required(views.named(sql))
    for name in named_tables:
        if warehouse.exists(spark, name):
            warehouse.check_readable(spark, name)
            warehouse.read(spark, name).createOrReplaceTempView(name)
            made.add(name)
        elif name not in required:
            spark.sql(TABLES[name].empty_sql).createOrReplaceTempView(name)
            made.add(name)
    loaded = views.load()
    for name in named_views:
        if name not in made and made.issuperset(views.sources(loaded[name])):
            spark.sql(loaded[name].sql).createOrReplaceTempView(name)
            made.add(name)
