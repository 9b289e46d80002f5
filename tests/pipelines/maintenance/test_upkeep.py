"""`quotaflow upkeep`: removes and counts old rows, keeps needed ones, and does nothing twice."""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from quotaflow.pipelines import config
from quotaflow.pipelines.config import UpkeepSection
from quotaflow.pipelines.config.upkeep import RETENTION_DAYS
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.maintenance import backfill, retention, upkeep
from quotaflow.pipelines.maintenance.upkeep import UpkeepOutcome
from quotaflow.pipelines.streaming import checkpoints, identity
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import ANSWERS, TABLES

from ...cases import cases
from ...command_line import Command

# Later than all commits of a test: files and versions have this machine's time.
NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) + timedelta(days=1)
DAYS_AGO = [40, 31, 30, 29, 1, 0]


def checkpoint(folder: Path, version: int, *, is_started_with: bool = False) -> None:
    """Write the checkpoint of a query that has read all versions of a table before one."""
    offset = {"reservoirId": "t", "reservoirVersion": version, "index": -1}
    offset |= {"isStartingVersion": is_started_with}
    for name, text in {
        "metadata": json.dumps({"id": "q"}),
        "offsets/0": "v1\n{}\n{}",
        "offsets/1": f"v1\n{{}}\n{json.dumps(offset)}",
        "offsets/2": "v1\n{}\n{}",
        "commits/0": "v1\n{}",
        "commits/1": "v1\n{}",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def test_how_far_a_query_has_read_is_what_it_committed(tmp_path: Path) -> None:
    assert checkpoints.committed(tmp_path) is None
    checkpoint(tmp_path, 7, is_started_with=True)
    done = checkpoints.committed(tmp_path)
    assert done is not None
    assert done.delta == checkpoints.DeltaOffset("t", 7, is_whole=False)
    assert backfill.next_offsets(tmp_path, "logs") == {}
    (tmp_path / "offsets" / "1").write_text('v1\n{}\n{"logs":{"0":12,"10":3}}', encoding="utf-8")
    assert backfill.next_offsets(tmp_path, "logs") == {0: 12, 10: 3}
    assert backfill.next_offsets(tmp_path, "others") == {}


def test_every_table_that_grows_has_a_retention() -> None:
    replaced = {"fetch_sessions", "client_subscriptions", "feedback_locks", "answer_state"}
    assert set(TABLES) - set(RETENTION_DAYS) == {*ANSWERS, *replaced}


@cases(
    ("override", "expected"),
    ("a name", "retention_days={request: 3}", "did you mean requests?"),
    ("nothing kept", "retention_days={requests: 0}", "greater than 0"),
    ("held", "retention_days={config_changes: 59}", "for 60 days at least"),
    ("state", "retention_days={fetch_sessions: 9}", "only the current state"),
    ("readers disturbed", "vacuum_after_h=24", "greater than or equal to 168"),
    ("windows of the last day", "minutes_after_days=0", "greater than 0"),
    ("hours before minutes", "minutes_after_days=8", "is 8 and hours_after_days 7"),
)
def test_a_retention_that_would_harm_is_refused(override: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        config.load(overrides=[f"upkeep.{override}"])


def test_conf_changes_one_table_and_leaves_the_others() -> None:
    conf = config.load(overrides=["upkeep.retention_days={requests: null, traffic: 7}"]).upkeep
    assert [conf.days(name) for name in ("requests", "traffic", "fetches")] == [None, 7, 30]


@cases(
    ("event_days", "record_days", "is_old"),
    ("both are old", 31, 31, True),
    ("of today", 0, 0, False),
    ("a record without a time", 31, None, True),
    ("a clock that is behind: today's record", 5_000, 0, False),
    ("shipped late", 40, 29, False),
    ("a clock that was ahead", -5_000, 33, True),
    ("ahead by a day", -1, 30, False),
)
def test_a_row_of_a_wrong_clock_goes_with_its_record(
    event_days: int, record_days: int | None, is_old: bool
) -> None:
    before = retention.cutoff(NOON, 30)
    with duckdb.connect() as connection:
        event, record = (
            None if days is None else (NOON - timedelta(days)).replace(tzinfo=None)
            for days in (event_days, record_days)
        )
        row = "SELECT $1::TIMESTAMP AS event_time, $2::TIMESTAMP AS record_time"
        sql = f"SELECT {retention.is_old(TABLES['requests'], before)} FROM ({row})"
        assert connection.execute(sql, [event, record]).fetchall() == [(is_old,)]


def test_an_unknown_table_is_told(table_command: Command) -> None:
    assert "did you mean requests?" in table_command.error("upkeep", "requets")


class Place:
    """A warehouse after a year: days of every kind of table, in many small files."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        section = UpkeepSection().model_copy(update={"vacuum_after_h": 0})
        warehouse = config.WarehouseSection(path=str(folder))
        self.conf = config.Conf(warehouse=warehouse, upkeep=section)
        self.warehouse = Warehouse(warehouse)
        self.messages: list[str] = []

    def put(self, name: str, *rows: dict[str, Any]) -> None:
        """Append rows as one commit with one file."""
        table = TABLES[name]
        self.warehouse.ensure(lambda: self.spark, [table])
        content = pa.Table.from_pylist([{"cluster_id": "c"} | row for row in rows], table.arrow)
        frame = self.spark.createDataFrame(content).coalesce(1)
        self.warehouse.write(frame.write.format("delta").mode("append"), name)

    def days(self, name: str) -> list[int]:
        times = self.warehouse.read(self.spark, name).select("event_time").collect()
        return sorted(((NOON - row[0].astimezone(UTC)).days for row in times), reverse=True)

    def removed(self) -> dict[str, int]:
        rows = self.warehouse.read(self.spark, "pipeline_progress").where("outcome = 'removed'")
        return {row["target"]: row["row_count"] for row in rows.collect()}

    def versions(self) -> dict[str, int]:
        logs = self.conf.warehouse.folder.glob("*/_delta_log")
        return {log.parent.name: len(list(log.glob("*.json"))) for log in logs}

    def tend(self, *names: str, dry: bool = False) -> dict[str, UpkeepOutcome]:
        self.messages.clear()
        done = upkeep.run_upkeep(self.conf, names, NOON, self.messages.append, dry=dry)
        return {outcome.name: outcome for outcome in done}


@pytest.fixture
def place(spark: SparkSession, tmp_path: Path) -> Iterator[Place]:
    # Delta itself refuses less than a week, as conf does.
    check = "spark.databricks.delta.retentionDurationCheck.enabled"
    spark.conf.set(check, "false")
    yield Place(spark, tmp_path)
    spark.conf.unset(check)


def ago(days: int) -> dict[str, Any]:
    return {"event_time": NOON - timedelta(days), "record_time": NOON - timedelta(days)}


@pytest.mark.faults
@pytest.mark.spark
def test_what_is_too_old_goes_and_what_a_query_needs_stays(place: Place) -> None:
    for days in (DAYS_AGO[:2], DAYS_AGO[2:4], DAYS_AGO[4:]):
        place.put("requests", *(ago(day) for day in days))
    # request_results has read no version with rows: nothing that it needs may be removed.
    reader = place.warehouse.checkpoint("request_results")
    checkpoint(reader, 1)
    waiting = place.tend("requests")["requests"]
    assert waiting.rows_removed == 0
    assert "2 rows are too old and stay: request_results has not read" in (waiting.note or "")
    assert "no file deleted: request_results has not read version 1" in (waiting.note or "")
    assert (waiting.files_before, waiting.files_after) == (3, 1)

    checkpoint(reader, 100)
    done = place.tend("requests")["requests"]
    assert place.days("requests") == [30, 29, 1, 0]
    assert (done.rows_removed, done.files_after) == (2, 1)
    assert done.disk_bytes_after == done.bytes_after
    kept_since = place.warehouse.kept_since(place.spark, "requests")
    assert kept_since == NOON.replace(hour=0) - timedelta(30)
    assert place.removed() == {"requests": 2}
    versions = place.versions()
    assert place.tend("requests")["requests"].rows_removed == 0
    assert place.versions() == versions, "the second run does nothing"


@pytest.mark.spark
@pytest.mark.faults
def test_snapshots_keep_what_holds_and_a_dry_run_changes_nothing(place: Place) -> None:
    config_of = {"entity_type": "topic", "entity_name": "t", "is_removed": False}
    was, is_, removed = ({"config_key": key} | config_of for key in ("was", "is", "gone"))
    keep = {"upkeep": place.conf.upkeep.model_copy(update={"retention_days": {"configs": 30}})}
    place.conf = place.conf.model_copy(update=keep)
    place.put(
        "configs", was | ago(50), was | ago(40), is_ | ago(50), removed | ago(60), was | ago(1)
    )
    place.put("configs", removed | ago(45) | {"is_removed": True})
    place.put("pipeline_progress", *({"query_id": "q", "batch_id": n} | ago(2_000) for n in (1, 2)))
    before = place.versions()
    would = place.tend(dry=True)
    assert place.versions() == before
    assert {name: t.rows_removed for name, t in would.items()} == {
        "configs": 3,
        "pipeline_progress": 1,
    }
    place.tend()
    assert place.days("configs") == [50, 40, 1], "what held at the time stays, however old"
    # The newest batch of a query, which shows a lost checkpoint, and what upkeep counted.
    assert place.days("pipeline_progress") == [2_000, 1_095, 30]
    assert place.removed() == {"configs": 3, "pipeline_progress": 1}
    versions = place.versions()
    assert {outcome.rows_removed for outcome in place.tend().values()} == {0}
    assert place.versions() == versions


@pytest.mark.spark
@pytest.mark.faults
def test_records_of_what_is_held_stay_however_old(place: Place) -> None:
    common = {"entity_type": "user", "config_key": "producer_byte_rate", "purpose": "apply"}
    common |= {"step": "done", "operation": "SET", "operand": "5", "config_value": "5"}
    common |= {"number": 0, "plan_id": "p", "run_id": "r"}
    common |= dict.fromkeys(("reason", "evidence_table", "evidence_key"), "")
    back = {"entity_name": "back", "change_id": "1"}
    owned = {"entity_name": "held", "change_id": "2", "expires_at": NOON}
    place.put("config_changes", common | back | ago(1_300) | {"expires_at": NOON})
    place.put("config_changes", common | back | ago(1_290) | {"purpose": "restore"})
    place.put("config_changes", common | owned | ago(1_200), common | back | ago(1_199))
    place.put("config_changes", common | owned | ago(3) | {"operation": "RENEW"})
    assert place.tend("config_changes")["config_changes"].rows_removed == 2
    assert place.days("config_changes") == [1_200, 1_199, 3]


@pytest.mark.spark
def test_checkpoints_that_were_moved_aside_go_and_those_in_use_stay(place: Place) -> None:
    folder = place.warehouse.checkpoint("ingest_request_log")
    topic = identity.TopicIdentity("c", "logs", "id-1")
    identity.check_topic(folder, topic, accept_new=False)
    checkpoint(folder, 1)
    made_again = identity.TopicIdentity("c", "logs", "id-2")
    identity.check_topic(folder, made_again, accept_new=True)
    checkpoint(folder, 1)
    (old,) = folder.parent.glob("*.old")
    for at, is_there in ((NOON + timedelta(days=1), True), (NOON - timedelta(days=1), False)):
        os.utime(old, (at.timestamp(), at.timestamp()))
        place.tend()
        assert old.exists() is is_there
    assert identity.is_started(folder)
