"""One writer at a time, and who it is."""

import os
import subprocess
from contextlib import AbstractContextManager

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.errors import ConfigError, LockedError
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...own_process import holding

_HOLD = """
import sys
from quotaflow.pipelines import config
from quotaflow.pipelines.terminal import logs
from quotaflow.pipelines.warehouse import warehouse
logs.of_command("run", 20)
sys.argv = ["quotaflow", "run", "--set", "kafka.properties.sasl.password=hunter2"]
with warehouse.Warehouse(config.WarehouseSection(path={path!r})).lock():
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(warehouse: Warehouse) -> AbstractContextManager["subprocess.Popen[str]"]:
    """Another process that holds the lock until it gets a line or is killed."""
    return holding(_HOLD.format(path=str(warehouse.conf.folder)))


def test_a_second_writer_is_told_who_the_first_is(warehouse: Warehouse) -> None:
    with holder(warehouse) as process:
        with pytest.raises(
            LockedError, match=rf"process {process.pid} \(quotaflow run\)"
        ) as raised:
            warehouse.lock().__enter__()
        assert "hunter2" not in str(raised.value)
        assert f"process {process.pid}" in (warehouse.holder() or "")


def test_a_killed_holder_holds_nothing(warehouse: Warehouse) -> None:
    with holder(warehouse) as process:
        process.kill()
        process.wait()
    assert warehouse.holder() is None
    with warehouse.lock():
        assert f"process {os.getpid()}" in (warehouse.holder() or "")


def test_the_lock_is_free_again_after_an_error(warehouse: Warehouse) -> None:
    with pytest.raises(KeyError), warehouse.lock():
        raise KeyError
    assert warehouse.holder() is None
    with warehouse.lock():
        pass


def test_looking_makes_no_folder(warehouse: Warehouse) -> None:
    assert warehouse.holder() is None
    assert not warehouse.conf.folder.exists()


def test_a_user_without_a_name_can_write(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 4711")

    monkeypatch.setattr("getpass.getuser", nameless)
    with warehouse.lock():
        assert f"of uid {os.getuid()}" in (warehouse.holder() or "")


def test_a_place_that_cannot_be_written_is_one_error(warehouse: Warehouse) -> None:
    warehouse.conf.folder.write_text("a file, not a folder")
    with pytest.raises(ConfigError, match="cannot write to"):
        warehouse.lock().__enter__()


def test_a_catalog_needs_no_lock() -> None:
    catalog = Warehouse(config.WarehouseSection(catalog_schema="a.b", checkpoints="/Volumes/x"))
    with catalog.lock(), catalog.lock():
        assert catalog.holder() is None
    assert catalog.target("requests") == "a.b.requests"


def test_a_backtick_in_a_path_stays_within_its_name() -> None:
    target = Warehouse(config.WarehouseSection(path="/data/a`b")).target("requests")
    assert target == "delta.`/data/a``b/requests`"
