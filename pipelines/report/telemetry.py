"""The section on client telemetry: who pushes, who does not, and alerts (KIP-714)."""

from collections.abc import Iterator, Sequence

from quotaflow.pipelines.areas.question import Row
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.areas.telemetry import ALERTS, PROBLEMS, SILENT, SOFTWARE, STATES, WITHOUT
from quotaflow.pipelines.report.charts import MAX_BARS, bars
from quotaflow.pipelines.report.section import (
    NUMBER,
    Figure,
    GridColumn,
    ReportSection,
    code,
    grid,
    moment,
    nothing,
    number,
    section_of,
    text,
)
from quotaflow.pipelines.terminal import texts
from quotaflow.schemas.levels import SAMPLED_LOG, WHOLE_LOG
from quotaflow.udfs.counted import counted, noun

TITLE = "Client telemetry and alerts"
_TABLE = "telemetry_pushes"
_SUBSCRIPTIONS = "telemetry_subscriptions"
_BREACHED = (
    GridColumn("state", lambda row: "open" if row["is_open"] else "closed"),
    text("rule", "rule"),
    text("client", "client_id"),
    text("principal", "principal"),
    GridColumn("metric", lambda row: texts.listed(row["metric"].removeprefix("org.apache.kafka."))),
    number("alerts", "alerts"),
    GridColumn("threshold", lambda row: _in_unit(row, "bound"), NUMBER),
    GridColumn("worst", lambda row: _in_unit(row, "peak_value"), NUMBER),
    number("longest", "duration_ms", texts.duration),
    moment("since (UTC)", "first_breach"),
)
_QUIET = (
    text("client", "client_id"),
    number("client ids", "client_ids"),
    number("instances", "instances"),
    text("principal", "principal"),
    text("state", "state"),
    text("software", "client_software_name"),
    number("pushes every", "push_interval_ms", texts.duration),
    number("pushes expected", "expected_pushes"),
    number("missing", "missing_share", texts.share),
    moment("last seen (UTC)", "last_seen"),
)
_WITHOUT_COLUMNS = (
    text("software", "client_software_name"),
    text("version", "client_software_version"),
    code("why", "clients_without_telemetry", "reason"),
    number("clients", "clients"),
    number("requests", "requests"),
)

_NO_CLIENTS = {
    WHOLE_LOG: "Every client requested a subscription.",
    SAMPLED_LOG: "Every client seen asked: a sample of lines may lack clients of few requests.",
}


@section_of(TITLE, PROBLEMS)
def section(scope: Scope) -> ReportSection:
    """Client instances by state, alerts, and clients without a subscription."""
    kinds = scope.rows_if_made(SOFTWARE)
    alerts, without = scope.ask_if_made(ALERTS), scope.ask_if_made(WITHOUT)
    if not kinds and not without:
        return ReportSection(sentences=(nothing(scope, _TABLE),))
    silent = scope.ask(SILENT)
    open_alerts = alerts[0]["open_alerts"] if alerts else 0
    seen = [row[name] for row in kinds for name in ("first_seen", "last_seen")]
    return ReportSection(
        time_range=texts.time_range(min(seen), max(seen)) if seen else "",
        sentences=(_coverage(kinds), _alerting(alerts), _never(without)),
        advice=_advice(open_alerts, silent, without),
        charts=_charts(kinds),
        grids=(
            grid("Alerts, open ones first", alerts, _BREACHED, "No alert was open."),
            grid(
                "Clients that fell silent, were cut off or lack more than 5 % of their pushes",
                silent,
                _QUIET,
                "All clients push what their subscription names.",
            ),
            grid(
                "Clients that never requested a subscription",
                without,
                _WITHOUT_COLUMNS,
                _NO_CLIENTS.get(scope.level, "Only a request log shows them."),
            ),
        ),
        left_out=tuple(_left_out(scope, alerts)),
    )


def _left_out(scope: Scope, alerts: Sequence[Row]) -> Iterator[str]:
    if alerts:
        yield "Times of alerts are by the clients' own clocks."
    if not scope.has_log:
        yield (
            "What clients were asked to push, and which never asked: "
            f"{nothing(scope, _SUBSCRIPTIONS)}"
        )


def _in_unit(row: Row, name: str) -> str:
    return "" if row[name] is None else texts.with_unit(row[name], row["unit"])


def _coverage(kinds: Sequence[Row]) -> str:
    if not kinds:
        return "No client asked for a telemetry subscription, or pushed."
    instances, missing, expected, rejected = (
        sum(row[name] for row in kinds)
        for name in ("instances", "missing_pushes", "expected_pushes", "rejected_pushes")
    )
    part = texts.share(missing / expected if expected else 0)
    return (
        f"{counted(instances, 'client instance')} should push metrics; {part} of their pushes are "
        f"missing, and brokers refused {counted(rejected, 'push', 'pushes')}."
    )


def _alerting(alerts: Sequence[Row]) -> str:
    if not alerts:
        return "No alert on clients' metrics was open."
    is_open, of_all = alerts[0]["open_alerts"], counted(alerts[0]["all_alerts"], "alert")
    shown = f"{is_open:,} {noun(is_open, 'is', 'are')}" if is_open else "none is"
    return f"Metrics of clients raised {of_all}; {shown} open."


def _never(without: Sequence[Row]) -> str:
    if not without:
        return ""
    first = without[0]
    other = first["all_clients"] - first["too_old"] - first["switched_off"]
    parts = (
        (first["too_old"], "too old to push"),
        (first["switched_off"], "with telemetry switched off"),
        (other, "with an unknown library"),
    )
    kinds = ", ".join(f"{clients:,} {kind}" for clients, kind in parts if clients)
    return f"{counted(first['all_clients'], 'client')} never requested a subscription: {kinds}."


def _advice(open_alerts: int, silent: Sequence[Row], without: Sequence[Row]) -> str:
    """What to do, most urgent first; each part has rows that call for it."""
    parts = []
    if open_alerts:
        parts.append(
            "`quotaflow troubleshoot CLIENT` collects more metrics of a client, for some minutes"
        )
    if any(row["state"] == "cut_off" for row in silent):
        see = "find in `quotaflow show telemetry_rejections` why clients were cut off"
        parts.append(f"{see}, then restart them")
    if without and without[0]["too_old"]:
        parts.append("update clients of old versions where their metrics are needed")
    if without and without[0]["switched_off"]:
        parts.append("check enable.metrics.push where clients can push and do not")
    return texts.to_do(parts)


def _charts(kinds: Sequence[Row]) -> tuple[Figure, ...]:
    shown = kinds[:MAX_BARS]
    if not shown:
        return ()
    series = {
        name.replace("_", " "): [row[name] for row in shown]
        for name in STATES
        if any(row[name] for row in shown)
    }
    figure = bars([f"{r['software']} {r['version']}" for r in shown], series, "client instances")
    cut = "" if len(kinds) == len(shown) else f" (the first {len(shown)} of {len(kinds)})"
    return (Figure(figure, f"How client instances ended, by their software{cut}"),)
