"""What the parser returns: the columns of a line, and the codes of its outcome."""

import pyarrow as pa

from quotaflow.schemas.table import BOOLEAN, INT, STRING, TIMESTAMP
from quotaflow.schemas.tables.declared import REQUESTS

EMPTY_LINE, LINE_TOO_LONG = "empty_line", "line_too_long"
NOT_JSON, NOT_A_REQUEST_LINE = "not_json", "not_a_request_line"
OLD_TEXT_FORMAT, WRAPPED_LINE = "old_text_format", "wrapped_line"
UNEXPECTED_SHAPE, NO_TIME, READER_FAILED = "unexpected_shape", "no_time", "reader_failed"
LINES_LOST = "lines_lost"
REASONS = (
    EMPTY_LINE,
    LINE_TOO_LONG,
    NOT_JSON,
    NOT_A_REQUEST_LINE,
    OLD_TEXT_FORMAT,
    WRAPPED_LINE,
    UNEXPECTED_SHAPE,
    NO_TIME,
    READER_FAILED,
    LINES_LOST,
)
"""Why a record is no request line. `lines_lost`: a broker's own record of lost lines."""
LEFT_OUT = ("forwarded_copy", "raft", "own_shipper", "sampled")
"""Why a request line is left out on purpose."""
CONNECTION_AND_NUMBER = ("connection_id", "correlation_id", "api")
OF_ONE_REQUEST = (
    *CONNECTION_AND_NUMBER,
    *("broker_id", "event_time", "total_time_ms", "local_time_ms"),
)
"""What two lines of one request have alike; without the first three it cannot be known again. A
client chooses its correlation ids, and may repeat them: time and durations are the broker's."""
DUPLICATE = "duplicate"
"""Why a row is left out whose line came before: a shipper sent it again."""
IMPLAUSIBLE_TIME, AMBIGUOUS_TIME, UNREADABLE_NUMBERS, UNKNOWN_BROKER = DOUBTFUL = (
    "implausible_time",
    "ambiguous_time",
    "unreadable_numbers",
    "unknown_broker",
)
"""What was not taken from a line that is kept: its time; numbers, which are null; the broker, where
a name has a number and no broker is known by it. Where clocks went back, an ambiguous time may be
another."""

ENVELOPE, BARE, STOCK_LAYOUT, WRAPPED = FORMS = ("envelope", "bare", "stock layout", "wrapped")
"""How a line arrives: our envelope, a bare line, Kafka's own layout, or in another wrapper. The
last may have its name, such as `wrapped (docker)`."""

SOURCE = ("source_topic", "source_partition", "source_offset", "source_line", "record_time")
_OUTCOME = [
    pa.field("reason", STRING),
    pa.field("detail", STRING),
    pa.field("left_out", STRING),
    *(pa.field(name, BOOLEAN) for name in DOUBTFUL),
    pa.field("form", STRING),
    pa.field("stated_time", TIMESTAMP),
    pa.field("other_time", TIMESTAMP),
    pa.field("has_bodies", BOOLEAN),
]
_OF_LINE = [f for f in REQUESTS.arrow if f.name not in ("cluster_id", *SOURCE)]

READ = pa.schema([pa.field("line", INT), *_OF_LINE, *_OUTCOME])
"""A line that was read: `line` is the place of its record in the batch."""

LINES = pa.schema([*_OF_LINE, *(REQUESTS.arrow.field(name) for name in SOURCE), *_OUTCOME])
"""A record as a line: the columns of `requests` but the cluster; why it is unreadable (`reason`,
`detail`); why it is left out; what was doubtful; one of FORMS; the time that it states, and the
other instant of this time if clocks went back; whether it has request and response. Rows of
`requests` have neither reason nor left_out."""

TELEMETRY = pa.schema(
    [
        pa.field("line", INT),
        pa.field("api_name", STRING),
        pa.field("request_instance_id", STRING),
        pa.field("metrics", STRING),
        pa.field("response_instance_id", STRING),
        pa.field("request_subscription_id", INT),
        pa.field("terminating", BOOLEAN),
        pa.field("compression_type", INT),
        pa.field("response_subscription_id", INT),
        pa.field("push_interval_ms", INT),
        pa.field("telemetry_max_bytes", INT),
        pa.field("delta_temporality", BOOLEAN),
        pa.field("accepted_compression_types", pa.list_(STRING)),
        pa.field("requested_metrics", pa.list_(STRING)),
    ]
)
"""What lines of telemetry APIs (KIP-714) say beyond `requests`."""
