"""Spark that is not of our process: a Connect server, and a standalone cluster with its workers."""

import os
import random
import socket
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

import psutil

from quotaflow.demo.ports import LOOPBACK, free_ports
from quotaflow.pipelines import config
from quotaflow.pipelines.spark import session

from ... import spark_home

_START_S = 600
_DEPLOY = "org.apache.spark.deploy"


@contextmanager
def connect_server(folder: Path, others: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """A Spark Connect server with the settings of our own sessions, and others.

    Yields the environment of its clients: they find no Java, and their clock is of another zone.
    """
    (ports,) = free_ports(1, random.Random())
    own = session.settings(config.SparkSection(driver_memory="3g", conf=spark_home.LONG_LIVED))
    settings = own | {
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": str(ports.client),
        "spark.master": "local[2]",
        **others,
    }
    pairs = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = [_spark("spark-submit"), *pairs, "--class", server, "spark-internal"]
    with _running(command, folder / "connect.log", ports.client):
        nowhere = str(folder / "nowhere")
        yield {
            "SPARK_REMOTE": f"sc://{LOOPBACK}:{ports.client}",
            "JAVA_HOME": nowhere,
            "PATH": nowhere,
            "TZ": "Asia/Kolkata",
        }


@contextmanager
def standalone_cluster(folder: Path, workers: int) -> Iterator[str]:
    """A master and workers of one core each; yields the address of the master."""
    master, *others = free_ports(1 + workers, random.Random())
    address = f"spark://{LOOPBACK}:{master.client}"
    at = [*("--host", LOOPBACK), *("--port", str(master.client)), "--webui-port", "0"]
    with ExitStack() as stack:
        command = [_spark("spark-class"), f"{_DEPLOY}.master.Master", *at]
        stack.enter_context(_running(command, folder / "master.log", master.client))
        for number, ports in enumerate(others):
            log, place = folder / f"worker{number}.log", folder / f"worker{number}"
            own = [*("--host", LOOPBACK), *("--port", str(ports.client)), "--webui-port", "0"]
            size = ["--cores", "1", "--memory", "2g", "--work-dir", str(place)]
            command = [_spark("spark-class"), f"{_DEPLOY}.worker.Worker", *own, *size, address]
            stack.enter_context(_running(command, log, ports.client))
        yield address


def without_quotaflow(folder: Path) -> Path:
    """A Python with every package this one has, but for quotaflow, as on a machine of a cluster."""
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    lib = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    spark = find_spec("pyspark")
    assert spark is not None
    assert spark.origin is not None
    # A plain path: no .pth file in that folder is followed, and quotaflow is such a one.
    (lib / "packages.pth").write_text(f"{Path(spark.origin).parents[1]}\n")
    output = subprocess.run(
        [python, "-c", "import quotaflow.udfs"], capture_output=True, check=False, env=_plain()
    )
    assert output.returncode != 0
    return python


@contextmanager
def _running(command: list[str], log: Path, port: int) -> Iterator[None]:
    environment = _plain() | {"PYSPARK_PYTHON": sys.executable, "SPARK_NO_DAEMONIZE": "1"}
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    try:
        _await(process, log, port)
        yield
    finally:
        ours = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        for each in reversed(ours):
            each.terminate()
        for each in psutil.wait_procs(ours, 20)[1]:
            each.kill()
        process.wait()


def _plain() -> dict[str, str]:
    """The environment without a path of Python that may have quotaflow."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def _await(process: "subprocess.Popen[bytes]", log: Path, port: int) -> None:
    until = time.monotonic() + _START_S
    while True:
        with socket.socket() as probe:
            if probe.connect_ex((LOOPBACK, port)) == 0:
                return
        assert process.poll() is None, log.read_text(encoding="utf-8")
        assert time.monotonic() < until, log.read_text(encoding="utf-8")
        time.sleep(0.2)


def _spark(program: str) -> str:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return str(Path(spec.origin).parent / "bin" / program)
