"""Tables of an older schema, with rows in them, and warehouses that releases wrote."""

import importlib.util
import tarfile
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from quotaflow.pipelines import config
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas import migrations
from quotaflow.schemas.migrations import SCHEMA_VERSION_PROPERTY, Step
from quotaflow.schemas.table import LONG, STRING, TIMESTAMP, Column, Table
from quotaflow.schemas.tables.control import PIPELINE_PROGRESS

RELEASED = Path(__file__).parents[2] / "golden" / "released"
OLD = Table(
    name="sizes",
    comment="Sizes, as a version that never was had them",
    columns=(Column("event_time", TIMESTAMP, "when"), Column("size", LONG, "size in KiB")),
    key=("event_time",),
    time="event_time",
)
NEW = Table(
    name="sizes",
    comment=OLD.comment,
    columns=(*OLD.columns, Column("size_bytes", LONG, "size"), Column("unit", STRING, "unit")),
    key=OLD.key,
    time="event_time",
)
STEPS = (
    Step(
        2, "sizes", fill=("UPDATE {target} SET size_bytes = size * 1024 WHERE size_bytes IS NULL",)
    ),
    Step(3, "sizes", alter=("ALTER TABLE {target} SET TBLPROPERTIES ('of' = 'three')",)),
    Step(3, "gone", instead="quotaflow rebuild gone --from 30d"),
)


@pytest.mark.spark
def test_steps_run_with_data_once_and_a_newer_table_is_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path)))
    warehouse.ensure(spark, [OLD])
    rows = spark.createDataFrame(pa.Table.from_pylist([{"size": 1}, {"size": 4}], OLD.arrow))
    warehouse.write(rows.write.format("delta").mode("append"), "sizes")

    monkeypatch.setattr(migrations, "STEPS", STEPS)
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", 3)
    warehouse.ensure(spark, [NEW])
    stored = warehouse.read(spark, "sizes").orderBy("size").select("size", "size_bytes", "unit")
    assert [tuple(row) for row in stored.collect()] == [(1, 1_024, None), (4, 4_096, None)]
    properties = warehouse.properties(spark, "sizes")
    assert (properties[SCHEMA_VERSION_PROPERTY], properties["of"]) == ("3", "three")
    commits = len(list((tmp_path / "sizes" / "_delta_log").glob("*.json")))
    warehouse.ensure(spark, [NEW])
    assert len(list((tmp_path / "sizes" / "_delta_log").glob("*.json"))) == commits

    monkeypatch.setattr(migrations, "SCHEMA_VERSION", 2)
    with pytest.raises(ConfigError, match="sizes was written by a newer quotaflow"):
        warehouse.ensure(spark, [NEW])


def maker() -> ModuleType:
    """What wrote the releases, to write on."""
    spec = importlib.util.spec_from_file_location("released", RELEASED / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.spark
@pytest.mark.faults
@pytest.mark.parametrize(
    "archive",
    [*sorted(RELEASED.glob("*.tar.gz")), None],
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
        with tarfile.open(archive) as packed:
            packed.extractall(tmp_path, filter="data")
    warehouse = Warehouse(conf.warehouse)

    def rows(table: str) -> int:
        return warehouse.read(spark, table).count()

    filled = ["requests", "fetches", "client_metrics", "traffic", "producer_id_uses"]
    before = {name: rows(name) for name in filled}
    assert all(before.values())
    made.fill(conf, 100)
    assert {name: rows(name) for name in filled} == {name: 2 * n for name, n in before.items()}
    progress = warehouse.read(spark, PIPELINE_PROGRESS.name)
    for job in made.JOBS:
        of_job = progress.where(f"job = '{job}'").select("query_id").distinct()
        assert of_job.count() <= 1, f"{job} began anew"
