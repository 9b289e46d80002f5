"""What crosses racks, what need not, and which steps would keep it there (KIP-392)."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from quotaflow.pipelines.reader import Reader
from quotaflow.pipelines.report.heat_map import heat_map
from quotaflow.pipelines.report.section import (
    Chart,
    Grid,
    Row,
    Section,
    listed,
    money,
    size,
)

TITLE = "Traffic between racks"
_MOST_RACKS, _MOST_STEPS = 24, 20
_FLOWS = {
    "consumed": "Read by consumers, by their rack and that of the broker they read from",
    "produced": "Sent by producers, by their rack and that of the leader",
    "replicated": "Read by followers, by their rack and that of the leader",
}
_PAIRS = "SELECT * FROM rack_pairs ORDER BY cluster_id, bytes DESC"
_STEPS = f"""
SELECT * FROM replica_advice
ORDER BY coalesce(saved_bytes_per_hour, 0) DESC, advice, client_id, topic
LIMIT {_MOST_STEPS}
"""
_STEP_TEXTS = {
    "set_broker_rack": "set broker.rack of broker {broker_id}",
    "update_client": "update client {client_id} of {principal}: its FETCHes are too old for racks",
    "place_replica": "place a replica of {topic} in {client_rack}",
    "set_selector": "set replica.selector.class of broker {broker_id}",
    "set_client_rack": "set client.rack={client_rack} at client {client_id} of {principal}",
    "check_client": "see why {client_id} of {principal} does not read in {client_rack}",
    "move_leader": "move the leader of {topic}-{partition} to {client_rack}",
}


def section(reader: Reader) -> Section:
    """The section, of the last day in the tables."""
    pairs = reader.rows(_PAIRS)
    of_clusters = [(id_, list(rows)) for id_, rows in groupby(pairs, lambda r: r["cluster_id"])]
    several = len(of_clusters) > 1
    return Section(
        title=TITLE,
        sentences=tuple(_sentence(id_, rows, several) for id_, rows in of_clusters),
        charts=tuple(chart for id_, rows in of_clusters for chart in _charts(id_, rows, several)),
        grids=(_steps(reader.rows(_STEPS)),),
    )


def _sentence(cluster_id: str, rows: Sequence[Row], several: bool) -> str:
    read = [row for row in rows if row["flow"] == "consumed"]
    total, crossed, avoidable, cost = (
        sum(row[name] or 0 for row in read)
        for name in ("bytes", "cross_rack_bytes", "avoidable_bytes", "avoidable_cost")
    )
    unknown = sum(row["bytes"] for row in read if row["cross_rack_bytes"] is None)
    where = f"Cluster {cluster_id}: consumers" if several else "Consumers"
    said = f"{where} read {size(total)} in the last day; {size(crossed)} crossed racks"
    said += f", and {size(avoidable)} of that need not have"
    said += f" ({money(cost, rows[0]['currency'])})." if cost else "."
    if unknown:
        said += f" For {size(unknown)} the rack of one side is not known."
    return said


def _charts(cluster_id: str, rows: Sequence[Row], several: bool) -> Iterator[Chart]:
    for flow, caption in _FLOWS.items():
        cells = {
            (r["client_rack"], r["broker_rack"]): r["bytes"] for r in rows if r["flow"] == flow
        }
        if cells:
            shown = _greatest(cells)
            more = f" (the greatest {len(shown)} of {len(cells)} pairs)"
            yield Chart(
                heat_map(shown, "rack of the client", "rack of the broker"),
                (f"Cluster {cluster_id}: " if several else "")
                + caption
                + (more if len(shown) < len(cells) else ""),
            )


def _greatest(
    cells: dict[tuple[str | None, str | None], float],
) -> dict[tuple[str | None, str | None], float]:
    """Of racks, which clients name as they like, those with most bytes; `cells` come in order."""
    racks = list(dict.fromkeys(client_rack for client_rack, _ in cells))[:_MOST_RACKS]
    return {pair: size_ for pair, size_ in cells.items() if pair[0] in racks}


def _steps(rows: Sequence[Row]) -> Grid:
    return Grid(
        caption="Steps that would keep bytes in their rack, the greatest first",
        heads=("step", "stays in its rack, per hour", "new replicas, per hour", "saved per hour"),
        rows=tuple(
            (
                _STEP_TEXTS[row["advice"]].format(**{n: listed(v) for n, v in row.items()}),
                size(row["saved_bytes_per_hour"]),
                size(row["replica_bytes_per_hour"]) if row["advice"] == "place_replica" else "",
                money(row["saved_cost_per_hour"], row["currency"]),
            )
            for row in rows
        ),
        empty="Nothing that is known would keep more bytes in their rack.",
    )
