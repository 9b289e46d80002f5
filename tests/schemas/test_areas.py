"""Each table and view has an area."""

from quotaflow.pipelines.warehouse import views
from quotaflow.schemas.areas import AREAS, BY_NAME
from quotaflow.schemas.tables.catalog import TABLES


def test_every_table_and_view_is_in_one_of_the_areas_and_none_of_these_is_empty() -> None:
    areas = [table.area for table in TABLES.values()]
    areas += [view.area for view in views.load().values()]
    assert {*areas} == BY_NAME.keys()


def test_no_two_areas_have_one_name_or_title() -> None:
    assert len(BY_NAME) == len(AREAS) == len({area.title for area in AREAS})
