"""What a capture would switch on and how many lines to expect, as text and as JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from quotaflow.pipelines.areas.pipeline import LAST_LINES
from quotaflow.pipelines.areas.question import filled
from quotaflow.pipelines.config import WarehouseSection
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection
from quotaflow.pipelines.feedback.runs import request_logger
from quotaflow.pipelines.feedback.runs.request_logger import ON, QUIET, Switch
from quotaflow.pipelines.monitoring import log_volume
from quotaflow.pipelines.monitoring.log_volume import BYTES_PER_LINE
from quotaflow.pipelines.terminal import texts
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.schemas.configs import LOGGING_LEVELS
from quotaflow.schemas.tables.declared import REQUESTS

COLUMNS = (
    *("broker_id", "level", "level_then", "expected_lines_per_s", "expected_bytes_per_s"),
    *("command", "take_back_command", "remedy_command"),
)
"""Columns of `objects`."""


@dataclass(frozen=True, slots=True)
class Volume:
    """Lines per second by broker, from when their request log was last ingested.

    `bytes_per_line` is their mean size as capture measured it last, or that of a usual mix of APIs.
    """

    lines_per_s: Mapping[int, float]
    bytes_per_line: float = BYTES_PER_LINE


def expected(tables: Reader, warehouse: WarehouseSection, cluster_id: str) -> Volume:
    """Rates of the last ten minutes in `requests` of the cluster; empty if there are none.

    Lines that ingest leaves out (the brokers' own quorum, forwarded copies) come on top.
    """
    if not tables.is_made(REQUESTS.name):
        return Volume({})
    condition = f"cluster_id = {literal(cluster_id)}"
    rows = tables.rows(filled(LAST_LINES, {"of_cluster": condition}))
    if not rows:
        return Volume({})
    elapsed = max(row["until"] for row in rows) - min(row["since"] for row in rows)
    elapsed_s = max(elapsed.total_seconds(), 1.0)
    measured = log_volume.load(warehouse, cluster_id)
    size = None if measured is None else measured.bytes_per_line
    return Volume(
        {row["broker_id"]: row["lines"] / elapsed_s for row in rows}, size or BYTES_PER_LINE
    )


def objects(connection: Connection, switch: Switch, volume: Volume) -> Iterator[dict[str, Any]]:
    """Each broker as one JSON object; rates are null where no line was ingested."""
    commands = {c.entity.entity_name: c.command for c in switch.plan.changes}
    for broker_id, level in switch.levels.items():
        rate = volume.lines_per_s.get(broker_id)
        is_switched = str(broker_id) in commands
        yield {
            "broker_id": broker_id,
            "level": level,
            "level_then": ON if is_switched else level,
            "expected_lines_per_s": None if rate is None else round(rate, 1),
            "expected_bytes_per_s": None if rate is None else round(rate * volume.bytes_per_line),
            "command": commands.get(str(broker_id)),
            "take_back_command": (
                request_logger.off_command(connection, switch, broker_id) if is_switched else None
            ),
            "remedy_command": _remedy(connection, switch, broker_id),
        }


def text(connection: Connection, switch: Switch, volume: Volume) -> Iterator[str]:
    """The same as lines of text."""
    for each in objects(connection, switch, volume):
        yield f"broker {each['broker_id']}"
        yield f"  level       {_level(each)}"
        rate, size = each["expected_lines_per_s"], each["expected_bytes_per_s"]
        rate_text = "unknown: no line of it was ingested yet"
        if rate is not None:
            rate_text = (
                f"about {texts.number(rate)} lines/s and {texts.rate(size)}, as when last ingested"
            )
        yield f"  expected    {rate_text}"
        if each["command"]:
            yield f"  command     {each['command']}"
            yield f"  take back   {each['take_back_command']}"
        if each["remedy_command"]:
            yield f"  first       {each['remedy_command']}"


def unchanged_lines(connection: Connection, switch: Switch) -> Iterator[str]:
    """For each broker that does not log and stays so: why, and the remedy."""
    for broker_id, level in switch.levels.items():
        remedy = _remedy(connection, switch, broker_id)
        if level is None:
            yield f"broker {broker_id} did not answer: its request log stays as it is"
        elif remedy:
            yield f"broker {broker_id}: its request log is {_unsettable(level)}: {remedy}"


def _remedy(connection: Connection, switch: Switch, broker_id: int) -> str | None:
    level = switch.levels[broker_id]
    if level is None or not request_logger.is_left(level):
        return None
    return request_logger.quiet_command(connection, switch, broker_id)


def _unsettable(level: str) -> str:
    return (
        f"{level}, which Kafka does not let anyone set: it could not be restored, so it stays. "
        f"Set {QUIET} first, at which no request is logged"
    )


def _level(each: Mapping[str, Any]) -> str:
    level = each["level"]
    if level is None:
        return "did not answer: it stays as it is"
    if level != each["level_then"]:
        return f"{level}, {each['level_then']} for the capture, {level} again at its end"
    if each["remedy_command"]:
        return _unsettable(level)
    return f"{level}: it logs already, and stays so" if level in LOGGING_LEVELS else level
