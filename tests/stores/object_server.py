"""MinIO on this machine: an S3 server that checks If-None-Match and writes in one step."""

import os
import secrets
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from quotaflow.pipelines.config import WarehouseSection

from ..live import fetched

BUCKET = "warehouse"
_MODULE = "github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c"
START_TIMEOUT_S = 300


@dataclass(frozen=True, slots=True)
class ObjectServer:
    """A running server, and a login that only this test knows."""

    endpoint: str
    user: str
    password: str

    def section(self, prefix: str, checkpoints: Path) -> WarehouseSection:
        """Conf of a warehouse there; secrets are in the environment, named by reference."""
        os.environ["TEST_STORE_SECRET"] = self.password
        return WarehouseSection(
            path=f"s3://{BUCKET}/{prefix}",
            checkpoints=str(checkpoints),
            store={
                "endpoint": self.endpoint,
                "region": "us-east-1",
                "access_key_id": self.user,
                "secret_access_key": "env:TEST_STORE_SECRET",
            },
        )


@contextmanager
def started(folder: Path) -> Iterator[ObjectServer]:
    """A server with its data in a folder, and a bucket."""
    program, port = fetched.from_go(_MODULE), free_port()
    user, password = f"user-{secrets.token_hex(4)}", secrets.token_hex(16)
    environment = os.environ | {"MINIO_ROOT_USER": user, "MINIO_ROOT_PASSWORD": password}
    command = [str(program), "server", "--quiet", "--address", f"127.0.0.1:{port}", str(folder)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as server:
        try:
            running = ObjectServer(f"http://127.0.0.1:{port}", user, password)
            make_bucket(running)
            yield running
        finally:
            server.terminate()


def make_bucket(server: ObjectServer) -> None:
    """Make the bucket, as soon as the server answers."""
    from pyarrow import fs  # noqa: PLC0415

    client = fs.S3FileSystem(
        access_key=server.user,
        secret_key=server.password,
        endpoint_override=server.endpoint.removeprefix("http://"),
        scheme="http",
        allow_bucket_creation=True,
    )
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            client.create_dir(BUCKET)
            break
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def free_port() -> int:
    """A port of this machine that nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])
