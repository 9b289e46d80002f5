"""Which files a version of a table has, and tables whose files alone would be read wrong."""

import json
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.warehouse import delta_files

from ...delta_tables import NOON

HOUR = timedelta(hours=1)


def rows(*hours: int) -> pa.Table:
    times = pa.array([NOON + hour * HOUR for hour in hours], pa.timestamp("us", tz="UTC"))
    return pa.table({"event_time": times, "event_date": times.cast(pa.date32())})


def commit(folder: Path, *actions: dict[str, object]) -> None:
    """Commit by hand what delta-rs itself would not write."""
    version = DeltaTable(folder).version() + 1
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (folder / "_delta_log" / f"{version:020d}.json").write_text(text, encoding="utf-8")


def files(folder: Path) -> list[delta_files.DataFile]:
    return delta_files.of_version(DeltaTable(folder), folder, "event_time")


def test_files_have_rows_and_bounds(tmp_path: Path) -> None:
    write_deltalake(tmp_path, rows(0, 2))
    write_deltalake(tmp_path, rows(5), mode="append")
    by_rows = {file.rows: file for file in files(tmp_path)}
    first, second = by_rows[2], by_rows[1]
    assert (first.first, second.first) == (NOON, NOON + 5 * HOUR)
    assert first.last is not None
    # Spark cuts bounds to milliseconds, so one more may have rows.
    assert NOON + 2 * HOUR < first.last <= NOON + 2 * HOUR + timedelta(milliseconds=1)
    assert first.may_have(NOON + HOUR, NOON + 3 * HOUR)
    assert first.may_have(None, NOON + HOUR)
    assert not first.may_have(NOON + 3 * HOUR, None)
    assert not second.may_have(None, NOON + 5 * HOUR)
    assert delta_files.DataFile("x", None, None, None).may_have(NOON, NOON)


@pytest.mark.parametrize("name", ["with space", "it's 100% #odd* ?", "ünïcode"])
def test_paths_are_those_of_the_file_system(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    write_deltalake(folder, rows(0, 30), partition_by=["event_date"])
    paths = [file.path for file in files(folder)]
    assert all(Path(path).is_file() for path in paths)
    read = duckdb.execute("SELECT count(*) FROM read_parquet($paths)", {"paths": paths})
    assert read.fetchall() == [(2,)]


def test_the_features_that_files_show_are_what_is_known() -> None:
    """A preview, or a feature of a later Delta, says nothing of how its files are to be read."""
    others = ("typeWidening-preview", "variantType-preview", "variantShredding", "later")
    for feature in ("deletionVectors", "typeWidening", "variantType", *others):
        with pytest.raises(ConfigError, match=rf"Delta feature {feature}, .*DROP FEATURE"):
            delta_files.check_features(Featured(feature), "folder")  # type: ignore[arg-type]
    for feature in ("timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"):
        delta_files.check_features(Featured(feature), "folder")  # type: ignore[arg-type]


@dataclass
class Featured:
    """A table whose protocol has one feature of readers."""

    feature: str

    def protocol(self) -> SimpleNamespace:
        return SimpleNamespace(reader_features=[self.feature])

    def metadata(self) -> SimpleNamespace:
        return SimpleNamespace(configuration={})


@pytest.mark.parametrize("feature", ["deletionVectors", "columnMapping"])
def test_a_feature_that_files_do_not_show_is_refused(tmp_path: Path, feature: str) -> None:
    write_deltalake(tmp_path, rows(0))
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
    features = {"readerFeatures": [feature], "writerFeatures": [feature]}
    commit(tmp_path, {"protocol": protocol | features})
    with pytest.raises(ConfigError, match=rf"Delta feature {feature}.*DROP FEATURE"):
        files(tmp_path)


def test_a_file_of_another_store_is_refused(tmp_path: Path) -> None:
    write_deltalake(tmp_path, rows(0))
    added = {"path": "s3://bucket/x.parquet", "partitionValues": {}, "size": 1}
    commit(tmp_path, {"add": added | {"modificationTime": 1, "dataChange": True}})
    with pytest.raises(ConfigError, match="outside of it"):
        files(tmp_path)
