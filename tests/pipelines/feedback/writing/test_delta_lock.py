"""Only one process holds the lock of a cluster, and not for ever."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.errors import LockedError
from quotaflow.pipelines.feedback.writing import delta_lock
from quotaflow.pipelines.warehouse.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = datetime.now(UTC)


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    folder: Path = tmp_path_factory.mktemp("locks")
    return Warehouse(config.WarehouseSection(path=str(folder)))


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as entered:
        yield entered


@pytest.mark.faults
@pytest.mark.spark
def test_of_two_one_has_it_until_it_lets_go_or_its_time_is_over(
    spark: "SparkSession", warehouse: Warehouse, stack: ExitStack
) -> None:
    with delta_lock.acquired(spark, warehouse, "c1", "me", NOW):
        with (
            pytest.raises(LockedError, match="me writes to cluster c1 until"),
            delta_lock.acquired(spark, warehouse, "c1", "other", NOW),
        ):
            pass
        stack.enter_context(delta_lock.acquired(spark, warehouse, "c2", "other", NOW))
        later = NOW + delta_lock.LOCK_TTL
        with delta_lock.acquired(spark, warehouse, "c1", "third", later):
            pass
    with delta_lock.acquired(spark, warehouse, "c1", "fourth", NOW + timedelta(seconds=1)):
        pass


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (timedelta(minutes=49), None),
        (timedelta(minutes=51), "ends soon: run it again for what is left"),
    ],
)
def test_who_holds_it_begins_nothing_shortly_before_its_end(
    after: timedelta, expected: str | None
) -> None:
    reason = delta_lock.expiry_reason(NOW, NOW + after)
    assert reason is None if expected is None else expected in str(reason)


@pytest.mark.spark
@pytest.mark.faults
def test_of_many_at_once_one_has_it(spark: "SparkSession", warehouse: Warehouse) -> None:
    def taken(number: int) -> ExitStack | None:
        entered = ExitStack()
        try:
            entered.enter_context(delta_lock.acquired(spark, warehouse, "c3", f"run {number}", NOW))
        except LockedError:
            return None
        return entered

    with ThreadPoolExecutor(4) as pool:
        holders = [entered for entered in pool.map(taken, range(4)) if entered is not None]
    assert len(holders) == 1
    holders[0].close()
