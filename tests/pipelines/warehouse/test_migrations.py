"""Tables of an older schema, with rows in them, are brought to this one by steps."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from quotaflow.pipelines import config
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas import migrations
from quotaflow.schemas.migrations import SCHEMA_VERSION_PROPERTY, Step
from quotaflow.schemas.table import LONG, STRING, TIMESTAMP, Column, Table


def parts(*fields: str) -> pa.DataType:
    """A list of structs with these fields."""
    return pa.list_(pa.struct([pa.field(name, LONG) for name in fields]))


OLD = Table(
    name="sizes",
    comment="Sizes, as a version that never was had them",
    columns=(
        Column("event_time", TIMESTAMP, "when"),
        Column("size", LONG, "size in KiB"),
        Column("unit", STRING, "unit"),
        Column("parts", parts("at", "bytes"), "parts"),
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
        Column("parts", parts("index", "bytes"), "parts"),
        Column("owner", STRING, "who owns it"),
    ),
    key=OLD.key,
    time="event_time",
)
NOW = migrations.SCHEMA_VERSION
STEPS = (
    Step(
        NOW + 1,
        "sizes",
        renames=(("unit", "unit_name"), ("parts.at", "parts.index")),
        fill=("UPDATE {target} SET size_bytes = size * 1024 WHERE size_bytes IS NULL",),
    ),
    Step(NOW + 2, "sizes", alter=("ALTER TABLE {target} SET TBLPROPERTIES ('of' = 'three')",)),
    Step(NOW + 2, "gone", instead="quotaflow rebuild gone --from 30d"),
)


ROWS: list[dict[str, Any]] = [
    {"size": 1, "unit": "KiB", "parts": [{"at": 3, "bytes": 9}, {"at": None, "bytes": 8}]},
    {"size": 4},
]


@pytest.mark.spark
def test_steps_run_with_data_once_and_a_newer_table_is_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path)))
    warehouse.ensure(lambda: spark, [OLD])
    rows = spark.createDataFrame(pa.Table.from_pylist(ROWS, OLD.arrow))
    warehouse.write(rows.write.format("delta").mode("append"), "sizes")

    monkeypatch.setattr(migrations, "STEPS", STEPS)
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", NOW + 2)
    with pytest.raises(ConfigError, match=r"sizes is of schema version 1.*`quotaflow upkeep`"):
        warehouse.check_readable(spark, "sizes")
    warehouse.ensure(lambda: spark, [NEW])
    warehouse.check_readable(spark, "sizes")
    names = ("size", "size_bytes", "unit", "unit_name", "owner")
    migrated = warehouse.read(spark, "sizes").orderBy("size")
    assert [tuple(row) for row in migrated.select(*names).collect()] == [
        (1, 1_024, "KiB", "KiB", None),
        (4, 4_096, None, None, None),
    ]
    copied = migrated.select("parts.index", "parts.bytes").collect()
    assert [tuple(row) for row in copied] == [([3, None], [9, 8]), (None, None)]
    properties = warehouse.properties(spark, "sizes")
    assert (properties[SCHEMA_VERSION_PROPERTY], properties["of"]) == (str(NOW + 2), "three")
    commits = len(list((tmp_path / "sizes" / "_delta_log").glob("*.json")))
    warehouse.ensure(lambda: spark, [NEW])
    assert len(list((tmp_path / "sizes" / "_delta_log").glob("*.json"))) == commits

    monkeypatch.setattr(migrations, "SCHEMA_VERSION", NOW + 1)
    with pytest.raises(ConfigError, match="sizes was written by a newer quotaflow"):
        warehouse.ensure(lambda: spark, [NEW])
