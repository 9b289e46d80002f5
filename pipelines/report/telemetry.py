"""The section on client telemetry: who pushes, who does not, and alerts (KIP-714)."""

from collections.abc import Iterator, Sequence

from quotaflow.pipelines.areas import texts
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.report.charts import MAX_BARS, bars
from quotaflow.pipelines.report.section import (
    MAX_ROWS,
    NOW,
    NUMBER,
    SOON,
    Alarm,
    Chart,
    GridColumn,
    ReportSection,
    Row,
    grid,
    moment,
    number,
    text,
)
from quotaflow.pipelines.warehouse import internal
from quotaflow.schemas.levels import SAMPLED_LOG, WHOLE_LOG
from quotaflow.udfs.counted import counted, noun

TITLE = "Client telemetry and alerts"
_OF_USERS = internal.not_in("client_coverage")
_TABLE = "telemetry_pushes"
_SUBSCRIPTIONS = "telemetry_subscriptions"
_STATES = ("active", "terminated", "vanished", "never_pushed", "cut_off")
_SOFTWARE = f"""
SELECT
    coalesce(client_software_name, 'unknown') AS software,
    coalesce(client_software_version, '') AS version,
    {", ".join(f"count(CASE WHEN state = '{name}' THEN 1 END) AS {name}" for name in _STATES)},
    count(*) AS instances,
    sum(missing_pushes) AS missing_pushes,
    sum(expected_pushes) AS expected_pushes,
    sum(rejected_pushes) AS rejected_pushes,
    min(first_seen) AS first_seen,
    max(last_seen) AS last_seen
FROM client_coverage
WHERE cluster_id = {{cluster}} AND last_seen >= {{since}} AND {_OF_USERS}
GROUP BY 1, 2
ORDER BY instances DESC, software, version
"""
_SILENT = f"""
SELECT *, count(*) OVER () AS of_all
FROM client_coverage
WHERE cluster_id = {{cluster}} AND last_seen >= {{since}}
    AND (state IN ('vanished', 'cut_off', 'never_pushed') OR missing_share > 0.05)
    AND {_OF_USERS}
ORDER BY state = 'cut_off' DESC, missing_share DESC NULLS LAST, client_id, client_instance_id
LIMIT {MAX_ROWS}
"""
_ALERTS = f"""
SELECT is_open, rule, client_id, principal, metric, bound, unit,
    count(*) AS alerts,
    max(peak_value) AS peak_value,
    max(duration_ms) AS duration_ms,
    min(first_breach) AS first_breach,
    sum(count(*)) OVER () AS all_alerts,
    sum(count(CASE WHEN is_open THEN 1 END)) OVER () AS open_alerts,
    count(*) OVER () AS of_all
FROM metric_alerts
WHERE cluster_id = {{cluster}} AND (is_open OR closed_at >= {{since}})
GROUP BY is_open, rule, client_id, principal, metric, bound, unit
ORDER BY is_open DESC, first_breach DESC, client_id, rule
LIMIT {MAX_ROWS}
"""
_WITHOUT = f"""
SELECT reason, client_software_name, client_software_version, count(*) AS clients,
    sum(requests) AS requests, count(*) OVER () AS of_all, sum(count(*)) OVER () AS all_clients,
    sum(sum(CASE WHEN reason = 'too_old' THEN 1 ELSE 0 END)) OVER () AS too_old,
    sum(sum(CASE WHEN reason = 'switched_off' THEN 1 ELSE 0 END)) OVER () AS switched_off
FROM clients_without_telemetry
WHERE cluster_id = {{cluster}} AND last_seen >= {{since}}
GROUP BY reason, client_software_name, client_software_version
ORDER BY clients DESC, client_software_name, client_software_version
LIMIT {MAX_ROWS}
"""
_BREACHED = (
    GridColumn("state", lambda row: "open" if row["is_open"] else "closed"),
    text("rule", "rule"),
    text("client", "client_id"),
    text("principal", "principal"),
    GridColumn("metric", lambda row: texts.listed(row["metric"].removeprefix("org.apache.kafka."))),
    number("alerts", "alerts"),
    GridColumn("bound", lambda row: _in_unit(row, "bound"), NUMBER),
    GridColumn("worst", lambda row: _in_unit(row, "peak_value"), NUMBER),
    number("longest", "duration_ms", texts.duration),
    moment("since (UTC)", "first_breach"),
)
_QUIET = (
    text("client", "client_id"),
    text("principal", "principal"),
    text("state", "state"),
    text("software", "client_software_name"),
    number("asked every", "push_interval_ms", texts.duration),
    number("pushes expected", "expected_pushes"),
    number("missing", "missing_share", texts.share),
    moment("last seen (UTC)", "last_seen"),
)
_WITHOUT_COLUMNS = (
    text("software", "client_software_name"),
    text("version", "client_software_version"),
    text("why", "reason"),
    number("clients", "clients"),
    number("requests", "requests"),
)

_NO_CLIENTS = {
    WHOLE_LOG: "Every client asked.",
    SAMPLED_LOG: "Every client seen asked: a sample of lines may lack clients of few requests.",
}


def section(scope: Scope) -> ReportSection:
    """Client instances by state, alerts, and clients without a subscription."""
    kinds, alerts, without = (scope.rows_if_made(sql) for sql in (_SOFTWARE, _ALERTS, _WITHOUT))
    if not kinds and not without:
        return ReportSection(TITLE, sentences=(scope.nothing(_TABLE),))
    silent = scope.rows(_SILENT)
    open_alerts = alerts[0]["open_alerts"] if alerts else 0
    seen = [row[name] for row in kinds for name in ("first_seen", "last_seen")]
    return ReportSection(
        TITLE,
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
                "All push what they were asked for.",
            ),
            grid(
                "Clients that never asked to push",
                without,
                _WITHOUT_COLUMNS,
                _NO_CLIENTS.get(scope.level, "Only a request log shows them."),
            ),
        ),
        left_out=tuple(_left_out(scope, alerts)),
        alarms=tuple(_alarms(alerts, silent)),
    )


def _left_out(scope: Scope, alerts: Sequence[Row]) -> Iterator[str]:
    if alerts:
        yield "Times of alerts are by the clients' own clocks."
    if not scope.has_log:
        yield (
            "What clients were asked to push, and which never asked: "
            f"{scope.nothing(_SUBSCRIPTIONS)}"
        )


def _in_unit(row: Row, name: str) -> str:
    return f"{texts.number(row[name])} {texts.listed(row['unit'] or '', 12)}".strip()


def _coverage(kinds: Sequence[Row]) -> str:
    if not kinds:
        return "No client asked for a telemetry subscription, or pushed."
    instances, missing, expected, rejected = (
        sum(row[name] for row in kinds)
        for name in ("instances", "missing_pushes", "expected_pushes", "rejected_pushes")
    )
    of_all = f"{missing / expected:.1%}" if expected else "none"
    return (
        f"{counted(instances, 'client instance was', 'client instances were')} asked to push; of "
        f"{counted(expected, 'expected push', 'expected pushes')} {of_all} are missing, and "
        f"{counted(rejected, 'was', 'were')} rejected."
    )


def _alerting(alerts: Sequence[Row]) -> str:
    if not alerts:
        return "No alert on clients' metrics was open."
    is_open, of_all = alerts[0]["open_alerts"], counted(alerts[0]["all_alerts"], "alert")
    return f"{is_open:,} of {of_all} {noun(is_open, 'is', 'are')} open."


def _never(without: Sequence[Row]) -> str:
    if not without:
        return ""
    first = without[0]
    other = first["all_clients"] - first["too_old"] - first["switched_off"]
    parts = (
        (first["too_old"], "of versions that cannot push"),
        (first["switched_off"], "with telemetry switched off"),
        (other, "of software whose versions are not known"),
    )
    kinds = ", ".join(f"{clients:,} {kind}" for clients, kind in parts if clients)
    return f"{counted(first['all_clients'], 'client')} never asked to push: {kinds}."


def _advice(open_alerts: int, silent: Sequence[Row], without: Sequence[Row]) -> str:
    """What to do, most urgent first; each part has rows that call for it."""
    parts = []
    if open_alerts:
        parts.append("`quotaflow troubleshoot CLIENT` asks one client for more, for a while")
    if any(row["state"] == "cut_off" for row in silent):
        parts.append("restart the clients that were cut off: they push nothing until then")
    if without and without[0]["too_old"]:
        parts.append("update clients of old versions where their metrics are needed")
    if without and without[0]["switched_off"]:
        parts.append("set enable.metrics.push=true where it is switched off")
    return texts.to_do(parts)


def _charts(kinds: Sequence[Row]) -> tuple[Chart, ...]:
    shown = kinds[:MAX_BARS]
    if not shown:
        return ()
    series = {
        name.replace("_", " "): [row[name] for row in shown]
        for name in _STATES
        if any(row[name] for row in shown)
    }
    figure = bars([f"{r['software']} {r['version']}" for r in shown], series, "client instances")
    cut = "" if len(kinds) == len(shown) else f" (the first {len(shown)} of {len(kinds)})"
    return (Chart(figure, f"How client instances ended, by their software{cut}"),)


def _alarms(alerts: Sequence[Row], silent: Sequence[Row]) -> list[Alarm]:
    alarms = []
    still_open = [row for row in alerts if row["is_open"]]
    if still_open:
        clients = texts.names(row["client_id"] for row in still_open)
        action = "`quotaflow troubleshoot CLIENT` asks one client for more, for a while."
        alarms.append(Alarm(NOW, f"Metrics of {clients} are past a bound.", action))
    cut_off = [row["client_id"] for row in silent if row["state"] == "cut_off"]
    if cut_off:
        sentence = f"Cut off, and silent until restarted: {texts.names(cut_off)}."
        alarms.append(Alarm(SOON, sentence, "Restart them: they push no metrics until then."))
    return alarms
