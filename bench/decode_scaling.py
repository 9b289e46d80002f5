"""How decoding grows: with ten times the clients, and with the size of a payload.

`python bench/decode_scaling.py [--json | --profile]`. Time: CPU seconds of one core that
`decode_pushes` takes for every push, the best of three passes. Memory: the largest batch of rows
returned, and the most memory of Arrow beyond its input, in a process of its own for each
size of payload.
"""

import argparse
import cProfile
import json
import pstats
import subprocess
import sys
import time
from collections.abc import Iterator

import pyarrow as pa
from payloads import one_resource
from rich.console import Console
from rich.table import Table

from quotaflow.schemas.tables.telemetry import TELEMETRY_PUSHES
from quotaflow.udfs.otlp import decode
from quotaflow.udfs.otlp.codecs import Limits

ROUNDS = 3
PUSHES_EACH = 4
CLIENTS = (200, 2_000)
ROWS_PER_BATCH = 1_000
MIB = 1 << 20
TOTAL_BYTES = 64 * MIB
SIZES = (2_000, 20_000, 200_000, 1_000_000)
_POINTS_IN_13_KB = one_resource(0, 0)


def as_batches(payloads: list[bytes]) -> list[pa.RecordBatch]:
    """Rows of telemetry_pushes as Spark passes them to a worker."""
    schema = TELEMETRY_PUSHES.arrow
    rows = [{"payload": data, "compression": "none"} for data in payloads]
    return pa.Table.from_pylist(rows, schema=schema).to_batches(max_chunksize=ROWS_PER_BATCH)


def decoded(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The decoding query's own step."""
    return decode.decode_pushes(Limits())(iter(batches))


def of_clients(clients: int) -> list[pa.RecordBatch]:
    """Some pushes of `clients` clients, each with its own attributes."""
    return as_batches(
        [one_resource(client, push) for push in range(PUSHES_EACH) for client in range(clients)]
    )


def seconds(batches: list[pa.RecordBatch]) -> float:
    """CPU seconds to decode them."""
    took = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for _batch in decoded(batches):
            pass
        took.append(time.process_time() - began)
    return min(took)


def sized(size: int) -> list[bytes]:
    """Payloads of about this size, together TOTAL_BYTES: repeated fields may be concatenated."""
    whole = size // len(_POINTS_IN_13_KB)
    if not whole:
        return [_a_part(size)] * (TOTAL_BYTES // size)
    return [
        b"".join(one_resource(n * whole + part, n) for part in range(whole))
        for n in range(TOTAL_BYTES // size)
    ]


def _a_part(size: int) -> bytes:
    from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData  # noqa: PLC0415

    message = MetricsData.FromString(_POINTS_IN_13_KB)
    metrics = message.resource_metrics[0].scope_metrics[0].metrics
    del metrics[len(metrics) * size // len(_POINTS_IN_13_KB) :]
    return message.SerializeToString()


def memory(size: int) -> dict[str, float]:
    """The memory of one pass over payloads of this size."""
    batches = as_batches(sized(size))
    before, largest, points = pa.total_allocated_bytes(), 0, 0
    most = before
    for batch in decoded(batches):
        largest = max(largest, batch.nbytes)
        points += batch.num_rows
        most = max(most, pa.total_allocated_bytes())
    return {
        "payload_kb": size / 1_000,
        "points": points,
        "largest_batch_mib": round(largest / MIB, 1),
        "held_mib": round((most - before) / MIB, 1),
    }


def _in_a_process(size: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--memory-of", str(size)]
    output: dict[str, float] = json.loads(subprocess.check_output(command))
    return output


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--profile", action="store_true", help="where the time goes, instead")
    parser.add_argument("--memory-of", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory_of:
        print(json.dumps(memory(options.memory_of)))
        return
    if options.profile:
        profile, batches = cProfile.Profile(), of_clients(CLIENTS[1])
        profile.runcall(seconds, batches)
        pstats.Stats(profile).strip_dirs().sort_stats("tottime").print_stats(20)
        return
    few, many = (seconds(of_clients(clients)) for clients in CLIENTS)
    sizes = [_in_a_process(size) for size in SIZES]
    if options.json:
        print(json.dumps({"seconds": [few, many], "ratio": many / few, "sizes": sizes}))
        return
    console = Console()
    console.print(
        f"{CLIENTS[1]:,} clients took {many / few:.1f} times the {few:.2f} s of {CLIENTS[0]:,} "
        "(10 times the points; at most 11)"
    )
    table = Table("payload", "points", "largest batch", "held at once beyond the input")
    for row in sizes:
        table.add_row(
            f"{row['payload_kb']:,.0f} kB",
            f"{row['points']:,}",
            f"{row['largest_batch_mib']} MiB",
            f"{row['held_mib']} MiB",
        )
    console.print(table)


if __name__ == "__main__":
    main()
