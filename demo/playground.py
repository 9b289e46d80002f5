"""After the story: clients work, jobs run and pages are served until Ctrl-C."""

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from quotaflow.demo import traffic_clients
from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.ports import LOOPBACK
from quotaflow.demo.traffic_report import ClientReport
from quotaflow.demo.traffic_stage import Stage
from quotaflow.pipelines import interrupts

_EVERY = "10s"
_PORT = 9_465
"""As `quotaflow serve` has it."""

_DURATION_S = 7 * 86_400.0
_RECORDS_PER_S, _DAVE_RECORDS_PER_S, _RECORD_BYTES = 10, 40, 1_000
"""dave's records are more than his quota lets through."""

_LOOK_EVERY_S = 0.2
_STOP_TIMEOUT_S = 5.0

Say = Callable[[str], None]


def play(cluster: LocalCluster, seed: int, conf_file: Path, say: Say) -> None:
    """Keep all at work until Ctrl-C, and say what ends before it."""
    folder, port = conf_file.parent, _free_port()
    commands = {"run": ["--every", _EVERY], "serve": ["--port", str(port)]}
    with interrupts.noted() as is_interrupted, ExitStack() as stack:
        clients = stack.enter_context(_clients(Stage(cluster, seed, _DURATION_S)))
        processes = {
            name: stack.enter_context(_command(name, arguments, conf_file))
            for name, arguments in commands.items()
        }
        say(
            f"brokers  {cluster.bootstrap_servers}; logins: {cluster.folder}/USER.properties\n"
            f"jobs     quotaflow run --every {_EVERY}; output: {folder}/run.log\n"
            f"pages    http://{LOOPBACK}:{port}/\n"
            "Ctrl-C ends all of it."
        )
        ended = set[str]()
        while not is_interrupted():
            for name, process in processes.items():
                if process.poll() is not None and name not in ended:
                    say(f"quotaflow {name} ended by itself: see {folder}/{name}.log")
                    ended.add(name)
            for name, client in clients.items():
                if client.done() and name not in ended:
                    say(f"{name} ended by itself: {client.exception()}")
                    ended.add(name)
            time.sleep(_LOOK_EVERY_S)


def _free_port() -> int:
    """The usual port of pages, or a free one if that is taken."""
    for port in (_PORT, 0):
        with socket.socket() as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise AssertionError("port 0 is any free one")


@contextmanager
def _command(
    name: str, arguments: list[str], conf_file: Path
) -> Iterator["subprocess.Popen[bytes]"]:
    """A command of quotaflow in the background; it does not outlive the block."""
    place = ["--conf", str(conf_file)]
    with (conf_file.parent / f"{name}.log").open("wb") as output:
        # A session of its own: Ctrl-C reaches the demo alone, which ends all in order.
        process = subprocess.Popen(
            [sys.executable, "-m", "quotaflow.pipelines", name, *arguments, *place],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def _clients(stage: Stage) -> Iterator[dict[str, Future[ClientReport]]]:
    """alice and heidi, who are well, and dave, who is past his quota."""
    started: dict[str, Future[ClientReport]] = {}

    def start(work: Callable[..., ClientReport], user: str, client_id: str, **share: Any) -> None:
        started[client_id] = pool.submit(work, stage, user, client_id, **share)

    with ThreadPoolExecutor(3, "clients") as pool:
        for user, client_id, topic, per_s in (
            ("alice", "rdk-orders-alice", "orders", _RECORDS_PER_S),
            ("dave", "rdk-exports-dave", "exports", _DAVE_RECORDS_PER_S),
        ):
            share = {"records": round(per_s * stage.duration_s), "bytes_each": _RECORD_BYTES}
            start(traffic_clients.steady, user, client_id, topic=topic, **share)
        reader = {"records": sys.maxsize, "rack": "", "group": "heidi-orders"}
        start(traffic_clients.consume, "heidi", "rdk-orders-heidi", topic="orders", **reader)
        try:
            yield started
        finally:
            stage.stop.set()
