"""Tables that delta-rs makes in a folder."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from quotaflow.pipelines.errors import ConfigError, JobError
from quotaflow.pipelines.warehouse import folder_tables
from quotaflow.pipelines.warehouse.place import Place
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas import ddl
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import TABLES

from ...cases import cases
from ...schemas.views.view_tables import no_session


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_a_new_table_has_the_declared_columns_comments_and_properties(
    tmp_path: Path, table: Table
) -> None:
    for _ in range(2):
        folder_tables.create(Place.local(tmp_path), table)
    live = DeltaTable(tmp_path / table.name)
    assert pa.schema(live.schema()).remove_metadata().equals(table.arrow)
    columns = json.loads(live.schema().to_json())["fields"]
    assert [column["metadata"]["comment"] for column in columns] == [
        column.comment for column in table.columns
    ]
    metadata, protocol = live.metadata(), live.protocol()
    assert (metadata.description, metadata.configuration) == (table.comment, ddl.properties(table))
    assert metadata.partition_columns == list(table.partitioning)
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)


@pytest.mark.parametrize("name", ["a[b]", "a|b", "a%20b", "a^b", "a\\b"])
def test_a_path_that_delta_rs_cannot_read_is_one_clear_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"warehouse\.path: .* has .* in it, .* --set"):
        folder_tables.create(Place.local(tmp_path / name), TABLES["requests"])


def test_a_log_without_a_commit_is_no_table_and_becomes_one(warehouse: Warehouse) -> None:
    """A full disk leaves this: the folder of the log, and perhaps the start of a commit."""
    table = TABLES["plans"]
    log = warehouse.folder(table.name) / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json#1").write_text("{")
    assert not warehouse.place.is_made(table.name)
    warehouse.ensure(no_session, [table])
    assert warehouse.place.is_made(table.name)
    assert DeltaTable(warehouse.folder(table.name)).metadata().description == table.comment


def test_a_table_that_cannot_be_made_is_one_error_with_its_cause(warehouse: Warehouse) -> None:
    warehouse.conf.folder.mkdir()
    warehouse.folder("plans").write_text("a file, not a folder")
    with pytest.raises(JobError, match=r"plans: cannot write: .*(Not a directory|File exists)"):
        warehouse.ensure(no_session, [TABLES["plans"]])


@cases(
    ("kind", "text"),
    ("a type of another column", pa.int64(), "BIGINT"),
    ("a type that no table has", pa.int16(), "int16"),
)
def test_a_column_of_another_type_is_one_error(
    warehouse: Warehouse, kind: pa.DataType, text: str
) -> None:
    other = pa.schema([("cluster_id", kind)])
    write_deltalake(warehouse.folder("traffic"), other.empty_table())
    with pytest.raises(ConfigError, match=rf"cluster_id is {text} and should be STRING: rebuild"):
        warehouse.ensure(no_session, [TABLES["traffic"]])
