"""What one task leaves in an instance for the next: nothing but macros."""

import os
from collections.abc import Callable
from contextlib import suppress

import duckdb
import pyarrow as pa
import pytest

from quotaflow.udfs.engine import instances
from quotaflow.udfs.engine.instances import borrowed

NAMES = "SELECT view_name FROM duckdb_views() WHERE NOT internal"
MEMORY_MB = 64
"""Of these tests alone, so that other tests' instances are not theirs."""


@pytest.fixture(autouse=True)
def _none_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances, "_idle", {})


def test_the_next_task_has_the_same_instance_and_sees_nothing_of_the_last() -> None:
    with borrowed(MEMORY_MB, 1) as first, first.connected() as connection:
        first.add_macros("CREATE MACRO twice(x) AS 2 * x")
        connection.register("rows of a", pa.table({"n": [1]}))
        connection.execute('CREATE TEMP VIEW a AS SELECT * FROM "rows of a"')
        connection.execute("CREATE TEMP TABLE b AS SELECT range AS n FROM range(100_000)")
        connection.execute("SET TimeZone = 'Asia/Tokyo'")
    with borrowed(MEMORY_MB, 1) as second, second.connected() as connection:
        assert second is first
        second.add_macros("CREATE MACRO twice(x) AS 2 * x")
        assert connection.execute("SELECT twice(3)").fetchall() == [(6,)]
        assert connection.execute(NAMES).fetchall() == []
        assert connection.execute("SELECT * FROM duckdb_tables()").fetchall() == []
        used = "SELECT sum(memory_usage_bytes) FROM duckdb_memory()"
        assert connection.execute(used).fetchall() == [(0,)]
        zone = "SELECT current_setting('TimeZone')"
        assert connection.execute(zone).fetchall() != [("Asia/Tokyo",)]


def test_who_borrows_meanwhile_has_another_instance() -> None:
    with borrowed(MEMORY_MB, 1) as outer, borrowed(MEMORY_MB, 1) as inner:
        assert inner is not outer
    with borrowed(MEMORY_MB, 2) as more_threads, borrowed(MEMORY_MB, 1) as again:
        assert again is inner
        assert more_threads is not outer


def test_an_instance_that_spilled_ends_with_its_files() -> None:
    with borrowed(MEMORY_MB, 1) as first, first.connected() as connection:
        connection.execute("CREATE TEMP TABLE t AS SELECT range AS n FROM range(20_000_000)")
        assert any(first.scratch.iterdir())
    assert not first.scratch.exists()
    with borrowed(MEMORY_MB, 1) as second:
        assert second is not first


def failing() -> None:
    with borrowed(MEMORY_MB, 1) as instance, instance.connected() as connection:
        connection.execute("SELECT no_such_column")


def half_made() -> None:
    with borrowed(MEMORY_MB, 1) as instance, pytest.raises(duckdb.Error):
        instance.add_macros("CREATE MACRO one() AS 1; CREATE MACRO one() AS 2")


def used_up() -> None:
    with borrowed(MEMORY_MB, 1) as instance:
        instance.uses = instances._MAX_USES


@pytest.mark.parametrize("use", [failing, half_made, used_up])
def test_an_instance_ends_after(use: Callable[[], None]) -> None:
    with suppress(duckdb.Error):
        use()
    assert instances._idle == {}


def test_a_forked_process_uses_no_instance_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    with borrowed(MEMORY_MB, 1) as first:
        pass
    monkeypatch.setattr(os, "getpid", lambda: 1)
    with borrowed(MEMORY_MB, 1) as second:
        assert second is not first
