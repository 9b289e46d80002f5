"""A load of single PRODUCE and FETCH requests at a given rate, and how long each took."""

import multiprocessing
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.queues import Queue

from kafka.record import MemoryRecordsBuilder

from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.raw_connection import RawConnection, string

TOPIC = "observed-load"
_RECORD_BYTES, _FETCH_BYTES = 1_000, 10_000
_PRODUCE, _FETCH = 0, 1
_PRODUCE_VERSION, _FETCH_VERSION = 3, 4
_TIMEOUT_MS = 30_000
_CONNECTIONS = 8
_FORK = multiprocessing.get_context("fork")


def run(cluster: LocalCluster, rate: int, seconds: float) -> dict[str, list[float]]:
    """Seconds that each request took, half of them PRODUCE and half FETCH, `rate` together."""
    requests = {
        "produce": (_PRODUCE, _PRODUCE_VERSION, produce()),
        "fetch": (_FETCH, _FETCH_VERSION, fetch()),
    }
    answers: Queue[tuple[str, list[float]]] = _FORK.Queue()

    def answer(name: str) -> None:
        pace = rate / len(requests) / _CONNECTIONS
        with ThreadPoolExecutor(_CONNECTIONS) as threads:
            loads = [
                threads.submit(paced, cluster, requests[name], pace, seconds)
                for _ in range(_CONNECTIONS)
            ]
            answers.put((name, [took for load in loads for took in load.result()]))

    loads = [_FORK.Process(target=answer, args=(name,)) for name in requests]
    for each in loads:
        each.start()
    took = dict(answers.get(timeout=10 * seconds + _TIMEOUT_MS / 1_000) for _ in loads)
    for each in loads:
        each.join()
    return took


def paced(
    cluster: LocalCluster, request: tuple[int, int, bytes], rate: float, seconds: float
) -> list[float]:
    """Call one after the other at a pace. One that is late does not wait, and none is left out."""
    took = []
    api, version, body = request
    with RawConnection(cluster, "alice", f"load-{api}") as connection:
        start = time.perf_counter()
        for n in range(round(rate * seconds)):
            time.sleep(max(0.0, start + n / rate - time.perf_counter()))
            began = time.perf_counter()
            if began - start > seconds:
                break
            connection.call(api, version, body)
            took.append(time.perf_counter() - began)
    return took


def produce() -> bytes:
    """One record of a kilobyte, acknowledged by the leader."""
    builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=2 * _RECORD_BYTES)
    builder.append(timestamp=None, key=None, value=b"x" * _RECORD_BYTES)
    builder.close()
    records = bytes(builder.buffer())
    head = string(None) + struct.pack(">hi", 1, _TIMEOUT_MS)
    partition = struct.pack(">iii", 1, 0, len(records)) + records
    return head + struct.pack(">i", 1) + string(TOPIC) + partition


def fetch() -> bytes:
    """Ten kilobytes from the beginning, which are there at once."""
    head = struct.pack(">iiiib", -1, 500, 1, _FETCH_BYTES, 0)
    partition = struct.pack(">iiqi", 1, 0, 0, _FETCH_BYTES)
    return head + struct.pack(">i", 1) + string(TOPIC) + partition
