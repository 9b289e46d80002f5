"""Each table and view has an area."""

from quotaflow.pipelines.warehouse import views
from quotaflow.schemas.areas import AREAS, OTHER, areas
from quotaflow.schemas.tables.catalog import MODULE_OF_TABLE, TABLES


def test_every_table_and_view_has_an_area() -> None:
    all_views = views.load()
    chosen = areas(all_views, {name: views.sources(view) for name, view in all_views.items()})
    assert chosen.keys() == {*TABLES, *all_views}
    # A new module or folder stands in schemas/areas.py. error_names reads no table.
    assert {name for name, area in chosen.items() if area is OTHER} == {"error_names"}


def test_each_module_and_folder_of_an_area_exists() -> None:
    folders = {view.folder for view in views.load().values()} | set(MODULE_OF_TABLE.values())
    listed = [folder for area in AREAS for folder in area.folders]
    assert len(listed) == len(set(listed))
    assert set(listed) <= folders
