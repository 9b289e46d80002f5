"""The section on traffic between racks: bytes, avoidable bytes, and steps (KIP-392)."""

from collections.abc import Iterator, Sequence

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas.question import Row
from quotaflow.pipelines.areas.racks import CROSSING, PAIRS, PROBLEMS, PRODUCER_STEPS, STEPS
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.report.charts import Cells, heat_map, worst
from quotaflow.pipelines.report.section import (
    NUMBER,
    Figure,
    GridColumn,
    ReportSection,
    grid,
    number,
    section_of,
    text,
)
from quotaflow.pipelines.terminal import texts

TITLE = "Traffic between racks"
_TABLE = "rack_traffic"
_MAX_RACKS = 16
_FLOWS = {
    "consumed": "Read by consumers: their rack (down) and that of the broker they read from",
    "produced": "Sent by producers: their rack (down) and that of the leader",
    "replicated": "Read by followers: their rack (down) and that of the leader",
}


def _step(row: Row) -> str:
    return texts.listed(reasons.replica_step(row), texts.SENTENCE_CHARS)


def _producer_step(row: Row) -> str:
    return texts.listed(reasons.producer_rack_step(row), texts.SENTENCE_CHARS)


_PRODUCERS = (
    GridColumn("step", _producer_step),
    number("crosses racks, per hour", "saved_bytes_per_hour", texts.size),
    GridColumn(
        "saved per hour, at most",
        lambda row: texts.money(row["saved_cost_per_hour"], row["currency"]),
        NUMBER,
    ),
)
_ADVISED = (
    GridColumn("step", _step),
    number("spares between racks, per hour", "saved_bytes_per_hour", texts.size),
    GridColumn(
        "new replicas, per hour",
        lambda row: (
            texts.size(row["replica_bytes_per_hour"]) if row["advice"] == "place_replica" else ""
        ),
        NUMBER,
    ),
    GridColumn(
        "saved per hour",
        lambda row: texts.money(row["saved_cost_per_hour"], row["currency"]),
        NUMBER,
    ),
)
_CROSSING = (
    text("principal", "principal"),
    text("client", "client_id"),
    text("verdict", "verdict"),
    text("declared rack", "declared_rack"),
    text("read in", "read_rack"),
    number("crossed", "cross_rack_bytes", texts.size),
    number("share that crossed", "cross_rack_share", texts.share),
)


@section_of(TITLE, PROBLEMS, _TABLE)
def section(scope: Scope) -> ReportSection:
    """Heat maps of the report's hours, and steps by the bytes they would save."""
    pairs, steps = scope.rows(PAIRS), scope.ask(STEPS)
    first = min((row["first_hour"] for row in pairs), default=None)
    return ReportSection(
        time_range=texts.time_range(first, scope.extent(_TABLE)[1]),
        sentences=(_sentence(pairs),),
        advice=f"First: {_step(steps[0])}." if steps else "No other step would save bytes.",
        charts=tuple(_charts(pairs)),
        grids=(
            grid(
                "Steps that would keep bytes in their rack, by the last day of traffic",
                steps,
                _ADVISED,
                "No step would keep more bytes in their rack.",
            ),
            grid(
                "Consumers whose reads cross racks, of the last day of traffic",
                scope.ask(CROSSING),
                _CROSSING,
                "No consumer is known to read in another rack.",
            ),
            grid(
                "Steps that would keep produced bytes in their rack, by the last day of traffic",
                scope.ask(PRODUCER_STEPS),
                _PRODUCERS,
                "No step would keep more produced bytes in their rack.",
            ),
        ),
        left_out=tuple(_unknown(pairs)),
    )


def _sentence(pairs: Sequence[Row]) -> str:
    total, crossed, avoidable, cost = (
        sum(row[name] or 0 for row in _read(pairs))
        for name in ("bytes", "cross_rack_bytes", "avoidable_bytes", "avoidable_cost")
    )
    sentence = f"Consumers read {texts.size(total)}; {texts.size(crossed)} crossed racks"
    sentence += f", and {texts.size(avoidable)} of that without need"
    return sentence + (f" ({texts.money(cost, pairs[0]['currency'])})." if cost else ".")


def _unknown(pairs: Sequence[Row]) -> Iterator[str]:
    unknown = sum(row["bytes"] for row in pairs if row["cross_rack_bytes"] is None)
    if unknown:
        yield f"For {texts.size(unknown)} the rack of one side is not known (producers name none)."
    racks = len({row["client_rack"] for row in pairs})
    if racks > _MAX_RACKS:
        yield f"Heat maps have the {_MAX_RACKS} racks of clients with most bytes, of {racks}."


def _read(pairs: Sequence[Row]) -> list[Row]:
    return [row for row in pairs if row["flow"] == "consumed"]


def _charts(pairs: Sequence[Row]) -> Iterator[Figure]:
    """A heat map for each flow, all with one scale."""
    by_flow = {
        flow: _greatest(
            {
                (row["client_rack"], row["broker_rack"]): row["bytes"]
                for row in pairs
                if row["flow"] == flow
            }
        )
        for flow in _FLOWS
    }
    most = max(map(worst, by_flow.values()))
    for flow, cells in by_flow.items():
        if cells:
            drawn = heat_map(cells, "rack of the client", "rack of the broker", most)
            yield Figure(drawn, _FLOWS[flow])


def _greatest(cells: Cells) -> Cells:
    """Cells of the racks with most bytes: clients choose names of racks. `cells` are sorted."""
    racks = list(dict.fromkeys(client_rack for client_rack, _ in cells))[:_MAX_RACKS]
    return {pair: size for pair, size in cells.items() if pair[0] in racks}
