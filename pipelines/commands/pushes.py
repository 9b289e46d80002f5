"""Telemetry pushes from a payload or from records of topics, decoded as the pipeline does."""

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from quotaflow.pipelines.config import IngestSection, PayloadsSection
from quotaflow.pipelines.terminal import values
from quotaflow.schemas.tables.telemetry import TELEMETRY_PUSHES
from quotaflow.udfs.otlp import bad_text, decode
from quotaflow.udfs.otlp.codecs import COMPRESSION_NAMES, UnreadableError
from quotaflow.udfs.rules.client_metrics import ALL

Row = dict[str, Any]
_MAX_REMEMBERED = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_YEAR_2100_MS = 4_102_444_800_000
_API = "PUSH_TELEMETRY"
_CODECS = dict(enumerate(COMPRESSION_NAMES))
_STOCK = "Completed request:"
_NUMBER = re.compile(r"[0-9]{1,9}")
_NO_ERROR, _CHANGED = 0, 117  # UNKNOWN_SUBSCRIPTION_ID
_NUMBERS = {"broker_id": "broker_id", "client_source_port": "client_port"}
_TEXTS = {
    "client_instance_id": "client_instance_id",
    "principal": "principal",
    "client_id": "client_id",
    "client_software_name": "client_software_name",
    "client_software_version": "client_software_version",
    "client_source_address": "client_address",
    "listener": "listener",
}


@dataclass(slots=True)
class CapturedPushes:
    """The pushes of these instances, and their count; a push that comes by two routes counts once.

    `metrics` are the prefixes to show; `report` gets what cannot be shown, with the reason.
    """

    cluster_id: str
    client_instance_ids: frozenset[str]
    metrics: tuple[str, ...]
    ingest: IngestSection
    bounds: PayloadsSection
    report: Callable[[str], None]
    pushes: int = 0
    points: int = 0
    _seen: dict[tuple[str, str], None] = field(default_factory=dict)

    def rows(self, record: Any) -> Iterator[Row]:
        """The data points in a record, with the columns of client_metrics."""
        push = self._push(record)
        if push is None:
            return
        limits = self.bounds.limits
        (opened,) = decode.inspect_pushes(limits)(iter([push]))
        push_row = opened.drop_columns(["payload"]).to_pylist()[0]
        if self._is_repeated(push_row):
            return
        self.pushes += 1
        self._report_problems(push_row)
        if push_row["unreadable_reason"] is None:
            for row in values.rows(decode.decode_pushes(limits)(iter([opened]))):
                if ALL in self.metrics or (row["metric"] or "").startswith(self.metrics):
                    self.points += 1
                    yield row

    def _push(self, record: Any) -> pa.RecordBatch | None:
        """A record as one row of telemetry_pushes; None if it is of other instances."""
        if not record.value or len(record.value) > self.ingest.max_line_bytes:
            return None
        is_line = record.topic == self.ingest.request_log_topic
        try:
            push = of_line(record, self.client_instance_ids) if is_line else of_receiver(record)
            if push is None or push["client_instance_id"] not in self.client_instance_ids:
                return None
            columns = push | {
                "cluster_id": self.cluster_id,
                "record_time": _moment(record.timestamp),
            }
            row = {name: columns.get(name) for name in TELEMETRY_PUSHES.column_names}
            return pa.RecordBatch.from_pylist([row], schema=TELEMETRY_PUSHES.arrow)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            return None  # not written by a broker: ingest puts it into quarantine with the reason

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
        if not push_row["accepted"]:
            code = push_row["error_code"]
            reason = (
                ": its subscription changed, and it fetches the new one" if code == _CHANGED else ""
            )
            self.report(f"a push of {instance_id} was rejected with error {code}{reason}")
        if push_row["unreadable_reason"] is not None:
            reason = f"{push_row['unreadable_reason']}: {push_row['unreadable_detail']}"
            self.report(f"a push of {instance_id} cannot be read: {reason}")
        elif push_row["unreadable_metrics"]:
            self.report(f"a push of {instance_id}: {left_out(push_row['unreadable_metrics'])}")


def left_out(metrics: int) -> str:
    """That metrics of a payload have no points."""
    return f"{bad_text.REASON}: {bad_text.DETAIL}{metrics}"


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
    if metrics := opened.column("unreadable_metrics")[0].as_py():
        report(left_out(metrics))
    return decode.decode_pushes(bounds.limits)(iter([opened]))


def of_receiver(record: Any) -> Row:
    """A record of broker/TelemetryReceiver as columns of telemetry_pushes."""
    headers = {key: value.decode("utf-8", "replace") for key, value in record.headers if value}
    numbers = {name: _number(headers.get(key)) for key, name in _NUMBERS.items()}
    return numbers | {
        **{name: headers.get(key) for key, name in _TEXTS.items()},
        "event_time": _moment(record.timestamp),
        "accepted": True,
        "error_code": _NO_ERROR,
        "compression": "none",
        "payload": record.value,
    }


def of_line(record: Any, client_instance_ids: frozenset[str]) -> Row | None:
    """A PUSH_TELEMETRY line of the request log as columns of telemetry_pushes.

    None for other lines and other instances. Raises the errors of json and base64 for other text.
    """
    text = record.value.decode("utf-8", "replace")
    # Search the text first: parsing every line of a busy cluster would be too slow.
    if _API not in text or not any(one in text for one in client_instance_ids):
        return None
    start = text.find(_STOCK)
    line = text[start + len(_STOCK) : text.rfind("}") + 1] if start >= 0 else text
    parsed = json.loads(line)
    return _of_line(parsed if "r" in parsed else {"r": parsed}, record.timestamp)


def _of_line(envelope: Mapping[str, Any], record_ms: int) -> Row | None:
    line = envelope["r"]
    header, request, client = line["requestHeader"], line["request"], line["clientInformation"]
    if header["requestApiKeyName"] != _API or line.get("isForwarded"):
        return None
    address, _, port = line["connection"].split("-")[1].rpartition(":")
    error_code = line["response"]["errorCode"]
    return {
        "event_time": _moment(envelope.get("ts", record_ms)),
        "broker_id": envelope.get("broker"),
        "client_instance_id": request["clientInstanceId"],
        "principal": line["principal"],
        "client_id": header["clientId"],
        "client_software_name": client["softwareName"],
        "client_software_version": client["softwareVersion"],
        "client_address": address,
        "client_port": _number(port),
        "listener": line["listener"],
        "accepted": error_code == _NO_ERROR,
        "error_code": error_code,
        "compression": _CODECS.get(request["compressionType"], "unknown"),
        "payload": base64.b64decode(request["metrics"], validate=True),
    }


def _moment(ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=min(max(ms, 0), _YEAR_2100_MS))


def _number(text: str | None) -> int | None:
    return int(text) if text and _NUMBER.fullmatch(text) else None
