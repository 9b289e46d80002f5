"""A Databricks dashboard as a .lvdash.json file: datasets, and pages of widgets."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from quotaflow.pipelines.dashboard.table_columns import column

WIDTH = 6
"""Columns of a page's grid."""
TEMPORAL, QUANTITATIVE, CATEGORICAL = "temporal", "quantitative", "categorical"
CLUSTER = "cluster_id"
"""Every dataset has this column, so that one filter works on all pages."""

TIME_RANGE = "time_range"
"""The parameter of datasets about a time: days in UTC, the last one included."""

_QUERY = "main_query"
_DAYS = {"dataType": "DATE", "min": {"value": "now-7d/d"}, "max": {"value": "now/d"}}
_ASSOCIATED = "COUNT_IF(`associative_filter_predicate_group`)"
_VERSIONS = {"table": 1, "counter": 2}
"""Versions of specs by kind; of charts it is 3."""
_FILTERED = {CLUSTER: "cluster", TIME_RANGE: TIME_RANGE}
"""What names of a filter's queries begin with."""
Json = dict[str, Any]


def overlaps(first: str, last: str) -> str:
    """SQL that is true where the time from one column to another touches the chosen days."""
    return f"{last} >= :{TIME_RANGE}.min AND {first} < :{TIME_RANGE}.max + INTERVAL 1 DAY"


def within(time: str) -> str:
    """SQL that is true where a time is in the chosen days."""
    return overlaps(time, time)


@dataclass(frozen=True, slots=True)
class Dataset:
    """A question: its name, its query, and the columns of its table.

    A query without a time range is about the present.
    """

    name: str
    sql: str
    columns: tuple[str, ...] = ()

    @property
    def json(self) -> Json:
        """The dataset in the file's form; query lines keep their line ends."""
        title = self.name.replace("_", " ").capitalize()
        lines = self.sql.strip().splitlines(keepends=True)
        made: Json = {"name": self.name, "displayName": title, "queryLines": lines}
        if self.has_time_range:
            parameter: Json = {"keyword": TIME_RANGE, "displayName": "Time range"}
            parameter |= {
                "dataType": "DATE",
                "complexType": "RANGE",
                "defaultSelection": {"range": _DAYS},
            }
            made["parameters"] = [parameter]
        return made

    @property
    def has_time_range(self) -> bool:
        """Whether its query has the parameter."""
        return f":{TIME_RANGE}." in self.sql

    def between(self, first: date, last: date) -> str:
        """The query with these days in place of the parameter."""
        days = {"min": first, "max": last}
        return re.sub(rf":{TIME_RANGE}\.(min|max)", lambda end: f"DATE '{days[end[1]]}'", self.sql)


@dataclass(frozen=True, slots=True)
class Widget:
    """What a page shows at a place: its title, its form in the file, and its size on the grid."""

    title: str
    json: Json
    width: int = WIDTH
    height: int = 6


def text(words: str) -> Widget:
    """Words, as Markdown."""
    return Widget(words, {"multilineTextboxSpec": {"lines": [words]}}, height=1)


def axis(field: str, scale: str, title: str = "") -> Json:
    """A field of a dataset on a scale, with its title, else its name in words."""
    named = title or field.replace("_", " ")
    return {"fieldName": field, "scale": {"type": scale}, "displayName": named}


def plot(kind: str, title: str, dataset: str, *axes: Json) -> Widget:
    """A chart of a kind (bar, line or heatmap) by its axes: x, y and color."""
    encodings = dict(zip(("x", "y", "color"), axes, strict=True))
    fields = [each["fieldName"] for each in axes]
    return Widget(title, _widget(title, dataset, fields, kind, {"encodings": encodings}))


def counter(title: str, dataset: str, field: str) -> Widget:
    """One number."""
    shown = {"encodings": {"value": {"fieldName": field, "displayName": title}}}
    return Widget(title, _widget(title, dataset, [field], "counter", shown), 1, 3)


def table(title: str, dataset: Dataset, width: int = WIDTH, height: int = 7) -> Widget:
    """Rows of a dataset; names of clients are never read as HTML."""
    shown = {
        "encodings": {"columns": [column(name, n) for n, name in enumerate(dataset.columns)]},
        "allowHTMLByDefault": False,
        "condensed": True,
        "invisibleColumns": [],
        "itemsPerPage": 25,
        "paginationSize": "default",
        "withRowNumber": False,
    }
    made = _widget(title, dataset.name, dataset.columns, "table", shown)
    return Widget(title, made, width, height)


def _widget(title: str, dataset: str, names: Sequence[str], kind: str, more: Json) -> Json:
    fields = [{"name": name, "expression": f"`{name}`"} for name in dict.fromkeys(names)]
    query = {"datasetName": dataset, "fields": fields, "disaggregated": True}
    frame = {"showTitle": True, "title": title}
    spec = {"version": _VERSIONS.get(kind, 3), "widgetType": kind} | more | {"frame": frame}
    return {"queries": [{"name": _QUERY, "query": query}], "spec": spec}


@dataclass(frozen=True, slots=True)
class Page:
    """Rows of widgets from the top down."""

    title: str
    rows: tuple[tuple[Widget, ...], ...]

    @property
    def json(self) -> Json:
        """The page, its layout included."""
        return {
            "name": _id("page", self.title),
            "displayName": self.title,
            "pageType": "PAGE_TYPE_CANVAS",
            "layout": list(self._layout()),
        }

    def _layout(self) -> Iterator[Json]:
        y = 0
        for row in self.rows:
            x = 0
            for widget in row:
                size = {"width": widget.width, "height": widget.height}
                name = _id(self.title, widget.title)
                yield {"widget": {"name": name} | widget.json, "position": {"x": x, "y": y} | size}
                x += widget.width
            y += max(widget.height for widget in row)


def dashboard(datasets: Sequence[Dataset], pages: Sequence[Page]) -> Json:
    """The whole file, with one page of filters for all."""
    return {
        "datasets": [dataset.json for dataset in datasets],
        "pages": [page.json for page in pages] + [_filters(datasets)],
    }


def _filters(datasets: Sequence[Dataset]) -> Json:
    """The page of filters: the cluster of every dataset, and the days of those about a time."""
    fields = [
        {"name": CLUSTER, "expression": f"`{CLUSTER}`"},
        {"name": f"{CLUSTER}_associativity", "expression": _ASSOCIATED},
    ]
    parameters = [{"name": TIME_RANGE, "keyword": TIME_RANGE}]
    names = [dataset.name for dataset in datasets]
    ranged = [dataset.name for dataset in datasets if dataset.has_time_range]
    cluster = _filter("multi-select", CLUSTER, names, "Cluster", {"fields": fields})
    for each in cluster["spec"]["encodings"]["fields"]:
        each |= {"fieldName": CLUSTER, "displayName": "Cluster"}
    days = _filter(
        "date-range-picker", TIME_RANGE, ranged, "Days (UTC)", {"parameters": parameters}
    )
    days["spec"]["selection"] = {"defaultSelection": {"range": _DAYS}}
    for each in days["spec"]["encodings"]["fields"]:
        each["parameterName"] = TIME_RANGE
    return {
        "name": _id("page", "filters"),
        "displayName": "Filters",
        "pageType": "PAGE_TYPE_GLOBAL_FILTERS",
        "layout": [
            {"widget": each, "position": {"x": 0, "y": 2 * place, "width": 1, "height": 2}}
            for place, each in enumerate((cluster, days))
        ],
    }


def _filter(kind: str, name: str, datasets: Sequence[str], title: str, chosen: Json) -> Json:
    """A filter of each of these datasets by what is `chosen` of it."""
    queries = {f"{_FILTERED[name]}_of_{dataset}": dataset for dataset in datasets}
    return {
        "name": _id("filter", name),
        "queries": [
            {"name": query, "query": {"datasetName": dataset, **chosen, "disaggregated": False}}
            for query, dataset in queries.items()
        ],
        "spec": {
            "version": 2,
            "widgetType": f"filter-{kind}",
            "encodings": {"fields": [{"queryName": query} for query in queries]},
            "frame": {"showTitle": True, "title": title},
        },
    }


def _id(*parts: str) -> str:
    """Eight hex digits that depend only on the parts."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:8]
