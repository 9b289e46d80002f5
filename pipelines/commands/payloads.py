"""One telemetry payload through the pipeline's own decoder."""

from collections.abc import Iterator

import pyarrow as pa

from quotaflow.pipelines.config import PayloadsSection
from quotaflow.schemas.tables.telemetry import TELEMETRY_PUSHES
from quotaflow.udfs.otlp import decode
from quotaflow.udfs.otlp.codecs import Limits, UnreadableError


def points(payload: bytes, codec: str, bounds: PayloadsSection) -> Iterator[pa.RecordBatch]:
    """Its data points, with the columns of client_metrics; what only a push knows is null.

    Raises UnreadableError with the reason the pipeline would quarantine it for.
    """
    columns = {"payload": [payload], "compression": [codec]}
    schema = TELEMETRY_PUSHES.arrow
    push = pa.RecordBatch.from_pydict(
        {name: columns.get(name, [None]) for name in schema.names}, schema=schema
    )
    (opened,) = decode.inspect_pushes(limits(bounds))(iter([push]))
    reason = opened.column("unreadable_reason")[0].as_py()
    if reason is not None:
        raise UnreadableError(reason, opened.column("unreadable_detail")[0].as_py() or "")
    return decode.decode_pushes(limits(bounds))(iter([opened]))


def limits(bounds: PayloadsSection) -> Limits:
    """Conf's bounds on a payload, as the decoder takes them."""
    return Limits(
        decoded_bytes=bounds.max_decoded_bytes,
        ratio=bounds.max_ratio,
        points=bounds.max_points,
        attributes=bounds.max_attributes,
        string_chars=bounds.max_string_chars,
    )
