"""What it costs to keep bodies: CPU time and bytes a line, with and without, of each API of groups.

`python bench/bodies.py [--json] [--lines N]`. Lines of a real broker, each with a member and a
number of its own, through one parser and into Parquet as a task writes it, on one core. One run
keeps the bodies of the API, the other names it in `ingest.without_body`; the best of three turns.
"""

import argparse
import io
import json
import random
import re
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from quotaflow.pipelines.config import IngestSection
from quotaflow.udfs.facts.requests import RequestLog, RequestLogReader
from quotaflow.udfs.otlp.codecs import Limits
from quotaflow.udfs.request_log.records import RECORDS

LINES = Path(__file__).parents[1] / "tests" / "golden" / "lines" / "groups.jsonl"
MEMBERS, TURNS = 200, 3
NOW = datetime(2026, 11, 26, 23, tzinfo=UTC)
_MEMBER = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|AQxd-potTWSXWAPPbnw4bQ")
STREAMS_API = "STREAMS_GROUP_HEARTBEAT"
# No client of ours speaks KIP-1071: its heartbeat in the shape of Kafka's schema.
STREAMS = {
    "request": {
        "groupId": "g-streams", "memberId": "45b17f05-b95f-4cd1-be75-3a46feb6f3c3",
        "memberEpoch": 3, "endpointInformationEpoch": 0, "instanceId": None, "rackId": None,
        "rebalanceTimeoutMs": -1, "topology": None, "activeTasks": None, "standbyTasks": None,
        "warmupTasks": None, "processId": None, "userEndpoint": None, "clientTags": None,
        "taskOffsets": None, "taskEndOffsets": None, "shutdownApplication": False,
    },
    "response": {
        "throttleTimeMs": 0, "errorCode": 0, "errorMessage": None,
        "memberId": "45b17f05-b95f-4cd1-be75-3a46feb6f3c3", "memberEpoch": 3,
        "heartbeatIntervalMs": 5000, "acceptableRecoveryLag": 0, "taskOffsetIntervalMs": 0,
        "status": None, "activeTasks": None, "standbyTasks": None, "warmupTasks": None,
        "endpointInformationEpoch": 0, "partitionsByUserEndpoint": None,
    },
}  # fmt: skip


def lines_by_api() -> dict[str, list[str]]:
    """The lines of each API."""
    lines: dict[str, list[str]] = {}
    for text in LINES.read_text(encoding="utf-8").splitlines():
        header = json.loads(text)["r"]["requestHeader"]
        lines.setdefault(header["requestApiKeyName"], []).append(text)
    whole = json.loads(lines["HEARTBEAT"][0])
    named = {"requestApiKey": 88, "requestApiVersion": 0, "requestApiKeyName": STREAMS_API}
    whole["r"] |= STREAMS | {"requestHeader": whole["r"]["requestHeader"] | named}
    return lines | {STREAMS_API: [json.dumps(whole, separators=(",", ":"))]}


def records(texts: list[str], count: int) -> pa.RecordBatch:
    """The lines again and again, each with another number and one of the members."""
    draw = random.Random(7)
    members = [str(UUID(int=draw.getrandbits(128))) for _ in range(MEMBERS)]
    values = []
    for number in range(count):
        text = _MEMBER.sub(draw.choice(members), texts[number % len(texts)])
        values.append(re.sub(r'(correlationId|[eE]poch)":\d+', rf'\1":{number}', text).encode())
    given = {
        "value": pa.array(values, pa.binary()),
        "topic": pa.array(["logs"] * count),
        "partition": pa.array([0] * count, pa.int32()),
        "offset": pa.array(range(count), pa.int64()),
        "timestamp": pa.array([NOW] * count, pa.timestamp("us", "UTC")),
    }
    arrays = [given.get(f.name, pa.nulls(count, f.type)).cast(f.type) for f in RECORDS]
    return pa.RecordBatch.from_arrays(arrays, schema=RECORDS)


def read(reader: RequestLogReader, batch: pa.RecordBatch) -> tuple[float, int]:
    """CPU seconds, and bytes of Parquet."""
    began_s = time.process_time()
    rows = reader.read(batch, NOW).tables["requests"]
    sink = io.BytesIO()
    pq.write_table(rows, sink, compression="snappy", write_statistics=False)
    return time.process_time() - began_s, sink.tell()


def cost(api: str, texts: list[str], count: int) -> tuple[float, float, float, float]:
    """CPU us and bytes per line, with bodies and without."""
    batch = records(texts, count)
    figures = []
    readers = [
        RequestLog("c", IngestSection(without_body=without).line_options, Limits(), None).open()
        for without in ([], [api])
    ]
    for reader in readers:
        runs = [read(reader, batch) for _ in range(TURNS + 1)][1:]
        took_s, size = min(runs)
        figures += [took_s / count * 1e6, size / count]
    return figures[0], figures[2], figures[1], figures[3]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    parser.add_argument("--lines", type=int, default=32_000, help="lines per run")
    options = parser.parse_args()
    costs = {api: cost(api, texts, options.lines) for api, texts in lines_by_api().items()}
    if options.json:
        json.dump(costs, sys.stdout, indent=2)
        return
    table = Table("API", "CPU us", "without", "bytes", "without")
    for api, (us, us_without, size, size_without) in costs.items():
        table.add_row(api, f"{us:.1f}", f"{us_without:.1f}", f"{size:.0f}", f"{size_without:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
