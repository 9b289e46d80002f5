"""Whose rows a checkpoint counts: topics made again, checkpoints lost, copied or moved."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.errors import CheckpointError
from quotaflow.pipelines.streaming import identity
from quotaflow.pipelines.streaming.identity import TopicIdentity
from quotaflow.pipelines.warehouse import row_writer
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.declared import PIPELINE_PROGRESS

from ... import case_tables
from ...cases import cases
from ...schemas.views.view_tables import no_session

LOGS = TopicIdentity("cluster-a", "logs", "id-1")
MADE_AGAIN = TopicIdentity("cluster-a", "logs", "id-2")
OTHER_CLUSTER = TopicIdentity("cluster-b", "logs", "id-1")
TIME = datetime(2026, 11, 21, tzinfo=UTC)


def started(checkpoint: Path, query_id: str, batches: int = 1) -> Path:
    """A checkpoint as Spark leaves it; its newest batch may be planned and not yet committed."""
    (checkpoint / "offsets").mkdir(parents=True)
    (checkpoint / "metadata").write_text(json.dumps({"id": query_id}), encoding="utf-8")
    for batch in range(batches):
        (checkpoint / "offsets" / str(batch)).touch()
        (checkpoint / "offsets" / f".{batch}.crc").touch()
    return checkpoint


def test_a_first_start_is_remembered(tmp_path: Path) -> None:
    checkpoint = tmp_path / "_checkpoints" / "ingest"
    identity.check_topic(checkpoint, LOGS, accept_new=False)
    started(checkpoint, "q1")
    identity.check_topic(checkpoint, LOGS, accept_new=False)
    assert sorted(path.name for path in checkpoint.parent.iterdir()) == [
        "ingest",
        "ingest.topic.json",
    ]


def test_before_the_first_batch_any_topic_will_do(tmp_path: Path) -> None:
    identity.check_topic(tmp_path / "ingest", LOGS, accept_new=False)
    identity.check_topic(tmp_path / "ingest", MADE_AGAIN, accept_new=False)
    started(tmp_path / "ingest", "q1")
    identity.check_topic(tmp_path / "ingest", MADE_AGAIN, accept_new=False)


@cases(
    ("now", "words"),
    *case_tables.rows(
        __file__,
        "another_topic_stops_until_it_is_accepted",
        TopicIdentity,
        MADE_AGAIN=MADE_AGAIN,
        OTHER_CLUSTER=OTHER_CLUSTER,
    ),
)
def test_another_topic_stops_until_it_is_accepted(
    tmp_path: Path, now: TopicIdentity, words: list[str]
) -> None:
    checkpoint = tmp_path / "ingest"
    identity.check_topic(checkpoint, LOGS, accept_new=False)
    started(checkpoint, "q1")
    for _ in range(2):
        with pytest.raises(CheckpointError) as raised:
            identity.check_topic(checkpoint, now, accept_new=False)
        assert all(word in str(raised.value) for word in [*words, str(checkpoint)])

    identity.check_topic(checkpoint, now, accept_new=True)
    assert not checkpoint.exists()
    assert (tmp_path / "ingest.q1.old" / "offsets" / "0").exists()
    started(checkpoint, "q2")
    identity.check_topic(checkpoint, now, accept_new=False)
    with pytest.raises(CheckpointError):
        identity.check_topic(checkpoint, LOGS, accept_new=False)


def test_a_checkpoint_that_nothing_names_a_topic_for_is_refused(tmp_path: Path) -> None:
    checkpoint = started(tmp_path / "ingest", "q1")
    with pytest.raises(CheckpointError, match="nothing says which topic its offsets belong to"):
        identity.check_topic(checkpoint, LOGS, accept_new=False)


def test_accepting_the_same_topic_moves_nothing(tmp_path: Path) -> None:
    checkpoint = tmp_path / "ingest"
    identity.check_topic(checkpoint, LOGS, accept_new=False)
    started(checkpoint, "q1")
    identity.check_topic(checkpoint, LOGS, accept_new=True)
    assert identity.is_started(checkpoint)


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Tables in which every job but one has written batches 0 to 2 of query q1."""
    warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path_factory.mktemp("warehouse"))))
    warehouse.ensure(no_session, [PIPELINE_PROGRESS])
    rows = [
        {"job": job, "query_id": "q1", "batch_id": batch, "event_time": TIME}
        for job in ("fits", "planned", "lost", "copied", "replaced", "nameless", "accepted")
        for batch in range(3)
    ]
    # What a refresh without a micro-batch counts has a time in ms for its number.
    rows.append(rows[0] | {"batch_id": int(TIME.timestamp() * 1_000)})
    progress = pa.Table.from_pylist(rows, schema=PIPELINE_PROGRESS.arrow)
    row_writer.append(no_session, warehouse, PIPELINE_PROGRESS, progress)
    return warehouse


def check(warehouse: Warehouse, job: str, *, accept_new: bool = False) -> None:
    written = identity.batches_written(FolderReader(warehouse)).get(job, {})
    identity.check_tables(warehouse.checkpoint(job), written, accept_new=accept_new)


@contextmanager
def raises(words: str | None) -> Iterator[None]:
    if words is None:
        yield
    else:
        with pytest.raises(CheckpointError, match=words):
            yield


@cases(
    ("job", "checkpoint", "words"),
    ("the checkpoint ends where the tables do", "fits", ("q1", 3), None),
    ("a batch that is planned and not yet written", "planned", ("q1", 4), None),
    (
        "an old copy of the checkpoint was put back",
        "copied",
        ("q1", 2),
        "ends at batch 1, but the tables have batch 2 of copied: it is an old copy",
    ),
    ("no checkpoint", "lost", None, "is missing, but the tables have rows that lost wrote"),
    ("a first run", "never_ran", None, None),
    ("a new topic was accepted: another query", "replaced", ("q2", 1), None),
)
def test_checkpoints_against_the_tables(
    warehouse: Warehouse,
    job: str,
    checkpoint: tuple[str, int] | None,
    words: str | None,
) -> None:
    if checkpoint:
        started(warehouse.checkpoint(job), *checkpoint)
    with raises(words):
        check(warehouse, job, accept_new=False)


def test_a_checkpoint_that_began_anew_and_is_lost_is_missed_too(warehouse: Warehouse) -> None:
    checkpoint = started(warehouse.checkpoint("accepted"), "q1", 3)
    identity.restart_from(checkpoint, {"logs": {"0": 13}})
    check(warehouse, "accepted", accept_new=False)
    started(checkpoint, "q2")
    check(warehouse, "accepted", accept_new=False)
    shutil.rmtree(checkpoint)
    with raises("is missing, but the tables have rows that accepted wrote"):
        check(warehouse, "accepted", accept_new=False)


def test_a_checkpoint_without_its_query_s_id_is_refused_with_the_command_that_repairs_it(
    warehouse: Warehouse,
) -> None:
    checkpoint = started(warehouse.checkpoint("nameless"), "q1", 3)
    (checkpoint / "metadata").unlink()
    assert identity.is_started(checkpoint)
    with pytest.raises(CheckpointError, match=r"lost its file metadata.* write it again") as raised:
        check(warehouse, "nameless", accept_new=False)
    subprocess.run(["sh", "-c", str(raised.value).split("write it again with: ")[1]], check=True)
    check(warehouse, "nameless", accept_new=False)
    assert (checkpoint / "metadata").read_text() == '{"id":"q1"}'


def test_the_checkpoint_of_a_result_may_be_removed(tmp_path: Path) -> None:
    checkpoint = tmp_path / "_checkpoints" / "a b"
    identity.check_result(checkpoint, {})
    identity.check_result(checkpoint, {"q1": 2})
    started(checkpoint, "q1")
    identity.check_result(checkpoint, {"q1": 0})
    (checkpoint / "metadata").unlink()
    with pytest.raises(
        CheckpointError, match="lost its file metadata: remove the folder"
    ) as raised:
        identity.check_result(checkpoint, {"q1": 0})
    subprocess.run(["sh", "-c", str(raised.value).split("again: ")[1]], check=True)
    assert not checkpoint.exists()


def test_an_old_copy_of_a_result_s_checkpoint_is_refused(tmp_path: Path) -> None:
    checkpoint = started(tmp_path / "request_results", "q1", 2)
    words = "ends at batch 1, but the tables have batch 2 of request_results: it is an old copy"
    with pytest.raises(CheckpointError, match=words) as raised:
        identity.check_result(checkpoint, {"q1": 2, "removed": 7})
    subprocess.run(["sh", "-c", str(raised.value).split("again: ")[1]], check=True)
    identity.check_result(checkpoint, {"q1": 2, "removed": 7})


def test_a_query_may_start_anew_behind_what_was_lost(tmp_path: Path) -> None:
    checkpoint = started(tmp_path / "ingest", "q1")
    assert identity.starting_offsets(checkpoint) == "earliest"
    identity.restart_from(checkpoint, {"logs": {"0": 13}})
    assert identity.starting_offsets(checkpoint) == '{"logs": {"0": 13}}'
    assert not identity.is_started(checkpoint)
    assert (tmp_path / "ingest.q1.old" / "offsets" / "0").exists()


def test_what_is_moved_aside_is_kept_from_now_on(tmp_path: Path) -> None:
    checkpoint = started(tmp_path / "ingest", "q1")
    os.utime(checkpoint, (0, 0))
    identity.restart_from(checkpoint, {"logs": {"0": 13}})
    assert (tmp_path / "ingest.q1.old").stat().st_mtime > 0


def test_another_topic_begins_at_its_beginning(tmp_path: Path) -> None:
    checkpoint = tmp_path / "ingest"
    identity.check_topic(checkpoint, LOGS, accept_new=False)
    started(checkpoint, "q1")
    identity.restart_from(checkpoint, {"logs": {"0": 13}})
    identity.check_topic(checkpoint, MADE_AGAIN, accept_new=False)
    assert identity.starting_offsets(checkpoint) == "earliest"


def test_a_new_topic_may_start_beside_rows_of_the_old_one(warehouse: Warehouse) -> None:
    check(warehouse, "lost", accept_new=True)


def test_with_empty_tables_there_is_nothing_to_lose(tmp_path: Path) -> None:
    empty = Warehouse(config.WarehouseSection(path=str(tmp_path)))
    empty.ensure(no_session, [PIPELINE_PROGRESS])
    check(empty, "lost", accept_new=False)
