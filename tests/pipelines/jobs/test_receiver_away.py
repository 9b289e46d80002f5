"""A run goes on while the receiver of points does not answer, and its job starts again later."""

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import JobError
from quotaflow.pipelines.jobs import runner
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.warehouse.warehouse import Warehouse

AWAY = "[STREAM_FAILED] quotaflow.pipelines.errors.ReceiverAwayError: the receiver answered 503"
ANOTHER = SimpleNamespace(isActive=True)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


def failed() -> Any:
    return SimpleNamespace(isActive=False, exception=lambda: StreamingQueryException(AWAY))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(runner, "time", made)
    return made


def started(warehouse: Warehouse, lines: list[str]) -> Any:
    """A runner whose jobs start without Spark."""
    environment = SimpleNamespace(conf=Conf(warehouse=warehouse.conf), warehouse=warehouse)
    log = SimpleNamespace(finish=lambda _: 0, record_idle=lambda _: lines.append("idle"))
    made: Any = runner._Runner(environment, lambda line: lines.append(str(line)), log)  # type: ignore[arg-type]
    made._start = lambda *_: ANOTHER
    return made


def test_its_job_waits_and_starts_again(warehouse: Warehouse, clock: Clock) -> None:
    lines: list[str] = []
    made, query = started(warehouse, lines), failed()

    def supervised() -> Any:
        return made._supervised(JOBS["forward_metrics"], query, {})

    assert supervised() is query
    assert len(lines) == 1
    assert lines[0].endswith("the receiver answered 503; its batch is sent again in 60 s")
    clock.now += 59
    assert (supervised(), len(lines)) == (query, 1)
    clock.now += 1
    assert (supervised(), len(lines)) == (ANOTHER, 1)
    assert supervised() is query


def test_the_same_text_of_another_job_is_an_error(warehouse: Warehouse, clock: Clock) -> None:
    clock.now += 1
    with pytest.raises(JobError, match="fetches failed"):
        started(warehouse, [])._supervised(JOBS["fetches"], failed(), {})


def test_a_run_that_failed_is_not_recorded_as_one_without_new_rows(warehouse: Warehouse) -> None:
    lines: list[str] = []
    made, job = started(warehouse, lines), JOBS["forward_metrics"]
    assert (made._finished(job, failed()), lines) == (0, [])
    done: Any = SimpleNamespace(isActive=False, exception=lambda: None)
    assert (made._finished(job, done), lines) == (0, ["idle"])
