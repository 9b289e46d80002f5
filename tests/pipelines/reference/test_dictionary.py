"""The data dictionary has every table and view, with every column."""

import re

import pytest

from quotaflow.pipelines.reference.dictionary import text
from quotaflow.pipelines.warehouse import views
from quotaflow.schemas.tables.catalog import TABLES

EVERY = TABLES | dict(views.load())


@pytest.fixture(scope="module")
def page() -> str:
    return text()


@pytest.fixture(scope="module")
def parts(page: str) -> dict[str, str]:
    """What the page says of each table and view."""
    split = re.split(r"^### (\w+)$", re.sub(r"^## .*$", "", page, flags=re.M), flags=re.M)[1:]
    return dict(zip(split[::2], split[1::2], strict=True))


def test_every_table_and_view_is_there_with_all_its_columns(parts: dict[str, str]) -> None:
    assert parts.keys() == EVERY.keys()
    for name, each in EVERY.items():
        columns = re.findall(r"^\| `(\w+)` \| `[^`]+` \|.*\| .+ \|$", parts[name], re.M)
        assert columns == [column.name for column in each.columns], name


def test_links_lead_to_headings(page: str, parts: dict[str, str]) -> None:
    assert set(re.findall(r"\]\(#(\w+)\)", page)) == parts.keys()


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("requests", "| `total_time_ms` | `DOUBLE` | ms | from receive to sent; "),
        ("client_racks", "| `cross_rack_bytes` | `BIGINT` | bytes | "),
        ("producer_id_rates", "| `rate_per_s` | `DOUBLE` | 1/s | "),
        ("current_brokers", "| `rack` | `STRING` | | "),
    ],
)
def test_a_column_has_its_type_and_unit(name: str, row: str, parts: dict[str, str]) -> None:
    assert row in parts[name]


def test_a_view_says_what_a_row_is_and_what_it_needs(parts: dict[str, str]) -> None:
    view = views.load()["producer_racks"]
    assert f"View ({view.kind}), {view.grain}. Level `{view.level}`. Reads `" in parts[view.name]
    assert "filled by `quotaflow snapshot`. Level `admin_api`" in parts["brokers"]
