"""Points of captured pushes, sent to a real receiver as the job forward_metrics sends them."""

from pathlib import Path

import pyarrow as pa

from quotaflow.pipelines.config.monitoring import Forward
from quotaflow.pipelines.facts import otlp_receiver
from quotaflow.udfs.otlp import requests

from ..udfs.otlp.test_differential import SAMPLES
from ..udfs.otlp.test_requests import points


def points_of(golden: Path, *, time_us: int | None = None) -> pa.Table:
    """Rows of client_metrics; at this time of the clients, if one is given."""
    rows = points(*((golden / f"otlp/{name}.data.bin").read_bytes() for name in SAMPLES))
    if time_us is not None:
        for name, at in (("event_time", time_us), ("start_time", time_us - 1_000_000)):
            place = rows.schema.get_field_index(name)
            times = pa.repeat(at, rows.num_rows).cast(rows.schema.field(name).type)
            rows = rows.set_column(place, name, times)
    return rows


def send(rows: pa.Table, url: str) -> None:
    """Send rows; the receiver must take each point."""
    receiver = otlp_receiver.endpoint(Forward(url=url, max_attempts=10)).open()
    for made in requests.encode(iter(rows.select(list(requests.READ)).to_batches())):
        for request in made.to_pylist():
            assert receiver.send(request["body"], request["points"])[0] == 0
