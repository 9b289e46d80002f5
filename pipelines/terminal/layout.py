"""How rows are printed: as a table, as one block a row, as JSON or as CSV, and which columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from quotaflow.pipelines.errors import ConfigError, nearest


@dataclass(frozen=True, slots=True)
class Layout:
    """The options of a command that prints rows.

    `columns`: the columns to print, in this order; None for those of the command. `is_wide`: every
    column and whole cells, however wide the terminal is. `is_vertical`: one line per column.
    `is_paged`: a table goes through a pager.
    """

    as_json: bool = False
    as_csv: bool = False
    columns: tuple[str, ...] | None = None
    is_wide: bool = False
    is_vertical: bool = False
    is_paged: bool = False

    @property
    def is_for_programs(self) -> bool:
        """Whether all rows are printed, with exact values."""
        return self.as_json or self.as_csv

    def chosen(self, names: Sequence[str]) -> list[str]:
        """The names to print. Raises ConfigError with the nearest right name for an unknown one."""
        if self.columns is None:
            return list(names)
        for column in self.columns:
            if column not in names:
                raise ConfigError(f"--columns: no column {column}{nearest(column, names)}")
        return list(self.columns)

    def object(self, row: dict[str, Any]) -> dict[str, Any]:
        """A row as an object of JSON: all that it has, or the chosen columns."""
        return row if self.columns is None else {name: row.get(name) for name in self.columns}


def from_options(
    *,
    as_json: bool,
    as_csv: bool,
    columns: str | None = None,
    is_wide: bool = False,
    is_vertical: bool = False,
) -> Layout:
    """The layout of these options. Raises ConfigError for options that exclude each other."""
    forms = {"--json": as_json, "--csv": as_csv, "--vertical": is_vertical, "--wide": is_wide}
    given = [option for option, is_given in forms.items() if is_given]
    if len(given) > 1:
        raise ConfigError(f"{given[0]} and {given[1]} exclude each other: give one")
    return Layout(as_json, as_csv, _names(columns), is_wide, is_vertical)


def _names(columns: str | None) -> tuple[str, ...] | None:
    if columns is None:
        return None
    names = tuple(name.strip() for name in columns.split(",") if name.strip())
    if not names:
        raise ConfigError("--columns names no column: write --columns name,rows")
    return tuple(dict.fromkeys(names))
