"""Heads of views: they describe exactly the columns a view has, and their kinds are true."""

import re
from dataclasses import replace

from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.sql_dialects import tables_in
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.table import STRING, Column
from quotaflow.schemas.tables.catalog import TABLES

from ...cases import cases
from .view_tables import make_table


def reads(name: str) -> set[str]:
    """Views that a view reads."""
    loaded = views.load()
    return set(tables_in(loaded[name].sql) & loaded.keys())


@cases(
    ("order", "further"),
    ("tables with their columns as declared", 1, ()),
    # Columns added later are last in a live table, and CREATE VIEW names columns by place.
    ("tables with their columns in another order", -1, ()),
    # A column that a migration step renames stays in the table.
    ("tables with a column that is not declared", 1, (Column("former_name", STRING, "old"),)),
)
def test_a_head_describes_the_columns_of_its_view(
    folder_warehouse: Warehouse, order: int, further: tuple[Column, ...]
) -> None:
    for table in TABLES.values():
        columns = (*table.columns[::order], *further)
        make_table(folder_warehouse, replace(table, columns=columns), [])
    reader = FolderReader(folder_warehouse)
    described = {
        name: [column.name for column in view.columns] for name, view in views.load().items()
    }
    answered = {name: reader.query(f"SELECT * FROM {name} LIMIT 0").schema for name in described}
    assert described == {name: schema.names for name, schema in answered.items()}


def test_a_staging_view_reads_tables_and_staging_views_only() -> None:
    loaded = views.load()
    staging = {name for name, view in loaded.items() if view.kind == "staging"}
    assert {name: reads(name) - staging for name in staging} == {name: set() for name in staging}


def test_an_intermediate_view_is_read_by_another_one_or_by_an_answer() -> None:
    loaded = views.load()
    read = set().union(*(reads(name) for name in loaded), *(answer.views for answer in ANSWERS))
    assert {name for name, view in loaded.items() if view.kind == "intermediate"} <= read


def test_a_view_reads_tables_and_views_that_read_only_tables() -> None:
    # What stands deeper is computed again by each query: it is an answer. The times of snapshots
    # are few rows, and their text is in one place.
    loaded = views.load()
    reads_views = {name for name in loaded if reads(name) - {"snapshot_times"}}
    assert {name: reads(name) & reads_views for name in loaded} == {name: set() for name in loaded}


FILLED_WITH_NULL = {
    (
        "diagnoses",
        "why_groups_lag",
    ): """api broker_id budget client_id facts principal requests
        share usual_ms waited_ms""",
    ("diagnoses", "reassignments"): """api broker_id budget client_id evidence facts group_id lag
        lag_s principal requests share usual_ms waited_ms""",
    ("diagnoses", "cluster_symptoms"): "api budget client_id lag lag_s principal usual_ms",
    ("diagnoses", "needless_costs"): """api budget detail group_id lag lag_s requests share usual_ms
        waited_ms""",
}
"""By view and table of its union, the columns of the view that the table lacks."""


def test_a_union_fills_with_null_only_what_is_listed() -> None:
    actual = {
        (name, table): " ".join(sorted(lacked))
        for name, each in views.load().items()
        for select in each.sql.split("\nUNION ALL\n")
        for table in re.findall(r"\nFROM (\w+)", select)[-1:]
        if (lacked := re.findall(r"^    NULL AS (\w+)", select, re.M))
    }
    assert actual == {key: " ".join(names.split()) for key, names in FILLED_WITH_NULL.items()}
