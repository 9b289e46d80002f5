"""What `ddl --dbt` prints: sources of dbt with every table and view."""

from typing import Any

import yaml

from quotaflow.pipelines.warehouse import views
from quotaflow.schemas.tables.catalog import TABLES

from ...command_line import Command

EVERY = TABLES | dict(views.load())
CATALOG = ("--set", "warehouse.catalog_schema=main.kafka")


def printed(command: Command, *words: str) -> dict[str, Any]:
    """The source of the file."""
    content = yaml.safe_load(command("ddl", "--dbt", *words).out)
    assert content["version"] == 2
    (source,) = content["sources"]
    return dict(source)


def test_every_table_and_view_is_a_source_with_the_meaning_of_its_columns(command: Command) -> None:
    source = printed(command)
    assert (source["name"], source["schema"]) == ("quotaflow", "main")
    assert "database" not in source
    described = {each["name"]: each for each in source["tables"]}
    assert list(described) == list(EVERY)
    for name, each in EVERY.items():
        assert described[name]["description"] == each.comment
        columns = [{"name": c.name, "description": c.comment} for c in each.columns]
        assert described[name]["columns"] == columns


def test_a_catalog_is_named(command: Command) -> None:
    source = printed(command, "requests", *CATALOG)
    assert (source["database"], source["schema"]) == ("main", "kafka")
    assert [each["name"] for each in source["tables"]] == ["requests"]


def test_only_tables_that_always_get_rows_have_a_freshness(command: Command) -> None:
    source = printed(command, "--set", "health.max_silence_s=900")
    fresh = {each["name"]: each["config"] for each in source["tables"] if "config" in each}
    assert fresh.keys() == {"requests", "traffic", "query_progress"}
    for name, config in fresh.items():
        assert config["loaded_at_field"] in TABLES[name].column_names
    assert fresh["query_progress"]["freshness"] == {
        "warn_after": {"count": 15, "period": "minute"},
        "error_after": {"count": 60, "period": "minute"},
    }
