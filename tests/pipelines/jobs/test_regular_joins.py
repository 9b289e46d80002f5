"""While jobs run, small files of facts are joined; what fails is said and tried again."""

from datetime import timedelta

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.errors import JobError
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.jobs.regular_joins import RegularJoins
from quotaflow.pipelines.warehouse.small_files import MANY_FILES, SmallFiles
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...cases import cases
from ...delta_tables import NOON, Fill


def joins(warehouse: Warehouse, messages: list[str], *jobs: str) -> RegularJoins:
    conf = config.Conf(warehouse=warehouse.conf)
    return RegularJoins(conf, warehouse, [JOBS[name] for name in jobs], messages.append)


def test_many_files_become_one_when_due_and_few_wait(warehouse: Warehouse, fill: Fill) -> None:
    for name, number in (("requests", MANY_FILES), ("telemetry_pushes", MANY_FILES - 1)):
        for minute in range(number):
            fill(name, [{"cluster_id": "c", "event_time": NOON + timedelta(minutes=minute)}])
    for name in ("quarantine", "telemetry_subscriptions"):
        fill(name, [{"cluster_id": "c", "event_time": NOON, "record_time": NOON}])
    messages: list[str] = []
    regular = joins(warehouse, messages, "ingest_request_log")
    regular.begin_if_due()
    assert len(warehouse.place.open("requests").file_uris()) == MANY_FILES, "not due yet"
    regular.due_at = 0
    regular.begin_if_due()
    regular._worker.shutdown()
    assert len(warehouse.place.open("requests").file_uris()) == 1
    assert len(warehouse.place.open("telemetry_pushes").file_uris()) == MANY_FILES - 1
    assert messages == []


def test_a_table_that_fails_keeps_no_other_from_it(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def fail(small: SmallFiles, *_: object) -> int:
        tried.append(small.table.name)
        raise JobError("disk full")

    monkeypatch.setattr(SmallFiles, "join", fail)
    messages: list[str] = []
    joins(warehouse, messages, "ingest_request_log").join()
    assert tried == ["quarantine", "requests", "telemetry_pushes", "telemetry_subscriptions"]
    assert messages == [f"small files of {name} stay: disk full" for name in tried]


@cases(
    ("settings", "expected"),
    ("a folder", {}, ["client_metrics"]),
    ("points that Spark appends", {"ingest": {"otlp_topic": "otlp"}}, []),
    ("a catalog", {"warehouse": {"catalog_schema": "main.kafka"}}, []),
)
def test_files_of_tables_that_spark_appends_to_are_left(
    settings: dict[str, dict[str, str]], expected: list[str]
) -> None:
    conf = config.Conf.model_validate(settings)
    regular = RegularJoins(conf, Warehouse(conf.warehouse), [JOBS["client_metrics"]], print)
    assert [table.name for table in regular.tables] == expected
