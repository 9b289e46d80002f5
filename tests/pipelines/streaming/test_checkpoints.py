"""Checkpoints and logs of tables read as files: how far a query is, and what waits for it."""

import json
import uuid
from pathlib import Path
from typing import Any

from quotaflow.pipelines.streaming import checkpoints
from quotaflow.pipelines.streaming.checkpoints import DeltaOffset
from quotaflow.pipelines.warehouse import delta_log
from quotaflow.pipelines.warehouse.delta_log import UnreadFiles
from quotaflow.pipelines.warehouse.place import Place

from ...cases import cases

KAFKA = {"logs": {"0": 8, "1": 5}}
DELTA = {"sourceVersion": 1, "reservoirId": "t1", "reservoirVersion": 3, "index": -1}


def checkpoint(folder: Path, job: str, *sources: Any, batch_id: int = 0) -> Path:
    path = folder / job
    for name in ("offsets", "commits"):
        (path / name).mkdir(parents=True, exist_ok=True)
    (path / "metadata").write_text(json.dumps({"id": f"q-{job}"}), encoding="utf-8")
    lines = ["v1", "{}", *(json.dumps(source) for source in sources)]
    (path / "offsets" / str(batch_id)).write_text("\n".join(lines), encoding="utf-8")
    return path


def test_a_checkpoint_tells_its_newest_batch_and_where_that_ends(tmp_path: Path) -> None:
    path = checkpoint(tmp_path, "ingest", {"logs": {"0": 1}}, batch_id=9)
    checkpoint(tmp_path, "ingest", KAFKA, batch_id=10)
    (path / "commits" / "9").touch()
    (tmp_path / "ingest.topic.json").write_text('{"topic": "logs"}', encoding="utf-8")
    (tmp_path / "begun").mkdir()
    checkpoints_by_job = checkpoints.load(tmp_path)
    assert list(checkpoints_by_job) == ["ingest"]
    ingest = checkpoints_by_job["ingest"]
    assert ingest.batch_id == 10
    assert (ingest.kafka, ingest.delta) == ({("logs", 0): 8, ("logs", 1): 5}, None)
    assert ingest.topic == {"topic": "logs"}


@cases(
    ("sources", "kafka", "delta"),
    ("a table", [DELTA], None, DeltaOffset("t1", 3)),
    ("two sources: of none", [KAFKA, KAFKA], None, None),
    ("a file cut off", [], None, None),
    ("a source without an offset", ["-"], None, None),
    ("a source that is not ours", [{"logOffset": 3}], None, None),
)
def test_a_source_is_known_or_none(
    sources: list[Any], kafka: Any, delta: Any, tmp_path: Path
) -> None:
    checkpoint(tmp_path, "job", *sources)
    loaded = checkpoints.load(tmp_path)["job"]
    assert (loaded.kafka, loaded.delta) == (kafka, delta)


def test_where_nothing_ever_ran_there_is_none(tmp_path: Path) -> None:
    assert checkpoints.load(tmp_path / "never made") == {}


def add(size: int, *, is_new: bool = True) -> dict[str, Any]:
    return {"add": {"path": f"{size}.parquet", "size": size, "dataChange": is_new}}


def commits(folder: Path, *versions: list[dict[str, Any]], first: int = 0) -> Path:
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    for version, actions in enumerate(versions, start=first):
        lines = [{"commitInfo": {"timestamp": 1_000 * version}}, *actions]
        text = "\n".join(json.dumps(line) for line in lines)
        (log / f"{version:020d}.json").write_text(text, encoding="utf-8")
    (log / "_last_checkpoint").touch()
    return folder


def test_what_was_appended_and_not_read_is_counted_and_rewrites_are_not(tmp_path: Path) -> None:
    removed = {"remove": {"path": "1.parquet", "dataChange": True}}
    removal = {"remove": {"path": "1.parquet", "dataChange": False}}
    table = commits(
        tmp_path / "t",
        [add(1)],
        [{"metaData": {}}],
        [add(20), add(30)],
        [add(1), removed],
        [add(1, is_new=False), removal],
        [add(7)],
    )
    assert delta_log.of_table(Place.local(table.parent), table.name, 1) == UnreadFiles(3, 57, 2_000)
    assert delta_log.of_table(Place.local(table.parent), table.name, 3) == UnreadFiles(1, 7, 5_000)
    assert delta_log.of_table(Place.local(table.parent), table.name, 6) == UnreadFiles()


def test_a_log_that_was_cleaned_before_it_was_read_is_told(tmp_path: Path) -> None:
    table = commits(tmp_path / "t", [add(1)], [add(2)], first=5)
    assert delta_log.of_table(Place.local(table.parent), table.name, 3).is_cut
    assert not delta_log.of_table(Place.local(table.parent), table.name, 5).is_cut


def test_only_what_a_first_batch_left_without_a_name_is_removed(tmp_path: Path) -> None:
    started, unborn = checkpoint(tmp_path, "begun"), tmp_path / "unborn"
    (unborn / "offsets").mkdir(parents=True)
    left = [f".0.{uuid.UUID(int=7)}.tmp", f"..0.{uuid.UUID(int=7)}.tmp.crc"]
    for name in (*left, "kept"):
        (started / "offsets" / name).touch()
        (unborn / "offsets" / name).touch()
    for path in (started, unborn, tmp_path / "never"):
        checkpoints.drop_unnamed(path)
    assert [path.name for path in (unborn / "offsets").iterdir()] == ["kept"]
    assert {path.name for path in (started / "offsets").iterdir()} == {*left, "kept", "0"}
