"""`quotaflow rebuild`: a slice of a result from its facts, and rows whose facts were removed."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from quotaflow.pipelines import config
from quotaflow.pipelines.compute.maintainer import ResultMaintainer
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.maintenance import rebuild
from quotaflow.pipelines.maintenance.rebuild import RebuildRequest
from quotaflow.pipelines.results.declared import result_of
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import PIPELINE_PROGRESS, REQUESTS

from ...cases import cases
from ...command_line import Command
from ...rows import row

MIDNIGHT = datetime(2026, 11, 21, tzinfo=UTC)
HOUR = timedelta(hours=1)
HOURS = range(-30, 30, 6)


def produced(hour: float, size: int = 100, offset: int = 0) -> dict[str, Any]:
    """A PRODUCE request this many hours after midnight."""
    time = MIDNIGHT + hour * HOUR
    partition = {"topic": "t", "partition": 0, "bytes": size, "error_code": 0, "in_response": True}
    values = {"record_time": time, "api": "PRODUCE", "error_code": 0, "source_offset": offset}
    partitions = [partition | {"in_request": True}]
    return row("requests", time, values, cluster_id="c", partitions=partitions)


class Place:
    """A warehouse with requests, and the traffic that streaming computed from them."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.conf = config.load(overrides=[f"warehouse.path={folder}"])
        self.warehouse = Warehouse(self.conf.warehouse)
        self.warehouse.ensure(lambda: spark, [REQUESTS, TABLES["traffic"], PIPELINE_PROGRESS])
        self.batches = 0
        self.messages: list[str] = []

    def stream(self, *requests: dict[str, Any]) -> None:
        rows = pa.Table.from_pylist(list(requests), schema=REQUESTS.arrow)
        batch = Batch(self.warehouse, "job", "q", self.batches)
        frame = self.spark.createDataFrame(rows)
        batch.append(frame, REQUESTS)
        maintainer = ResultMaintainer((result_of("traffic"),), self.conf.results)
        maintainer.write(maintainer.arrivals(frame), batch)
        self.batches += 1

    def rebuild(self, since: float, until: float | None, **others: Any) -> int:
        first, last = (at and MIDNIGHT + at * HOUR for at in (since, until))
        assert first is not None
        # Without an end there would be more slices each day.
        size_s = 43_200 if until else 10**9
        request = RebuildRequest("traffic", first, last, size_s, **others)
        return rebuild.rebuild(self.conf, request, self.messages.append)

    def spoil(self) -> None:
        """Make every row wrong."""
        self.spark.sql(f"UPDATE {self.warehouse.target('traffic')} SET bytes = -1")

    def bytes_by_hour(self) -> dict[float, int]:
        rows = self.warehouse.read(self.spark, "traffic")
        hour = (F.unix_seconds("event_time") - int(MIDNIGHT.timestamp())) / 3_600
        return {row[0]: row[1] for row in rows.select(hour, "bytes").orderBy(hour).collect()}


@pytest.mark.faults
@pytest.mark.spark
def test_a_rebuild_equals_what_streaming_wrote_within_its_span_and_takes_late_facts_in(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = Place(spark, tmp_path)
    late = produced(6) | {"record_time": MIDNIGHT + 9 * HOUR}
    elsewhere = produced(1) | {"cluster_id": "d"}
    place.stream(*(produced(hour) for hour in HOURS), late, elsewhere)
    streamed = place.bytes_by_hour()
    assert streamed == dict.fromkeys(map(float, [*HOURS, 1]), 100)
    place.spoil()
    # Up to the end of the minute of --until.
    assert place.rebuild(-12, 12.001) == 6
    right = {hour: 100 if -12 <= hour <= 12 else -1 for hour in streamed}
    assert place.bytes_by_hour() == right | {6.0: 200}
    progress = place.warehouse.read(spark, "pipeline_progress").where("job = 'rebuild'")
    counted = {(row["cluster_id"], row["outcome"], row["row_count"]) for row in progress.collect()}
    assert counted == {("c", "out", 5), ("d", "out", 1)}


@pytest.mark.spark
@pytest.mark.faults
def test_what_was_computed_from_facts_that_are_gone_stays(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = Place(spark, tmp_path)
    place.stream(*(produced(hour) for hour in HOURS))
    spark.sql(f"DELETE FROM {place.warehouse.target('requests')} WHERE event_time < '2026-11-21'")
    place.warehouse.keep_since(lambda: spark, "requests", MIDNIGHT)
    place.spoil()
    place.messages.clear()
    place.rebuild(-30, None)
    assert [hour for hour, size in place.bytes_by_hour().items() if size == -1] == list(HOURS[:5])
    stay = "traffic: 5 rows of 2026-11-19 18:00 to 2026-11-21 00:00 stay as they are"
    assert any(line.startswith(stay) for line in place.messages)
    place.stream(produced(-6, 7, 99))
    assert place.bytes_by_hour()[-6] == -1, "half of the facts of a bucket are not the bucket"
    progress = place.warehouse.read(spark, "pipeline_progress").where("reason = 'past_retention'")
    assert [row["row_count"] for row in progress.collect()] == [1]
    place.rebuild(-30, None, drop_uncomputable=True)
    assert list(place.bytes_by_hour()) == [-6, *HOURS[5:]]


@cases(
    ("line", "expected"),
    ("a name", "rebuild trafic --from 1d", "did you mean traffic?"),
    ("no result", "rebuild requests --from 1d", "is not rebuilt from facts"),
    ("order", "rebuild traffic --from 1d --until 2d", "not before --until 2d"),
    ("no time", "rebuild traffic --from soon", "--from 'soon'"),
    ("no duration", "rebuild traffic --from 1d --slice 1", "is no duration"),
    ("since when", "rebuild traffic", "--from"),
)
def test_wrong_use_is_told_before_anything_is_started(
    command: Command, line: str, expected: str
) -> None:
    assert expected in command(*line.split(), code=ConfigError.exit_code).err
