"""Tables of an older schema, with rows in them, and warehouses that releases wrote."""

import importlib.util
import json
import tarfile
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from quotaflow.pipelines import config
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.warehouse import clustering, row_writer
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.row_writer import AppId
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas import ddl, migrations
from quotaflow.schemas.migrations import SCHEMA_VERSION_PROPERTY, Step
from quotaflow.schemas.table import LONG, STRING, TIMESTAMP, Column, Table
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.control import PIPELINE_PROGRESS

RELEASED = Path(__file__).parents[2] / "golden" / "released"
OLD = Table(
    name="sizes",
    comment="Sizes, as a version that never was had them",
    columns=(
        Column("event_time", TIMESTAMP, "when"),
        Column("size", LONG, "size in KiB"),
        Column("unit", STRING, "unit"),
    ),
    key=("event_time",),
    time="event_time",
)
NEW = Table(
    name="sizes",
    comment=OLD.comment,
    columns=(
        *OLD.columns[:2],
        Column("size_bytes", LONG, "size"),
        Column("unit_name", STRING, "unit"),
        Column("owner", STRING, "who owns it"),
    ),
    key=OLD.key,
    time="event_time",
)
NOW = migrations.SCHEMA_VERSION
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
STEPS = (
    Step(
        NOW + 1,
        "sizes",
        renames=(("unit", "unit_name"),),
        fill=("UPDATE {target} SET size_bytes = size * 1024 WHERE size_bytes IS NULL",),
    ),
    Step(NOW + 2, "sizes", alter=("ALTER TABLE {target} SET TBLPROPERTIES ('of' = 'three')",)),
    Step(NOW + 2, "gone", instead="quotaflow rebuild gone --from 30d"),
)


@pytest.mark.spark
def test_steps_run_with_data_once_and_a_newer_table_is_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path)))
    warehouse.ensure(lambda: spark, [OLD])
    rows = spark.createDataFrame(
        pa.Table.from_pylist([{"size": 1, "unit": "KiB"}, {"size": 4}], OLD.arrow)
    )
    warehouse.write(rows.write.format("delta").mode("append"), "sizes")

    monkeypatch.setattr(migrations, "STEPS", STEPS)
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", NOW + 2)
    warehouse.ensure(lambda: spark, [NEW])
    names = ("size", "size_bytes", "unit", "unit_name", "owner")
    migrated = warehouse.read(spark, "sizes").orderBy("size").select(*names)
    assert [tuple(row) for row in migrated.collect()] == [
        (1, 1_024, "KiB", "KiB", None),
        (4, 4_096, None, None, None),
    ]
    properties = warehouse.properties(spark, "sizes")
    assert (properties[SCHEMA_VERSION_PROPERTY], properties["of"]) == (str(NOW + 2), "three")
    commits = len(list((tmp_path / "sizes" / "_delta_log").glob("*.json")))
    warehouse.ensure(lambda: spark, [NEW])
    assert len(list((tmp_path / "sizes" / "_delta_log").glob("*.json"))) == commits

    monkeypatch.setattr(migrations, "SCHEMA_VERSION", NOW + 1)
    with pytest.raises(ConfigError, match="sizes was written by a newer quotaflow"):
        warehouse.ensure(lambda: spark, [NEW])


STORED = {
    "replication_throttles": ("reason", "nothing_held_back", "no_stalled_fetches"),
    "metric_alert_events": ("state", "standing", "still_open"),
    "settings": ("setting", "replication.hold_s", "replication.cooldown_s"),
}
"""Column of a table whose stored values a step replaces, an old value and the new one."""
VALUES = {
    "STRING": "'a'",
    "INT": "7",
    "BIGINT": "8",
    "BOOLEAN": "true",
    "DOUBLE": "0.5D",
    "TIMESTAMP": "timestamp_seconds(1)",
}


# The second has no value of any field, and the third those that follow a renamed one too.
_ELEMENTS = '[{"asked_at": 3}, {}, {"topic": "a", "asked_at": 0, "bytes": 9}]'


def released(table: str) -> dict[str, str]:
    """Columns of a table of release 0.1.0, with their types."""
    text = (RELEASED / "0.1.0.json").read_text(encoding="utf-8")
    columns: dict[str, str] = json.loads(text)["tables"][table]["columns"]
    return columns


def make_released(spark: SparkSession, warehouse: Warehouse, step: Step) -> None:
    target, columns = warehouse.target(step.table), released(step.table)
    values = {
        (name := old.split(".")[0]): VALUES.get(
            columns[name], f"from_json('{_ELEMENTS}', '{columns[name]}')"
        )
        for old, _ in step.renames
    }
    column, old_value, _ = STORED.get(step.table, (None, None, None))
    if column:
        values[column] = f"'{old_value}'"
    listed = ", ".join(
        f"CAST({values.get(name, 'NULL')} AS {type_}) AS `{name}`"
        for name, type_ in columns.items()
    )
    spark.sql(f"CREATE TABLE {target} USING delta AS SELECT {listed}")


# A table with a stored value that changes, one without, and one with a renamed field.
_FEW = ("fetch_sessions",)


@pytest.mark.spark
@pytest.mark.parametrize(
    "step",
    [
        pytest.param(step, id=step.table, marks=[] if step.table in _FEW else pytest.mark.faults)
        for step in migrations.STEPS
    ],
)
def test_a_step_copies_renamed_columns_and_replaces_stored_values(
    spark: SparkSession, tmp_path: Path, step: Step
) -> None:
    warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path)))
    table, columns = TABLES[step.table], released(step.table)
    make_released(spark, warehouse, step)
    warehouse.ensure(lambda: spark, [table])
    target = warehouse.target(step.table)
    column, _, new_value = STORED.get(step.table, (None, None, None))
    frame = warehouse.read(spark, step.table)
    row = frame.collect()[0]
    for old, new in step.renames:
        assert values(row.asDict(recursive=True), new) == values(row.asDict(recursive=True), old)
        assert values(row.asDict(recursive=True), new) not in (None, [None, None, None])
    if column:
        assert row[column] == new_value
    if step.table == "settings":
        spark.sql(f"INSERT INTO {target} (setting) VALUES ('replication.clean_up.User:a.b_c')")
        spark.sql(step.fill[-1].format(target=target))
        (renamed,) = warehouse.read(spark, step.table).where("setting LIKE '%User:%'").collect()
        assert renamed["setting"] == "replication.cleanup.User:a.b_c"
        spark.sql(f"DELETE FROM {target} WHERE setting LIKE '%User:%'")
    assert set(table.column_names) <= set(frame.columns)
    for sql in [*ddl.renamed(target, step.renames, columns), *step.fill]:
        spark.sql(sql.format(target=target))
    assert warehouse.read(spark, step.table).collect() == [row]


def values(row: Mapping[str, Any], name: str) -> Any:
    """The value of a column, or the values of a field of a list of structs (`column.field`)."""
    column, _, field = name.partition(".")
    return [element[field] for element in row[column]] if field else row[column]


def maker() -> ModuleType:
    """What wrote the releases, to write on."""
    spec = importlib.util.spec_from_file_location("released", RELEASED / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def renamed_values(warehouse: Warehouse, place: int) -> dict[str, "Counter[str]"]:
    """Values of the columns that steps rename, by the old names (place 0) or the new ones (1)."""
    renamed = {}
    for step in migrations.STEPS:
        if step.renames:
            names = [pair[place] for pair in step.renames]
            columns = sorted({name.split(".")[0] for name in names})
            table = DeltaTable(warehouse.folder(step.table)).to_pyarrow_table(columns=columns)
            rows = table.to_pylist()
            of_rows = ([values(row, name) for name in names] for row in rows)
            renamed[step.table] = Counter(map(repr, of_rows))
    return renamed


ARCHIVES = sorted(RELEASED.glob("*.tar.gz"))


def unpacked(archive: Path, folder: Path) -> Warehouse:
    """The warehouse of a release."""
    with tarfile.open(archive) as packed:
        # The argument `filter` came with Python 3.11.4; earlier ones do not look at this attribute.
        packed.extraction_filter = getattr(tarfile, "data_filter", None)
        packed.extractall(folder)  # noqa: S202  the archive is of this repository
    return Warehouse(config.WarehouseSection(path=str(folder / "warehouse")))


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda file: file.name)
def test_a_table_of_a_release_has_no_feature_but_clustering(archive: Path, tmp_path: Path) -> None:
    warehouse = unpacked(archive, tmp_path)
    made = [name for name in TABLES if warehouse.folder(name).exists()]
    assert len(made) > 10
    for name in made:
        live = DeltaTable(warehouse.folder(name))
        is_clustered = clustering.is_clustered(live)
        assert is_clustered == bool(TABLES[name].clustering), name
        assert is_clustered or clustering.is_plain(live), name


@pytest.mark.spark
@pytest.mark.faults
@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda file: file.name)
def test_delta_rs_writes_every_table_of_a_release(
    spark: SparkSession, tmp_path: Path, archive: Path
) -> None:
    warehouse = unpacked(archive, tmp_path)
    made = {name: TABLES[name] for name in TABLES if warehouse.folder(name).exists()}
    before = {name: warehouse.read(spark, name).count() for name in made}
    ids = {name: DeltaTable(warehouse.folder(name)).metadata().id for name in made}
    warehouse.ensure(lambda: spark, TABLES.values())
    for name, table in made.items():
        live = DeltaTable(warehouse.folder(name))
        assert (clustering.is_plain(live), live.metadata().id) == (True, ids[name]), name
        row = pa.Table.from_pylist([{table.time: NOON}], schema=table.arrow)
        row_writer.append(lambda: spark, warehouse, table, row, AppId("a query", 0, "a query 0"))
        (newest,) = DeltaTable(warehouse.folder(name)).history(1)
        assert newest["engineInfo"].startswith("delta-rs"), name
    after = {name: warehouse.read(spark, name).count() for name in made}
    assert after == {name: rows + 1 for name, rows in before.items()}
    versions = {name: DeltaTable(warehouse.folder(name)).version() for name in made}
    warehouse.ensure(lambda: spark, TABLES.values())
    assert {name: DeltaTable(warehouse.folder(name)).version() for name in made} == versions


@pytest.mark.spark
@pytest.mark.faults
@pytest.mark.parametrize(
    "archive",
    [*ARCHIVES, None],
    ids=lambda file: file.name if file else "this version",
)
def test_a_warehouse_and_its_checkpoints_of_a_release_go_on(
    spark: SparkSession, tmp_path: Path, archive: Path | None
) -> None:
    made = maker()
    conf = config.load(overrides=[f"warehouse.path={tmp_path / 'warehouse'}"])
    if archive is None:
        made.fill(conf, 0)
    else:
        unpacked(archive, tmp_path)
    warehouse = Warehouse(conf.warehouse)

    def rows(table: str) -> int:
        return warehouse.read(spark, table).count()

    old = {} if archive is None else renamed_values(warehouse, 0)
    if archive is not None:
        with pytest.raises(ConfigError, match=r"of schema version 1.*`quotaflow upkeep`"):
            Reader(warehouse).rows("SELECT * FROM quota_headroom")
        warehouse.ensure(lambda: spark, TABLES.values())
        assert renamed_values(warehouse, 1) == old
        assert Reader(warehouse).rows("SELECT quota_bucket_usage FROM quota_usage")

    filled = ["requests", "fetches", "client_metrics", "traffic", "producer_id_uses"]
    before = {name: rows(name) for name in filled}
    assert all(before.values())
    made.fill(conf, 100)
    assert {name: rows(name) for name in filled} == {name: 2 * n for name, n in before.items()}
    progress = warehouse.read(spark, PIPELINE_PROGRESS.name)
    for job in made.JOBS:
        of_job = progress.where(f"job = '{job}'").select("query_id").distinct()
        assert of_job.count() <= 1, f"{job} started again"
