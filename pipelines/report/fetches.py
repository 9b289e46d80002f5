"""The section on fetch sizes, their limits (KIP-74), and reads that fail (KIP-392)."""

from collections.abc import Sequence

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas import texts
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.report.charts import MAX_BARS, bars
from quotaflow.pipelines.report.section import (
    MAX_ROWS,
    NOW,
    SOMETIME,
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
from quotaflow.udfs.counted import counted

TITLE = "Fetch sizes and reads that fail"
_TABLE = "fetch_sizes"
# What bounds an answer, the best case first.
_BOUNDS = {
    "all there was": "drained_fetches",
    "empty: waited in vain": "wait_timeout_fetches",
    "a limit of the client": "max_bytes_fetches + partition_max_bytes_fetches"
    " + first_batch_fetches",
    "a limit of the broker": "broker_cap_fetches",
    "a quota": "quota_window_fetches + throttled_fetches",
    "sent elsewhere or an error": "redirected_fetches + error_fetches",
}
_PARTS = {f"part_{place}": name for place, name in enumerate(_BOUNDS)}
_SIZES = f"""
SELECT
    principal,
    client_id,
    {", ".join(f"sum({sql}) AS part_{place}" for place, sql in enumerate(_BOUNDS.values()))},
    sum(fetches) AS fetches,
    sum(bytes) AS bytes,
    max(max_response_bytes) AS max_response_bytes,
    CASE WHEN count(bound_bytes) = count(*) THEN max(bound_bytes) END AS bound_bytes,
    sum(starved_fetches) AS starved_fetches,
    count(*) OVER () AS of_all
FROM {_TABLE}
WHERE
    cluster_id = {{cluster}} AND event_time >= {{since}} AND replica_id IS NULL
    AND {internal.not_in(_TABLE)}
GROUP BY principal, client_id
ORDER BY fetches DESC, principal, client_id
LIMIT {MAX_ROWS}
"""
_ADVICE = f"""
SELECT *, count(*) OVER () AS of_all
FROM fetch_advice
WHERE cluster_id = {{cluster}}
ORDER BY bytes_per_s DESC, advice, principal, client_id
LIMIT {MAX_ROWS}
"""
_PROBLEMS = f"""
SELECT *, coalesce(topic, unnamed_topic_id) AS shown_topic, count(*) OVER () AS of_all
FROM read_problems
WHERE cluster_id = {{cluster}}
ORDER BY CASE WHEN advice IS NULL THEN 1 ELSE 0 END, last_seen DESC, principal, client_id, topic
LIMIT {MAX_ROWS}
"""


def _reader(row: Row) -> str:
    if row["replica_id"] is not None:
        return f"follower {row['replica_id']}"
    return f"{texts.listed(row['client_id'])} of {texts.listed(row['principal'])}"


_READ = (
    text("principal", "principal"),
    text("client", "client_id"),
    number("fetches", "fetches"),
    number("brought", "bytes", texts.size),
    number("largest answer", "max_response_bytes", texts.size),
    number("may be up to", "bound_bytes", texts.size),
    number("left others waiting", "starved_fetches"),
)
_ADVISED = (
    GridColumn("who", _reader),
    GridColumn("advice", lambda row: row["advice"].replace("_", " ")),
    text("setting", "setting"),
    number("now", "current_value"),
    number("better", "recommended_value"),
    number("fetches per s", "fetches_per_s"),
    number("then", "expected_fetches_per_s"),
    GridColumn("what gets worse", lambda row: reasons.trade_off(row) or "nothing"),
)
_FAILING = (
    text("client", "client_id"),
    text("principal", "principal"),
    text("topic", "shown_topic"),
    GridColumn("advice", lambda row: (row["advice"] or "watch").replace("_", " ")),
    number("out of range", "too_small_answers"),
    number("loops", "redirect_loop_answers"),
    number("resets", "resets"),
    moment("last seen (UTC)", "last_seen"),
)


def section(scope: Scope) -> ReportSection:
    """Consumers by what bounded their answers, settings to change, and failing reads."""
    first, last = scope.extent(_TABLE)
    if last is None:
        return ReportSection(TITLE, sentences=(scope.nothing(_TABLE),))
    sizes, advised, problems = (scope.rows(sql) for sql in (_SIZES, _ADVICE, _PROBLEMS))
    return ReportSection(
        TITLE,
        time_range=texts.time_range(first, last),
        sentences=(_sentences(sizes), _wrong(problems)),
        advice=_advice(advised, problems),
        charts=_charts(sizes),
        grids=(
            grid("Settings to change, by the last day of fetches", advised, _ADVISED, "None."),
            grid(
                "Reads that went wrong, of the last day of fetches", problems, _FAILING, "None did."
            ),
            grid("Consumers by their number of fetches", sizes, _READ, "No consumer fetched."),
        ),
        left_out=("Followers and this pipeline are left out of chart and list of consumers.",),
        alarms=tuple(_alarms(advised, problems)),
    )


def _advice(advised: Sequence[Row], problems: Sequence[Row]) -> str:
    """What to do; each part has rows that call for it."""
    parts = []
    if advised:
        clients = texts.names(map(_reader, advised))
        parts.append(f"change the settings below, of {clients}")
    if problems:
        clients = texts.names(row["client_id"] for row in problems)
        parts.append(f"`quotaflow why NAME` says more of reads that went wrong, of {clients}")
    return texts.to_do(parts)


def _sentences(sizes: Sequence[Row]) -> str:
    if not sizes:
        return "No consumer fetched."
    return f"{counted(sizes[0]['of_all'], 'consumer')} fetched."


def _wrong(problems: Sequence[Row]) -> str:
    if not problems:
        return "All could read as they should."
    clients = texts.names(row["client_id"] for row in problems)
    return f"Not all could read as they should: {clients}."


def _charts(sizes: Sequence[Row]) -> tuple[Chart, ...]:
    shown = sizes[:MAX_BARS]
    series = {
        name: [row[part] for row in shown]
        for part, name in _PARTS.items()
        if any(row[part] for row in shown)
    }
    if not series:
        return ()
    names = [row["client_id"] for row in shown]
    consumers = counted(len(shown), "consumer")
    caption = f"What bounded answers to fetches, of the {consumers} that fetched most"
    return (Chart(bars(names, series, "fetches"), caption),)


def _alarms(advised: Sequence[Row], problems: Sequence[Row]) -> list[Alarm]:
    alarms = []
    failing = [row for row in problems if row["advice"] is not None]
    if failing:
        what = texts.names(row["advice"].replace("_", " ") for row in failing)
        clients = texts.names(row["client_id"] for row in failing)
        action = (
            f"`quotaflow why NAME` says more, first of {texts.listed(failing[0]['client_id'])}."
        )
        alarms.append(Alarm(NOW, f"Reads go wrong for {clients}: {what}.", action))
    if advised:
        settings = counted(advised[0]["of_all"], "fetch setting")
        action = f"Change the settings listed there, first of {_reader(advised[0])}."
        alarms.append(Alarm(SOMETIME, f"{settings} should be changed.", action))
    return alarms
