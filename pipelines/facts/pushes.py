"""Telemetry pushes from a payload or from records of topics, decoded as the pipeline does."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from quotaflow.pipelines.config import IngestSection, PayloadsSection
from quotaflow.pipelines.kafka import record_batches
from quotaflow.pipelines.terminal import values
from quotaflow.schemas.table import STRING
from quotaflow.schemas.tables.declared import CLIENT_METRICS, QUARANTINE, TELEMETRY_PUSHES
from quotaflow.udfs.facts.facts import FactReader
from quotaflow.udfs.facts.receiver import PushLog
from quotaflow.udfs.facts.requests import RequestLog
from quotaflow.udfs.facts.telemetry_pushes import OPENED, from_receiver
from quotaflow.udfs.otlp import bad_text, decode
from quotaflow.udfs.otlp.codecs import UnreadableError
from quotaflow.udfs.rules.client_metrics import ALL

Row = dict[str, Any]
COLUMNS = CLIENT_METRICS.column_names
"""Columns of points."""
_MAX_REMEMBERED = 1_000
_CHANGED = 117  # UNKNOWN_SUBSCRIPTION_ID


@dataclass(slots=True)
class CapturedPushes:
    """The pushes of these instances, and their count; a push that comes by two routes counts once.

    `metrics` are the prefixes to show; `report` gets what cannot be shown, with the reason.
    `brokers` are those of the last snapshot: of names, only their numbers count as brokers.
    """

    cluster_id: str
    client_instance_ids: frozenset[str]
    metrics: tuple[str, ...]
    ingest: IngestSection
    bounds: PayloadsSection
    report: Callable[[str], None]
    brokers: tuple[int, ...] = ()
    pushes: int = 0
    points: int = 0
    _seen: dict[tuple[str, str], None] = field(default_factory=dict)
    _lines: FactReader = field(init=False)
    _received: FactReader = field(init=False)

    def __post_init__(self) -> None:
        """Open the readers of both topics."""
        limits = self.bounds.limits
        log = RequestLog(self.cluster_id, self.ingest.line_options, limits, None)
        self._lines = log.with_brokers(self.brokers).open()
        most = self.ingest.max_line_bytes
        self._received = PushLog(self.cluster_id, from_receiver, most, limits, None).open()

    def rows(self, record: Any) -> Iterator[Row]:
        """The data points in a record, with the columns of client_metrics."""
        opened = self._opened(record)
        for push in opened.drop_columns(["payload"]).to_pylist():
            if self._is_repeated(push):
                continue
            self.pushes += 1
            self._report_problems(push)
            if push["unreadable_reason"] is None:
                yield from self._points(opened.select(TELEMETRY_PUSHES.column_names))

    def _points(self, push: pa.Table) -> Iterator[Row]:
        batches = iter(push.combine_chunks().to_batches())
        for row in values.rows(decode.decode_pushes(self.bounds.limits)(batches)):
            if ALL in self.metrics or (row["metric"] or "").startswith(self.metrics):
                self.points += 1
                yield row

    def _opened(self, record: Any) -> pa.Table:
        """The push in a record as OPENED; without rows if it is of other instances."""
        text = record.value or b""
        is_line = record.topic == self.ingest.request_log_topic
        # Search the text first: parsing every line of a busy cluster would be too slow.
        if is_line and not any(one.encode() in text for one in self.client_instance_ids):
            return OPENED.empty_table()
        batch = record_batches.of_records([record])
        reader = self._lines if is_line else self._received
        facts = reader.read(batch, datetime.now(UTC))
        rows = facts.tables[TELEMETRY_PUSHES.name]
        details = facts.tables[QUARANTINE.name]["detail"].to_pylist() or [None]
        opened = rows.append_column("unreadable_detail", pa.array(details * rows.num_rows, STRING))
        instances = pa.array(sorted(self.client_instance_ids), STRING)
        return opened.filter(pc.is_in(opened["client_instance_id"], instances))

    def _is_repeated(self, push_row: Row) -> bool:
        """Whether it came before, by another route. Empty pushes are equal, and never count."""
        key = (push_row["client_instance_id"], push_row["payload_sha256"])
        if not push_row["decoded_bytes"]:
            return False
        is_repeated = key in self._seen
        self._seen[key] = None
        if len(self._seen) > _MAX_REMEMBERED:
            del self._seen[next(iter(self._seen))]
        return is_repeated

    def _report_problems(self, push_row: Row) -> None:
        instance_id = push_row["client_instance_id"]
        code = push_row["error_code"]
        if code is None and not push_row["accepted"]:
            self.report(f"a push of {instance_id} has no answer in the log")
        elif not push_row["accepted"]:
            reason = (
                ": its subscription changed, and it fetches the new one" if code == _CHANGED else ""
            )
            self.report(f"a push of {instance_id} was rejected with error {code}{reason}")
        if push_row["unreadable_reason"] is not None:
            reason = f"{push_row['unreadable_reason']}: {push_row['unreadable_detail']}"
            self.report(f"a push of {instance_id} cannot be read: {reason}")
        elif left_out := bad_text.metrics_left_out(*map(push_row.get, bad_text.COUNTS)):
            self.report(f"a push of {instance_id}: {': '.join(left_out)}")


def payload_points(
    payload: bytes, codec: str, bounds: PayloadsSection, report: Callable[[str], None]
) -> Iterator[pa.RecordBatch]:
    """Data points of one payload, with the columns of client_metrics; what only a push has is null.

    `report` gets how many metrics are left out, if any. Raises UnreadableError with the reason the
    pipeline would quarantine it for.
    """
    columns = {"payload": [payload], "compression": [codec]}
    schema = TELEMETRY_PUSHES.arrow
    push = pa.RecordBatch.from_pydict(
        {name: columns.get(name, [None]) for name in schema.names}, schema=schema
    )
    (opened,) = decode.inspect_pushes(bounds.limits)(iter([push]))
    reason = opened.column("unreadable_reason")[0].as_py()
    if reason is not None:
        raise UnreadableError(reason, opened.column("unreadable_detail")[0].as_py() or "")
    counts = (opened.column(name)[0].as_py() for name in bad_text.COUNTS)
    if left_out := bad_text.metrics_left_out(*counts):
        report(": ".join(left_out))
    return decode.decode_pushes(bounds.limits)(iter([opened]))
