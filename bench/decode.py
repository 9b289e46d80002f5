"""How fast payloads become points on one core: quotaflow beside other decoders.

`python bench/decode.py [--rounds N]`. The contenders alternate within one run, and each
reports its best pass over a batch, in points per second of CPU time, so that other load on the
machine counts little.
"""

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import ptars
import pyarrow as pa
from opentelemetry.proto.metrics.v1 import metrics_pb2
from payloads import batches
from rich.console import Console
from rich.table import Table

from quotaflow.udfs.otlp import batch, columns
from quotaflow.udfs.otlp.codecs import Limits

LIMITS = Limits()
BATCH_BYTES = 4 << 20
ROUND_S = 0.3
OURS, GO = "quotaflow: flat columns", "Collector's Go unmarshaler (pdata)"
FULL = ptars.HandlerPool([metrics_pb2.DESCRIPTOR]).get_for_message(
    metrics_pb2.MetricsData.DESCRIPTOR
)
Rates = dict[str, dict[str, float]]


def quotaflow(payloads: list[bytes]) -> int:
    """Payload bytes to every column of client_metrics that a payload holds."""
    decoded = batch.read(payloads, {}, LIMITS)
    return int(columns.points(decoded, np.flatnonzero(decoded.keep)).num_rows)


def upb(payloads: list[bytes]) -> None:
    """protobuf's parse alone, without reading a field."""
    for payload in payloads:
        metrics_pb2.MetricsData.FromString(payload)


def ptars_full(payloads: list[bytes]) -> None:
    """ptars with all of OTLP's descriptor: nested columns, nothing flattened."""
    FULL.array_to_record_batch(pa.array(payloads, pa.binary()))


CONTENDERS: dict[str, Callable[[list[bytes]], Any]] = {
    OURS: quotaflow,
    "ptars, full descriptor: nested": ptars_full,
    "protobuf (upb) parse alone": upb,
}


def rate(decode: Callable[[list[bytes]], Any], payloads: list[bytes], points: int) -> float:
    """Points per second of CPU time in the best pass of a round."""
    best, end = float("inf"), time.process_time() + ROUND_S
    while (start := time.process_time()) < end:
        decode(payloads)
        best = min(best, time.process_time() - start)
    return points / best


def measure(rounds: int) -> Rates:
    """The best rate of every contender on every kind of payload."""
    kinds = batches(BATCH_BYTES)
    points = {kind: quotaflow(payloads) for kind, payloads in kinds.items()}
    rates: Rates = {name: dict.fromkeys(kinds, 0.0) for name in (OURS, *CONTENDERS, GO)}
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        for _ in range(rounds):
            for kind, payloads in kinds.items():
                for name, decode in CONTENDERS.items():
                    measured = rate(decode, payloads, points[kind])
                    rates[name][kind] = max(rates[name][kind], measured)
                if program:
                    rates[GO][kind] = max(rates[GO][kind], rate_of_go(program, payloads))
    if not program:
        del rates[GO]
    return rates


def build(folder: Path) -> Path | None:
    """The built Go program; None without Go or if its modules cannot be downloaded."""
    go, program = shutil.which("go"), folder / "pdata"
    if not go:
        return None
    command = [go, "build", "-o", str(program), "."]
    built = subprocess.run(command, cwd=Path(__file__).parent / "pdata", check=False)
    return program if built.returncode == 0 else None


def rate_of_go(program: Path, payloads: list[bytes]) -> float:
    """Points per second of CPU time of the Go program on one core, its garbage collector's too."""
    file = program.with_suffix(".bin")
    file.write_bytes(b"".join(len(p).to_bytes(4, "big") + p for p in payloads))
    environment = os.environ | {"GOMAXPROCS": "1"}
    command = [str(program), str(file)]
    out = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout
    return float(json.loads(out)[str(file)])


def show(rates: Rates) -> Table:
    """Millions of points per second, and how quotaflow compares."""
    kinds = list(rates[OURS])
    table = Table("M points/s of CPU time (quotaflow is N times as fast)", *kinds)
    for name, row in rates.items():
        cells = [f"{row[k] / 1e6:.2f} ({rates[OURS][k] / row[k]:.2f}x)" for k in kinds]
        table.add_row(name, *cells)
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each contender")
    options = parser.parse_args()
    Console().print(show(measure(options.rounds)))


if __name__ == "__main__":
    main()
