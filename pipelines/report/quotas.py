"""The section on client quotas: how full they were, and who was throttled by which."""

from collections.abc import Iterator, Sequence

from quotaflow.pipelines.areas.question import Row
from quotaflow.pipelines.areas.quotas import (
    HEADROOM,
    PROBLEMS,
    RAISES,
    THROTTLES,
    bucket,
    throttled_for,
)
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.report import snapshots
from quotaflow.pipelines.report.charts import MAX_BARS, bars
from quotaflow.pipelines.report.section import (
    NUMBER,
    Figure,
    GridColumn,
    ReportSection,
    grid,
    nothing,
    number,
    section_of,
    text,
)
from quotaflow.pipelines.terminal import texts
from quotaflow.udfs.counted import counted

TITLE = "Client quotas"
_TABLE = "quota_usage"


def measured(row: Row, name: str) -> str:
    """A quota's value in its unit."""
    kind, value = row["quota_type"], row[name]
    if value is None:
        return ""
    return texts.rate(value) if kind.endswith("byte_rate") else texts.number(value)


def _value(head: str, name: str) -> GridColumn:
    return GridColumn(head, lambda row: measured(row, name), NUMBER)


def _most_used(row: Row) -> str:
    return ("at least " if row["is_lower_bound"] else "") + measured(row, "peak_usage")


_NEAREST = (
    GridColumn("who shares it", bucket),
    text("broker", "broker_id"),
    text("quota", "quota_type"),
    _value("limit", "quota"),
    GridColumn("most used", _most_used, NUMBER),
    number("share", "peak_share", texts.share),
    number("windows over", "windows_over"),
    number("windows throttled", "windows_throttled"),
    text("state", "state"),
)
_THROTTLED_COLUMNS = (
    text("principal", "principal"),
    text("client", "client_id"),
    GridColumn("most likely by", lambda row: texts.listed(row["throttled_by"])),
    number("requests", "throttled_requests"),
    number("throttled for", "throttle_time_ms", texts.duration),
)
_RAISE = (
    text("user", "user"),
    text("quota", "quota_type"),
    _value("now", "quota"),
    _value("advised", "recommended"),
    number("windows throttled", "throttled_windows"),
    number("of windows", "windows_in_force"),
)


@section_of(TITLE, PROBLEMS)
def section(scope: Scope) -> ReportSection:
    """Quota buckets by how full they were, and clients by their throttle time."""
    first, last = scope.extent(_TABLE) if scope.reader.is_made(_TABLE) else (None, None)
    if last is None:
        return snapshots.quotas(scope, nothing(scope, _TABLE))
    buckets, throttled = scope.ask(HEADROOM), scope.ask(THROTTLES)
    advised = scope.ask(RAISES)
    return ReportSection(
        time_range=texts.time_range(first, last),
        sentences=(_throttles(throttled), *_shares(throttled), _nearness(buckets)),
        advice=_advice(throttled, advised),
        charts=_charts(buckets, throttled),
        grids=(
            grid(
                "Who was throttled, longest first",
                throttled,
                _THROTTLED_COLUMNS,
                "Nobody was throttled.",
            ),
            grid(
                "Quotas by how full they were in the last hour with requests",
                buckets,
                _NEAREST,
                "No client quota applies to any of these clients.",
            ),
            grid(
                "Quotas that throttled their user in more than one window of ten",
                advised,
                _RAISE,
                "No quota is advised to be raised.",
            ),
        ),
        left_out=(
            "Brokers log no cause of a throttle: the fullest quota that can be the cause is shown. "
            "Request time is estimated.",
        ),
    )


def _throttles(throttled: Sequence[Row]) -> str:
    if not throttled:
        return "No client was throttled."
    return throttled_for(throttled)


def _shares(throttled: Sequence[Row]) -> Iterator[str]:
    """Who of them reads for share groups: their use is not known."""
    shares = [row for row in throttled if row["share_requests"]]
    if shares:
        yield (
            f"Share consumers use more than is shown: {texts.names(map(_client, shares))}. Brokers "
            "charge the bytes of SHARE_FETCH and do not log them."
        )


def _nearness(buckets: Sequence[Row]) -> str:
    if not buckets:
        return "No client quota applies to any of these clients."
    first = buckets[0]
    near = f"{first['all_near']:,} more" if first["all_near"] else "no other"
    return (
        f"In the last hour {first['all_throttled']:,} of {counted(first['of_all'], 'quota')} "
        f"in use throttled their clients; {near} came near its limit."
    )


def _advice(throttled: Sequence[Row], advised: Sequence[Row]) -> str:
    if advised:
        users = texts.names(row["user"] for row in advised)
        return f"Raise the quotas below, of {users}, or let them spread their requests over time."
    if throttled:
        names = throttled[0]["principal"], throttled[0]["client_id"]
        return texts.to_do([texts.run_why(names, "what helps", "throttled_clients")])
    return "No step is needed: no quota throttled a client."


def _charts(buckets: Sequence[Row], throttled: Sequence[Row]) -> tuple[Figure, ...]:
    charts = []
    if throttled:
        shown = throttled[:MAX_BARS]
        kinds = dict.fromkeys(texts.listed(row["throttled_by"]) for row in shown)
        series = {
            kind: [
                row["throttle_time_ms"] / 1e3 if texts.listed(row["throttled_by"]) == kind else None
                for row in shown
            ]
            for kind in kinds
        }
        figure = bars([_client(row) for row in shown], series, "seconds throttled")
        charts.append(
            Figure(figure, "How long clients were throttled, by the quota that likely did")
        )
    if buckets:
        shown = buckets[:MAX_BARS]
        names = [f"{bucket(row)}, broker {row['broker_id']}" for row in shown]
        share = [100 * row["peak_share"] for row in shown]
        figure = bars(names, {"% of the limit": share}, "% of the limit", limit=100)
        charts.append(Figure(figure, "How full quotas were at most; the dotted line is the limit"))
    return tuple(charts)


def _client(row: Row) -> object:
    return row["principal"] if row["client_id"] is None else row["client_id"]
