"""A server of S3 that ignores If-None-Match: Moto before it learned that."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ..live import fetched
from .object_server import ObjectServer, free_port, make_bucket

_VERSION = "moto[server]==5.0.13"


@contextmanager
def started() -> Iterator[ObjectServer]:
    """The server, with its data in memory, and a bucket."""
    packages, port = fetched.from_pypi(_VERSION), free_port()
    program = "from moto.server import main; main()"
    command = [sys.executable, "-c", program, "-H", "127.0.0.1", "-p", str(port)]
    environment = os.environ | {"PYTHONPATH": str(packages)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            running = ObjectServer(f"http://127.0.0.1:{port}", "user", "password-of-moto")
            make_bucket(running)
            yield running
        finally:
            server.terminate()
