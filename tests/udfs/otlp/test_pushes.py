"""The functions Spark maps over batches of pushes, called as Spark calls them."""

import pyarrow as pa

from quotaflow.schemas.tables.declared import CLIENT_METRICS, TELEMETRY_PUSHES
from quotaflow.udfs.otlp import decode
from quotaflow.udfs.otlp.codecs import Limits

from .otlp_made import NOW, gauge, payload, point

LIMITS = Limits()


def pushes(payloads, codecs):
    """Rows of telemetry_pushes as the decoding query selects them."""
    rows = {"payload": payloads, "compression": codecs, "event_time": [NOW] * len(payloads)}
    names = [n for n in TELEMETRY_PUSHES.column_names if n in CLIENT_METRICS.column_names]
    schema = TELEMETRY_PUSHES.arrow
    arrays = {name: pa.nulls(len(payloads), schema.field(name).type) for name in names}
    arrays |= {name: pa.array(values, schema.field(name).type) for name, values in rows.items()}
    arrays["client_instance_id"] = pa.array([f"i{i}" for i in range(len(payloads))])
    arrays["principal"] = pa.array([f"User:{i}" for i in range(len(payloads))])
    return pa.RecordBatch.from_pydict(arrays)


def test_pushes_become_rows_of_client_metrics():
    data = [payload(gauge(point(as_int=i))) for i in range(3)]
    batch = pushes([data[0], b"hello, broker", data[1], data[2]], ["none", "none", "zstd", "none"])
    (rows,) = decode.decode_pushes(LIMITS)(iter([batch]))
    assert rows.schema == CLIENT_METRICS.arrow
    values = [(row["principal"], row["value_int"]) for row in rows.to_pylist()]
    assert values == [("User:0", 0), ("User:3", 2)]


def test_only_columns_of_client_metrics_are_repeated_for_every_point():
    """The payload taken along would make every point as large as its push."""
    taken = []

    class Watched:
        def __init__(self, batch):
            self.batch = batch

        def column(self, name):
            taken.append(name)
            return self.batch.column(name)

    batch = Watched(pushes([payload(gauge(point()))], ["none"]))
    list(decode.decode_pushes(LIMITS)(iter([batch])))
    assert taken.count("payload") == taken.count("compression") == 1


def test_a_point_without_a_time_takes_that_of_its_push():
    batch = pushes([payload(gauge(point(time_unix_nano=0)))], ["none"])
    (rows,) = decode.decode_pushes(LIMITS)(iter([batch]))
    assert rows.column("event_time").to_pylist() == [NOW]


def test_output_batches_are_cut_by_bytes(monkeypatch):
    monkeypatch.setattr(decode, "_BATCH_BYTES", 1_000)
    batch = pushes([payload(*[gauge(point(), name=f"m{i}") for i in range(50)])], ["none"])
    batches = list(decode.decode_pushes(LIMITS)(iter([batch])))
    assert [rows.num_rows > 0 for rows in batches] == [True] * len(batches)
    assert len(batches) > 10
    names = [name for rows in batches for name in rows.column("metric").to_pylist()]
    assert names == [f"m{i}" for i in range(50)]


def test_inspection_adds_the_status_and_lets_other_columns_through():
    data = payload(gauge(point()))
    batch = pa.RecordBatch.from_pydict(
        {
            "offset": [7, 8],
            "compression": ["none", "none"],
            "payload": [data, b"hello, broker"],
            "unreadable_reason": pa.nulls(2, pa.string()),
        }
    )
    (seen,) = decode.inspect_pushes(LIMITS)(iter([batch]))
    assert seen.schema.names == ["offset", "compression", "payload", *decode.STATUS.names]
    assert seen.column("offset").to_pylist() == [7, 8]
    assert seen.column("unreadable_reason").to_pylist() == [None, "not_otlp"]
