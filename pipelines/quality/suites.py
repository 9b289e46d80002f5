"""The checks of each table: those of its declaration, and those of conf/expectations."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from string import Template
from typing import Any

import pyarrow as pa
import yaml

from quotaflow.schemas.table import DOUBLE, INT, LONG, Column, Table
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import QUALITY_RESULTS

CRITICAL, WARNING = "critical", "warning"
NOT_NULL = "expect_column_values_to_not_be_null"
BETWEEN = "expect_column_values_to_be_between"
ONE_OF = "expect_column_values_to_be_in_set"
ORDER = "expect_column_pair_values_a_to_be_greater_than_b"
LENGTHS = "expect_column_value_lengths_to_be_between"
SQL, SQL_TEXT = "unexpected_rows_expectation", "unexpected_rows_query"
_OWN_COLUMNS = ("column", "column_A", "column_B")
_NEVER_NULL = {
    *("cluster_id", "event_date"),
    *("source_topic", "source_partition", "source_offset", "record_time"),
}
_RATE = "_per_s"
_NO_LIMIT = "-1: no limit"
"""What the comment of a column says where that is one of its values."""
_AMOUNTS = ("bytes", "_ms", "_count", _RATE)


@dataclass(frozen=True, slots=True)
class Check:
    """One expectation of great-expectations; `name` is unique within the suite.

    `remedy` says what to do where rows are not so; without one wording.py has that of its kind.
    """

    name: str
    kind: str
    kwargs: Mapping[str, Any]
    severity: str = CRITICAL
    description: str | None = None
    remedy: str | None = None
    columns: Sequence[str] = ()

    @property
    def column_name(self) -> str | None:
        """The columns that it is about; None if its SQL alone names them."""
        named = [self.kwargs[key] for key in _OWN_COLUMNS if key in self.kwargs]
        return ", ".join([*named, *self.columns]) or None

    @property
    def configuration(self) -> dict[str, Any]:
        """The configuration of the expectation for great-expectations."""
        return {
            "type": self.kind,
            "kwargs": dict(self.kwargs),
            "severity": self.severity,
            "description": self.description,
            "meta": {"name": self.name},
        }


def load(values: Mapping[str, object]) -> dict[str, tuple[Check, ...]]:
    """The suite of every table but quality_results, with these values for $names in its SQL."""
    checked = (table for table in TABLES.values() if table != QUALITY_RESULTS)
    return {table.name: (*declared(table), *expected(table.name, values)) for table in checked}


def declared(table: Table) -> Iterator[Check]:
    """Checks that follow from a table's declaration: keys, and amounts that are never negative.

    A client may have sent an amount, so only a rate, which is always computed by us, is critical.
    """
    for column in table.columns:
        if column.name in _NEVER_NULL or column.name == table.time:
            yield Check(f"{column.name}_not_null", NOT_NULL, {"column": column.name})
        if _is_amount(column):
            severity = CRITICAL if column.name.endswith(_RATE) else WARNING
            bounds = {"column": column.name, "min_value": 0}
            yield Check(f"{column.name}_not_negative", BETWEEN, bounds, severity)
    # Spark can neither sort nor hash a map.
    if not any(
        pa.types.is_map(column.type) for column in table.columns if column.name in table.key
    ):
        yield _unique(table.key)


def _unique(key: Sequence[str]) -> Check:
    """Not expect_compound_columns_to_be_unique: it sorts whole rows, and took 57 s for 49,000."""
    columns = ", ".join(key)
    sql = (
        f"SELECT {columns}, times FROM (SELECT {columns}, count(*) OVER (PARTITION BY {columns}) "
        "AS times FROM {batch}) AS counted WHERE times > 1"
    )
    words = f"no two rows have the same {columns}"
    return Check("key_unique", SQL, {SQL_TEXT: sql}, CRITICAL, words, columns=tuple(key))


def _is_amount(column: Column) -> bool:
    is_limit = _NO_LIMIT in column.comment
    return column.type in (INT, LONG, DOUBLE) and column.name.endswith(_AMOUNTS) and not is_limit


def expected(table: str, values: Mapping[str, object]) -> Iterator[Check]:
    """The checks of a table in conf/expectations."""
    file = resources.files("quotaflow.conf") / "expectations" / f"{table}.yaml"
    if not file.is_file():
        return
    text = Template(file.read_text(encoding="utf-8")).substitute(values)
    for check in yaml.safe_load(text)["expectations"]:
        meta, words = check["meta"], check.get("description")
        of_kind = check["type"], check["kwargs"], check["severity"]
        yield Check(meta["name"], *of_kind, words, meta.get("remedy"))
