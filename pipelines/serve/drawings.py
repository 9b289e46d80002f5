"""The charts and lists of a name's page: queries over its rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from quotaflow.pipelines.areas import diagnoses, pages
from quotaflow.pipelines.areas.costs import ITEMS, costs_of_name
from quotaflow.pipelines.areas.names import BROKER, CLIENT, GROUP, MOVE, PRINCIPAL, TOPIC
from quotaflow.pipelines.areas.question import Row, any_of
from quotaflow.pipelines.areas.quotas import bucket
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.report.charts import MAX_BARS, bars, gauges
from quotaflow.pipelines.report.plots import MAX_SERIES, Point, areas, by_name, lines
from quotaflow.pipelines.report.quotas import measured
from quotaflow.pipelines.report.replication import ALTERED, CHECKED, MOVED
from quotaflow.pipelines.report.section import (
    NUMBER,
    Figure,
    Grid,
    GridColumn,
    grid,
    moment,
    number,
    seconds,
    text,
)
from quotaflow.pipelines.terminal import texts
from quotaflow.pipelines.warehouse.sql_literals import literal

_MIN_STEP_S = 60
_MAX_DIGITS = 9


@dataclass(frozen=True, slots=True)
class LineChart:
    """A chart of lines over time; `sql` gives name, second and value."""

    caption: str
    axis: str
    sql: str
    min_step_s: int = _MIN_STEP_S

    def draw(self, scope: Scope, parts: Mapping[str, str]) -> Figure | str | None:
        """The chart; a sentence where all is of one step, or of none that is whole.

        Steps that the time cuts are left out, as in a report. None without rows. Raises as
        Scope.rows.
        """
        step_s, every = scope.steps_of(self.sql, self.min_step_s, **parts)
        if not every:
            return None
        rows = scope.whole(every, step_s)
        if not rows:
            return f"{self.caption}: no step of {texts.duration(step_s * 1e3)} is whole yet."
        series = dict(list(by_name(rows, "name", "value").items())[:MAX_SERIES])
        caption = f"{self.caption}, in steps of {texts.duration(step_s * 1e3)}"
        seconds = {row["second"] for row in rows}
        if len(seconds) > 1:
            return Figure(lines(series, self.axis, step_s), caption)
        when = texts.moment(datetime.fromtimestamp(seconds.pop(), UTC))
        values = [
            f"{texts.listed(name)} {texts.number(points[0][1])} {self.axis}"
            for name, points in series.items()
        ]
        return f"{self.caption}: {', '.join(values)} at {when} UTC, the only step with rows."


@dataclass(frozen=True, slots=True)
class BudgetChart:
    """On what requests of a name waited, over time, with marks for configs that changed."""

    caption: str
    changes: Sequence[tuple[float, str]] = ()
    """Seconds of changes, with their sentences."""

    def draw(self, scope: Scope, parts: Mapping[str, str]) -> Figure | None:
        """The chart; None without rows. Raises as Scope.rows."""
        step_s, rows = scope.steps_of(pages.BUDGET, _MIN_STEP_S, **parts)
        if not rows:
            return None
        series: dict[str, list[Point]] = {name: [] for name in diagnoses.PARTS.values()}
        for row in rows:
            for part, ms in diagnoses.parts(row):
                series[diagnoses.PARTS[part]].append((row["second"], ms))
        caption = f"{self.caption}, in steps of {texts.duration(step_s * 1e3)}"
        return Figure(areas(series, step_s, texts.duration, self.changes), caption)


@dataclass(frozen=True, slots=True)
class BarChart:
    """A chart of bars; `sql` gives name and value, the largest first."""

    caption: str
    axis: str
    sql: str

    def draw(self, scope: Scope, parts: Mapping[str, str]) -> Figure | None:
        """The chart; None without rows. Raises as Scope.rows."""
        rows = scope.rows(self.sql, **parts, limit=str(MAX_BARS))
        if not rows:
            return None
        values = {self.axis: [row["value"] for row in rows]}
        return Figure(bars([row["name"] for row in rows], values, self.axis), self.caption)


@dataclass(frozen=True, slots=True)
class GaugeChart:
    """How full quotas were in the last hour of a name."""

    caption: str

    def draw(self, scope: Scope, parts: Mapping[str, str]) -> Figure | None:
        """The chart; None without rows. Raises as Scope.rows."""
        rows = scope.rows(pages.GAUGES, **parts, limit=str(MAX_BARS))
        if not rows:
            return None
        quantities = [
            (f"{row['quota_type']} of {bucket(row)}", row["share"], _used(row)) for row in rows
        ]
        return Figure(gauges(quantities), self.caption)


def _used(row: Row) -> str:
    left = {**row, "left": abs(row["quota"] - row["usage"])}
    of_quota = f"{measured(row, 'usage')} of {measured(row, 'quota')} ({texts.share(row['share'])})"
    state = "over" if row["share"] > 1 else "left"
    return f"{of_quota} at broker {row['broker_id']}: {measured(left, 'left')} {state}"


@dataclass(frozen=True, slots=True)
class Listing:
    """A list of rows; it is left out without rows."""

    caption: str
    columns: tuple[GridColumn, ...]
    sql: str

    def draw(self, scope: Scope, parts: Mapping[str, str]) -> Grid | None:
        """The list; None without rows. Raises as Scope.rows."""
        rows: Sequence[Row] = scope.rows(self.sql, **parts)
        return grid(self.caption, rows, self.columns, "No rows.") if rows else None


@dataclass(frozen=True, slots=True)
class CostList:
    """What a name costs, by item; it is left out without rows."""

    caption: str

    def draw(self, scope: Scope, parts: Mapping[str, str]) -> Grid | None:
        """The list; None without rows. Raises as Scope.rows."""
        rows = costs_of_name(scope, parts["is"])
        columns = (
            GridColumn("item", lambda row: ITEMS[row["item"]]),
            number("amount", "amount"),
            text("unit", "unit"),
            GridColumn("cost", lambda row: texts.money(row["cost"], row["currency"]), NUMBER),
        )
        return grid(self.caption, rows, columns, "No rows.") if rows else None


_TRAFFIC = LineChart(
    "What was produced and consumed, in MB/s",
    "MB/s",
    pages.TRAFFIC,
)
_BUDGET = BudgetChart("For what its requests waited, as a mean of a request")
_FULLNESS = LineChart(
    "How full the quotas were, in % of the limit: the highest of all brokers",
    "% of the limit",
    pages.FULLNESS,
    min_step_s=10,
)
_THROTTLED = LineChart(
    "Seconds for which answers were delayed by a quota",
    "seconds",
    pages.THROTTLED,
    min_step_s=10,
)
_LATENCY = LineChart(
    "The slowest request of each API as the client measured it, in ms",
    "ms",
    pages.LATENCY,
)
_DEGRADATION = LineChart(
    "The 99th percentile of the broker's own time, in ms",
    "ms",
    pages.DEGRADATION,
)
_REPLICATION = LineChart(
    "What the broker replicated, in MB/s",
    "MB/s",
    pages.REPLICATION,
    min_step_s=10,
)
_COMMITS = LineChart(
    "Commits of offsets",
    "commits",
    pages.COMMITS,
)
_LAG = BarChart(
    "Records that the group has not read, by partition, now",
    "records",
    pages.LAG,
)
_LEFT = LineChart(
    "What a move still has to copy, in MB",
    "MB",
    pages.LEFT,
    min_step_s=10,
)
_BYTES = number("bytes", "bytes", texts.size)
_CLIENTS_BY_BYTES = Listing(
    "Clients by bytes",
    (
        text("principal", "principal"),
        text("client", "client_id"),
        text("direction", "direction"),
        _BYTES,
    ),
    pages.CLIENTS_BY_BYTES,
)
_TOPICS_BY_BYTES = Listing(
    "Topics by bytes",
    (text("topic", "topic"), text("client", "client_id"), text("direction", "direction"), _BYTES),
    pages.TOPICS_BY_BYTES,
)
_LAGS = Listing(
    "Positions of groups, the furthest behind first",
    (
        text("group", "group_id"),
        text("topic", "topic"),
        number("partition", "partition"),
        number("lag in records", "lag"),
        seconds("for", "lag_s"),
        text("trend", "trend"),
        text("read by", "client_id"),
        moment("as of (UTC)", "position_known_at"),
    ),
    pages.LAGS,
)
_MEMBERS = Listing(
    "Members that a request log or a snapshot showed, the newest first",
    (
        text("principal", "principal"),
        text("client", "client_id"),
        text("state", "state"),
        text("address", "client_address"),
        number("commits", "commits"),
        moment("last seen (UTC)", "last_seen"),
    ),
    pages.MEMBERS_OF,
)
_MOVES = Listing(
    "Moves of replicas, the newest first",
    MOVED,
    pages.MOVES,
)
_MOVES_OF_BROKER = Listing(
    "Moves of replicas to or from this broker, the newest first",
    MOVED,
    pages.MOVES_OF_BROKER,
)
_DEGRADED = Listing(
    "When clients of this broker waited, the newest first",
    (
        moment("minute (UTC)", "event_time"),
        number("p99 of produce, ms", "produce_p99_ms"),
        number("usually", "usual_produce_p99_ms"),
        number("p99 of fetch, ms", "fetch_p99_ms"),
        number("usually", "usual_fetch_p99_ms"),
        number("partitions at min.insync.replicas", "shrunk_partitions"),
    ),
    pages.SLOW,
)
_CHECKS = Listing(
    "What is wrong with its throttles",
    CHECKED,
    pages.CHECKS,
)
_STEPS = Listing(
    "Who altered throttles and replicas, the newest first",
    ALTERED,
    pages.STEPS,
)

_GAUGES = GaugeChart("How full its quotas were in its last hour, at the broker with least headroom")
_NEIGHBOURS = Listing(
    "Neighbours: who else used its brokers in that time, by their part of the brokers' own time",
    (
        text("principal", "principal"),
        text("client", "client_id"),
        number("part of the time", "share", texts.share),
        number("requests", "requests"),
        _BYTES,
        number("a request waits", "waited_ms", texts.duration),
    ),
    pages.NEIGHBOURS,
)
_COSTS = CostList("What it costs at the prices of conf")
Drawing = LineChart | BudgetChart | BarChart | GaugeChart | Listing | CostList
_OF_CLIENT: tuple[Drawing, ...] = (
    _BUDGET,
    _GAUGES,
    _TRAFFIC,
    _FULLNESS,
    _THROTTLED,
    _LATENCY,
    _NEIGHBOURS,
    _TOPICS_BY_BYTES,
    _COSTS,
)
_DRAWINGS: Mapping[str, tuple[Drawing, ...]] = {
    PRINCIPAL: _OF_CLIENT,
    CLIENT: _OF_CLIENT,
    GROUP: (_LAG, _COMMITS, _LAGS, _MEMBERS),
    TOPIC: (_TRAFFIC, _CLIENTS_BY_BYTES, _COSTS, _LAGS, _MOVES),
    BROKER: (
        _TRAFFIC,
        _DEGRADATION,
        _REPLICATION,
        _DEGRADED,
        _CHECKS,
        _CLIENTS_BY_BYTES,
        _MOVES_OF_BROKER,
    ),
    MOVE: (_LEFT, _MOVES, _CHECKS, _STEPS),
}
"""What the page of each kind of name draws."""


def drawings(kind: str, changes: Sequence[tuple[float, str]]) -> Iterator[Drawing]:
    """What the page of a kind of name draws, with marks for changes."""
    for drawing in _DRAWINGS[kind]:
        if isinstance(drawing, BudgetChart):
            yield replace(drawing, changes=changes)
        else:
            yield drawing


_COLUMNS = {PRINCIPAL: "principal", CLIENT: "client_id", GROUP: "group_id", TOPIC: "topic"}


def conditions(scope: Scope, kind: str, name: str) -> Mapping[str, str] | None:
    """The condition that selects a name in queries; None if no name of this kind looks so."""
    literal_name = literal(name)
    if kind == MOVE:
        topic, dash, partition = name.rpartition("-")
        if not dash or not _is_number(partition):
            return None
        topic = literal(topic)
        of_partition = f"topic = {topic} AND partition = {int(partition)}"
        return {"is": of_partition, "is_in_checks": f"topic = {topic}", "topic": topic}
    if kind == BROKER:
        if not _is_number(name):
            return None
        of_broker = f"broker_id = {int(name)}"
        of_tables = dict.fromkeys(("is", "is_in_traffic", "is_in_checks"), of_broker)
        return of_tables | {"name": str(int(name))}
    of_name = f"{_COLUMNS[kind]} = {literal_name}"
    if kind == PRINCIPAL:
        of_name = any_of("principal", (name, f"User:{name}"))
    if kind != TOPIC or not all(map(scope.reader.is_made, ("topics", "topic_names"))):
        return {"is": of_name, "is_in_traffic": of_name, "name": literal_name}
    of_ids = scope.filled(pages.TOPIC_IDS, of_name=of_name)
    return {
        "is": of_name,
        "is_in_traffic": f"({of_name} OR topic_id IN ({of_ids}))",
        "name": literal_name,
    }


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS
