"""The first section: the cluster, its key numbers, and what needs attention first."""

from collections.abc import Sequence

from quotaflow.pipelines.areas import texts
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.report.charts import by_name, lines
from quotaflow.pipelines.report.section import NOW, Alarm, Chart, ReportSection, Row
from quotaflow.schemas.levels import IN_WORDS
from quotaflow.udfs.counted import counted

TITLE = "Overview"
_TRAFFIC = "traffic"
_MIN_STEP_S = 60
_CLUSTER = """
SELECT
    (SELECT count(*) FROM current_brokers WHERE cluster_id = {cluster}) AS brokers,
    (SELECT count(DISTINCT rack) FROM current_brokers WHERE cluster_id = {cluster}) AS racks,
    (SELECT count(*) FROM current_topics WHERE cluster_id = {cluster}) AS topics,
    count(DISTINCT concat(topic_id, '-', CAST(partition AS STRING))) AS partitions,
    count(DISTINCT CASE
        WHEN NOT is_in_sync THEN concat(topic_id, '-', CAST(partition AS STRING))
    END) AS behind
FROM current_replicas
WHERE cluster_id = {cluster}
"""
_CLIENTS = """
SELECT
    count(DISTINCT principal) AS principals,
    count(DISTINCT client_id) AS clients,
    sum(CASE WHEN direction = 'produced' THEN bytes END) AS produced,
    sum(CASE WHEN direction = 'consumed' THEN bytes END) AS consumed
FROM traffic
WHERE cluster_id = {cluster} AND event_time >= {since}
"""
_FLOWS = """
SELECT
    direction,
    epoch_us(event_time) // 1000000 // {step} * {step} AS second,
    sum(bytes) / 1e6 / {step} AS rate
FROM traffic
WHERE cluster_id = {cluster} AND event_time >= {since}
GROUP BY 1, 2
ORDER BY direction DESC, second
"""


def section(scope: Scope) -> ReportSection:
    """The cluster in numbers; the page adds the alarms of the other sections."""
    reader = scope.reader
    cluster = scope.rows(_CLUSTER)[0] if reader.is_made("replicas") else {"brokers": 0}
    clients = scope.rows(_CLIENTS)[0] if reader.is_made(_TRAFFIC) else {"principals": 0}
    return ReportSection(
        TITLE,
        time_range=texts.time_range(scope.since, scope.until),
        numbers=(*_cluster_numbers(cluster), *_client_numbers(clients)),
        charts=_charts(scope) if clients["principals"] else (),
        sentences=(f"These tables have rows of {IN_WORDS[scope.level]}.",),
        left_out=tuple(_unknown(cluster, clients)),
        alarms=_alarms(cluster),
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


def _charts(scope: Scope) -> tuple[Chart, ...]:
    step_s, rows = scope.steps(_TRAFFIC, _FLOWS, _MIN_STEP_S)
    series = by_name(rows, "direction", "rate")
    caption = "What clients produced and consumed, in MB/s over steps of "
    return (Chart(lines(series, "MB/s", step_s), caption + texts.duration(step_s * 1e3)),)


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


def _alarms(cluster: Row) -> tuple[Alarm, ...]:
    if not cluster.get("behind"):
        return ()
    partitions = counted(cluster["behind"], "partition")
    sentence = f"{partitions} had replicas out of sync at the last snapshot that changed them."
    action = "`quotaflow show current_replicas` names them: check the brokers that fall behind."
    return (Alarm(NOW, sentence, action),)
