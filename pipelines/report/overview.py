"""The first section: the cluster, its key numbers, and what needs attention first."""

from collections.abc import Sequence

from quotaflow.pipelines.areas.question import Row
from quotaflow.pipelines.areas.replication import OUT_OF_SYNC
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.areas.traffic import CLIENTS, CLUSTER, FLOWS
from quotaflow.pipelines.report.plots import by_name, lines
from quotaflow.pipelines.report.section import Figure, ReportSection, section_of
from quotaflow.pipelines.terminal import texts
from quotaflow.schemas.levels import IN_WORDS

TITLE = "Overview"
_TRAFFIC = "traffic"
_MIN_STEP_S = 60


@section_of(TITLE, (OUT_OF_SYNC,))
def section(scope: Scope) -> ReportSection:
    """The cluster in numbers; the page adds the alarms of the other sections."""
    reader = scope.reader
    cluster = scope.rows(CLUSTER)[0] if reader.is_made("replicas") else {"brokers": 0}
    clients = scope.rows(CLIENTS)[0] if reader.is_made(_TRAFFIC) else {"principals": 0}
    return ReportSection(
        time_range=texts.time_range(scope.since, scope.until),
        numbers=(*_cluster_numbers(cluster), *_client_numbers(clients)),
        charts=_charts(scope) if clients["principals"] else (),
        sentences=(f"The tables are filled from {IN_WORDS[scope.level]}.",),
        left_out=tuple(_unknown(cluster, clients)),
    )


def _cluster_numbers(row: Row) -> tuple[tuple[str, str], ...]:
    if not row["brokers"]:
        return ()
    return tuple(
        (texts.number(row[name]), name) for name in ("brokers", "racks", "topics", "partitions")
    )


def _client_numbers(row: Row) -> tuple[tuple[str, str], ...]:
    if not row["principals"]:
        return ()
    counts = [(texts.number(row[name]), name) for name in ("principals", "clients")]
    moved = [(texts.size(row[name] or 0), name) for name in ("produced", "consumed")]
    return (*counts, *moved)


def _charts(scope: Scope) -> tuple[Figure, ...]:
    step_s, rows = scope.steps(_TRAFFIC, FLOWS, _MIN_STEP_S)
    series = by_name(rows, "direction", "rate")
    caption = "What clients produced and consumed, in MB/s over steps of "
    return (Figure(lines(series, "MB/s", step_s), caption + texts.duration(step_s * 1e3)),)


def _unknown(cluster: Row, clients: Row) -> Sequence[str]:
    sentences = []
    if not cluster["brokers"]:
        sentences.append("No snapshot has brokers and topics yet: `quotaflow snapshot` takes one.")
    if not clients["principals"]:
        sentences.append(
            "No client's traffic is known of this time: `quotaflow run --once` reads it from a "
            "request log."
        )
    return sentences
