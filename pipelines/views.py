"""SQL views analysts use, one file each in schemas/views, in what Spark and DataFusion share.

Two functions they do not share are written as Spark has them: unix_millis(column) and
unix_micros(column), of a column that holds microseconds as every Delta table's does.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from importlib import resources

from quotaflow.schemas import tables

_TEXT = re.compile(r"'(?:[^']|'')*'")
_IN_DATAFUSION = {
    re.compile(r"\bunix_millis\(([\w.]+)\)"): r"CAST(floor(CAST(\1 AS BIGINT) / 1e3) AS BIGINT)",
    re.compile(r"\bunix_micros\(([\w.]+)\)"): r"CAST(\1 AS BIGINT)",
}


@dataclass(frozen=True, slots=True)
class View:
    """A view: its name, what a row is (the file's first comment), and its query in Spark's SQL."""

    name: str
    comment: str
    query: str

    @property
    def create(self) -> str:
        """CREATE VIEW text, for a session that has the tables under their names."""
        return f"CREATE OR REPLACE VIEW {self.name} AS\n{self.query}"

    @property
    def create_in_datafusion(self) -> str:
        """The same for DataFusion."""
        text = self.create
        for spark, datafusion in _IN_DATAFUSION.items():
            text = spark.sub(datafusion, text)
        return text


@cache
def load() -> Mapping[str, View]:
    """Every view by name, each after the views it reads."""
    files = sorted(resources.files("quotaflow.schemas.views").iterdir(), key=lambda file: file.name)
    found = {
        view.name: view
        for file in files
        if file.name.endswith(".sql")
        for view in [_view(file.name.removesuffix(".sql"), file.read_text(encoding="utf-8"))]
    }
    reads = {name: set(named(view.query, found)) - {name} for name, view in found.items()}
    return {name: found[name] for name in TopologicalSorter(reads).static_order()}


def named(sql: str, names: Mapping[str, object]) -> list[str]:
    """Which of `names` stand as words in a SQL text (not in its strings), in their own order."""
    words = set(re.findall(r"\w+", _TEXT.sub("", sql).lower()))
    return [name for name in names if name in words]


def needed(sql: str) -> tuple[list[str], list[str]]:
    """Tables and views that a query names, and those that its views need, in order of need."""
    known = load()
    wanted = set(named(sql, known))
    for name in reversed(list(known)):
        if name in wanted:
            wanted.update(named(known[name].query, known))
    in_order = [name for name in known if name in wanted]
    everything = " ".join([sql, *(known[name].query for name in in_order)])
    return named(everything, tables.TABLES), in_order


def _view(name: str, text: str) -> View:
    lines = text.splitlines()
    comment = [line for line in lines if line.startswith("--")]
    # What a comment names is not read.
    query = "\n".join(line for line in lines if not line.lstrip().startswith("--"))
    return View(name, " ".join(line.removeprefix("--").strip() for line in comment), query.strip())
