"""Azurite on this machine: Azure's own emulator of its blob service, from npm.

It has no `startFrom` of a list, by which delta-rs finds the newest commit. So only the first two
commits of a table can be tried on it: whether a second writer of one is refused.
"""

import base64
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from quotaflow.pipelines.config import WarehouseSection
from quotaflow.pipelines.spark.jars import cache_folder, locked

from .object_server import BUCKET, START_TIMEOUT_S, free_port

_VERSION = "3.35.0"
_INSTALL_TIMEOUT_S = 600


@dataclass(frozen=True, slots=True)
class AzureServer:
    """A running emulator with one account, whose key only this test knows."""

    endpoint: str
    account: str
    password: str

    def section(self, prefix: str, checkpoints: Path) -> WarehouseSection:
        """Conf of a warehouse there; the key is in the environment, named by reference."""
        os.environ["TEST_AZURE_SECRET"] = self.password
        return WarehouseSection(
            path=f"abfss://{BUCKET}@{self.account}.dfs.core.windows.net/{prefix}",
            checkpoints=str(checkpoints),
            store={"endpoint": self.endpoint, "account_key": "env:TEST_AZURE_SECRET"},
        )


@contextmanager
def started(folder: Path) -> Iterator[AzureServer]:
    """An emulator with its data in a folder, and a container."""
    program, port = _program(), free_port()
    account = f"account{secrets.token_hex(4)}"
    password = base64.b64encode(secrets.token_bytes(32)).decode()
    command = [str(program), "--blobHost", "127.0.0.1", "--blobPort", str(port), "--silent"]
    command += ["--location", str(folder), "--skipApiVersionCheck", "--disableTelemetry"]
    environment = os.environ | {"AZURITE_ACCOUNTS": f"{account}:{password}"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as server:
        try:
            running = AzureServer(f"http://127.0.0.1:{port}", account, password)
            _make_container(running)
            yield running
        finally:
            server.terminate()


def _program() -> Path:
    """Azurite, installed once for each user."""
    folder = cache_folder() / "azurite" / _VERSION
    program = folder / "node_modules" / ".bin" / "azurite-blob"
    with locked(folder):
        if not program.exists():
            npm = shutil.which("npm")
            assert npm, "this test installs Azurite: it needs npm"
            command = [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
            subprocess.run(
                [*command, "--prefix", str(folder), f"azurite@{_VERSION}"],
                check=True,
                timeout=_INSTALL_TIMEOUT_S,
            )
    return program


def _make_container(server: AzureServer) -> None:
    files = server.section("any", Path("unused")).object_store().filesystem()
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            files.create_dir(BUCKET)
            break
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
