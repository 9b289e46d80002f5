"""SQL views, one file each in schemas/views, in the SQL that Spark and DataFusion share.

Two functions that only Spark has are translated for DataFusion: unix_millis(column) and
unix_micros(column), of a column in microseconds, as those of all Delta tables are.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from importlib import resources
from importlib.resources.abc import Traversable

from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.view import View, parse, split

_TEXT = re.compile(r"'(?:[^']|'')*'")
_IN_DATAFUSION = {
    re.compile(r"\bunix_millis\(([\w.]+)\)"): r"CAST(floor(CAST(\1 AS BIGINT) / 1e3) AS BIGINT)",
    re.compile(r"\bunix_micros\(([\w.]+)\)"): r"CAST(\1 AS BIGINT)",
}


@cache
def load() -> Mapping[str, View]:
    """Every view by name, each after the views it reads. Raises ViewHeadError."""
    files = sorted(_files(resources.files("quotaflow.schemas.views")), key=lambda file: file.name)
    parts = {
        file.name.removesuffix(".sql"): split(file.read_text(encoding="utf-8")) for file in files
    }
    reads = {name: set(names_in(sql, parts)) - {name} for name, (_, sql) in parts.items()}
    described = {
        table.name: {column.name: column.comment for column in table.columns}
        for table in TABLES.values()
    }
    loaded: dict[str, View] = {}
    for name in TopologicalSorter(reads).static_order():
        head, sql = parts[name]
        sources = {source: described[source] for source in names_in(sql, described)}
        loaded[name] = parse(name, head, sql, sources)
        described[name] = {column.name: column.comment for column in loaded[name].columns}
    return loaded


def _files(folder: Traversable) -> Iterator[Traversable]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _files(each)
        elif each.name.endswith(".sql"):
            yield each


def create_in_datafusion(view: View) -> str:
    """CREATE VIEW in DataFusion's SQL, for a session that has the tables under their names."""
    text = f"CREATE OR REPLACE VIEW {view.name} AS\n{view.sql}"
    for spark, datafusion in _IN_DATAFUSION.items():
        text = spark.sub(datafusion, text)
    return text


def names_in(sql: str, names: Mapping[str, object]) -> list[str]:
    """The `names` that occur as words in a SQL text (outside of its strings), in their order."""
    words = set(re.findall(r"\w+", _TEXT.sub("", sql).lower()))
    return [name for name in names if name in words]


def dependencies(sql: str) -> tuple[list[str], list[str]]:
    """Tables and views that a query and its views name; views come after those they read."""
    all_views = load()
    needed = set(names_in(sql, all_views))
    for name in reversed(list(all_views)):
        if name in needed:
            needed.update(names_in(all_views[name].sql, all_views))
    in_order = [name for name in all_views if name in needed]
    everything = " ".join([sql, *(all_views[name].sql for name in in_order)])
    return names_in(everything, TABLES), in_order
