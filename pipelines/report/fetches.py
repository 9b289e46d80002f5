"""The section on fetch sizes, their limits (KIP-74), and reads that fail (KIP-392)."""

from collections.abc import Sequence

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas import fetches, reads, remote_reads
from quotaflow.pipelines.areas.fetches import BOUNDS, SETTINGS, SIZES, fetcher
from quotaflow.pipelines.areas.question import Row
from quotaflow.pipelines.areas.reads import READS
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.report.charts import MAX_BARS, bars
from quotaflow.pipelines.report.section import (
    Figure,
    GridColumn,
    ReportSection,
    code,
    grid,
    moment,
    number,
    section_of,
    text,
)
from quotaflow.pipelines.terminal import texts
from quotaflow.udfs.counted import counted

TITLE = "Fetch sizes and reads that fail"
_TABLE = "fetch_sizes"
_PROBLEMS = (*reads.PROBLEMS, *fetches.PROBLEMS, *remote_reads.PROBLEMS)
_READ = (
    text("principal", "principal"),
    text("client", "client_id"),
    number("fetches", "fetches"),
    number("brought", "bytes", texts.size),
    number("largest answer", "max_response_bytes", texts.size),
    number("may be up to", "bound_bytes", texts.size),
    number("left partitions out", "starved_fetches"),
)
_ADVISED = (
    GridColumn("who", fetcher),
    code("why", "fetch_advice", "advice"),
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
    GridColumn("what to do", lambda row: reasons.read_step(row) or "watch"),
    number("out of range", "too_small_answers"),
    number("loops", "redirect_loop_answers"),
    number("resets", "resets"),
    moment("last seen (UTC)", "last_seen"),
)


@section_of(TITLE, _PROBLEMS, _TABLE)
def section(scope: Scope) -> ReportSection:
    """Consumers by what bounded their answers, settings to change, and failing reads."""
    sizes, advised, problems = (scope.ask(each) for each in (SIZES, SETTINGS, READS))
    return ReportSection(
        time_range=texts.time_range(*scope.extent(_TABLE)),
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
        left_out=("The chart and the list of consumers leave out followers and quotaflow.",),
    )


def _advice(advised: Sequence[Row], problems: Sequence[Row]) -> str:
    """What to do; each part has rows that call for it."""
    parts = []
    if advised:
        clients = texts.names(map(fetcher, advised))
        parts.append(f"change the settings below of {clients}")
    if problems:
        parts.append(reads.step(problems, "why reads fail"))
    return texts.to_do(parts)


def _sentences(sizes: Sequence[Row]) -> str:
    if not sizes:
        return "No consumer fetched."
    return f"{counted(sizes[0]['of_all'], 'consumer')} fetched."


def _wrong(problems: Sequence[Row]) -> str:
    if not problems:
        return "No read failed."
    clients = texts.names(row["client_id"] for row in problems)
    return f"Reads of {clients} went wrong."


def _charts(sizes: Sequence[Row]) -> tuple[Figure, ...]:
    shown = sizes[:MAX_BARS]
    series = {
        name: [row[f"part_{place}"] for row in shown]
        for place, name in enumerate(BOUNDS)
        if any(row[f"part_{place}"] for row in shown)
    }
    if not series:
        return ()
    names = [row["client_id"] for row in shown]
    consumers = counted(len(shown), "consumer")
    caption = f"What limited answers to fetches, of the {consumers} that fetched most"
    return (Figure(bars(names, series, "fetches"), caption),)
