"""A Collector's records give the points of the receiver's records that it read."""

import base64
import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from quotaflow.schemas.tables.declared import CLIENT_METRICS
from quotaflow.udfs.facts import telemetry_pushes
from quotaflow.udfs.facts.receiver import PushLog, ReadPushes
from quotaflow.udfs.otlp import decode
from quotaflow.udfs.otlp.codecs import Limits
from quotaflow.udfs.rules.pseudonym import Pseudonyms

from ...cases import cases
from ...record_batches import RECORD_TIME
from ...record_batches import record_batch as batch_of

OF_RECORD = ("record_time", "payload_sha256", "resource")


def records(golden: Path, name: str) -> pa.RecordBatch:
    lines = (golden / "collector" / f"{name}.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    headers = [
        {key: base64.b64decode(value).decode() for key, value in row["headers"].items()}
        for row in rows
    ]
    return batch_of([base64.b64decode(row["value"]) for row in rows], headers=headers)


def pushed(rows: pa.RecordBatch, unopened: ReadPushes, hidden: Pseudonyms | None) -> pa.Table:
    log = PushLog("cluster", unopened, 1 << 20, Limits(), hidden)
    return log.open().read(rows, RECORD_TIME).tables["telemetry_pushes"]


def points(
    rows: pa.RecordBatch, unopened: ReadPushes, hidden: Pseudonyms | None = None
) -> list[dict[str, Any]]:
    batches = pushed(rows, unopened, hidden).combine_chunks().to_batches()
    decoded = decode.decode_pushes(Limits())(iter(batches))
    table = pa.Table.from_batches(decoded, CLIENT_METRICS.arrow)
    plain = table.drop_columns(list(OF_RECORD)).to_pylist()
    tags = table["resource"].to_pylist()
    return sorted(
        ({**row, "resource": sorted(each)} for row, each in zip(plain, tags, strict=True)), key=repr
    )


@cases("hidden", ("plain", None), ("pseudonyms", Pseudonyms(b"k" * 32, "k1")))
def test_a_real_collector_gives_the_receivers_points(
    golden: Path, hidden: Pseudonyms | None
) -> None:
    received = points(records(golden, "receiver"), telemetry_pushes.from_receiver, hidden)
    collected = points(records(golden, "otlp_metrics"), telemetry_pushes.from_collector, hidden)
    assert len(received) > 100
    assert collected == received
    assert {row["principal"] for row in collected} > {"User:alice", "User:bob"}


def test_no_payload_of_a_collector_names_a_client_that_is_hidden(golden: Path) -> None:
    hidden = Pseudonyms(b"k" * 32, "k1")
    stored = pushed(records(golden, "otlp_metrics"), telemetry_pushes.from_collector, hidden)
    (payload,) = stored["payload"].to_pylist()
    for name in (b"rdk-alice", b"rdk-tx", "rdk-reader-é".encode()):
        assert name not in payload.replace(b"transactional_id", b"")
