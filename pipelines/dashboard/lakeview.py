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
class Text:
    """Words, as Markdown."""

    text: str
    width: int = WIDTH
    height: int = 1

    @property
    def title(self) -> str:
        """The text itself, which makes the widget's name unique."""
        return self.text

    @property
    def json(self) -> Json:
        """The widget without its name."""
        return {"multilineTextboxSpec": {"lines": [self.text]}}


@dataclass(frozen=True, slots=True)
class Axis:
    """A field of a dataset, its scale, and its title."""

    field: str
    scale: str
    title: str

    @property
    def json(self) -> Json:
        """An encoding."""
        return {
            "fieldName": self.field,
            "scale": {"type": self.scale},
            "displayName": self.title,
        }


@dataclass(frozen=True, slots=True)
class Plot:
    """A chart of a kind: bar, line or heatmap."""

    kind: str
    title: str
    dataset: str
    x: Axis
    y: Axis
    color: Axis | None = None
    width: int = WIDTH
    height: int = 6

    @property
    def fields(self) -> tuple[str, ...]:
        """Fields of its dataset."""
        return tuple(axis.field for axis in (self.x, self.y, self.color) if axis)

    @property
    def json(self) -> Json:
        """The widget without its name."""
        encodings = {"x": self.x.json, "y": self.y.json}
        if self.color:
            encodings["color"] = self.color.json
        return _widget(self, 3, self.kind, {"encodings": encodings})


@dataclass(frozen=True, slots=True)
class Counter:
    """One number."""

    title: str
    dataset: str
    field: str
    width: int = 1
    height: int = 3

    @property
    def fields(self) -> tuple[str, ...]:
        """Fields of its dataset."""
        return (self.field,)

    @property
    def json(self) -> Json:
        """The widget without its name."""
        value = {"fieldName": self.field, "displayName": self.title}
        return _widget(self, 2, "counter", {"encodings": {"value": value}})


@dataclass(frozen=True, slots=True)
class TableWidget:
    """Rows of a dataset; names of clients are never read as HTML."""

    title: str
    columns_of: Dataset
    width: int = WIDTH
    height: int = 7

    @property
    def dataset(self) -> str:
        """The name of its dataset."""
        return self.columns_of.name

    @property
    def fields(self) -> tuple[str, ...]:
        """Fields of its dataset, from left to right."""
        return self.columns_of.columns

    @property
    def json(self) -> Json:
        """The widget without its name."""
        columns = [column(field, place) for place, field in enumerate(self.fields)]
        shown = {
            "encodings": {"columns": columns},
            "allowHTMLByDefault": False,
            "condensed": True,
            "invisibleColumns": [],
            "itemsPerPage": 25,
            "paginationSize": "default",
            "withRowNumber": False,
        }
        return _widget(self, 1, "table", shown)


Widget = Text | Plot | Counter | TableWidget


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


def _widget(widget: Plot | Counter | TableWidget, version: int, kind: str, more: Json) -> Json:
    fields = [{"name": field, "expression": f"`{field}`"} for field in dict.fromkeys(widget.fields)]
    query = {"datasetName": widget.dataset, "fields": fields, "disaggregated": True}
    frame = {"showTitle": True, "title": widget.title}
    spec = {"version": version, "widgetType": kind} | more | {"frame": frame}
    return {"queries": [{"name": _QUERY, "query": query}], "spec": spec}


def _filters(datasets: Sequence[Dataset]) -> Json:
    names = {dataset.name: f"cluster_of_{dataset.name}" for dataset in datasets}
    fields = [
        {"name": CLUSTER, "expression": f"`{CLUSTER}`"},
        {"name": f"{CLUSTER}_associativity", "expression": _ASSOCIATED},
    ]
    queries = [
        {
            "name": name,
            "query": {"datasetName": dataset_name, "fields": fields, "disaggregated": False},
        }
        for dataset_name, name in names.items()
    ]
    shown = [
        {"fieldName": CLUSTER, "displayName": "Cluster", "queryName": name}
        for name in names.values()
    ]
    spec = {
        "version": 2,
        "widgetType": "filter-multi-select",
        "encodings": {"fields": shown},
        "frame": {"showTitle": True, "title": "Cluster"},
    }
    widget = {"name": _id("filter", CLUSTER), "queries": queries, "spec": spec}
    filters = [widget, _time_filter(datasets)]
    return {
        "name": _id("page", "filters"),
        "displayName": "Filters",
        "pageType": "PAGE_TYPE_GLOBAL_FILTERS",
        "layout": [
            {"widget": each, "position": {"x": 0, "y": 2 * place, "width": 1, "height": 2}}
            for place, each in enumerate(filters)
        ],
    }


def _time_filter(datasets: Sequence[Dataset]) -> Json:
    names = {d.name: f"{TIME_RANGE}_of_{d.name}" for d in datasets if d.has_time_range}
    parameters = [{"name": TIME_RANGE, "keyword": TIME_RANGE}]
    queries = [
        {
            "name": name,
            "query": {"datasetName": dataset, "parameters": parameters, "disaggregated": False},
        }
        for dataset, name in names.items()
    ]
    shown = [{"parameterName": TIME_RANGE, "queryName": name} for name in names.values()]
    spec = {
        "version": 2,
        "widgetType": "filter-date-range-picker",
        "encodings": {"fields": shown},
        "selection": {"defaultSelection": {"range": _DAYS}},
        "frame": {"showTitle": True, "title": "Days (UTC)"},
    }
    return {"name": _id("filter", TIME_RANGE), "queries": queries, "spec": spec}


def _id(*parts: str) -> str:
    """Eight hex digits that depend only on the parts."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:8]
