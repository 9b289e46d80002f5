"""Data Docs: one page with the last result of every check, in words, with what to do."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import Any

from quotaflow.pipelines.config import Conf, expanded
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.quality import wording
from quotaflow.pipelines.quality.suites import CRITICAL, Check
from quotaflow.pipelines.terminal import values
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.counted import counted, noun

_INDEX = "index.html"
_TEMPLATE = "index.html.j2"
_FOLDER = "_data_docs"
_OURS = "<title>quotaflow checks"
COMMAND = re.compile(r"`([^`]+)`")
"""A command in a remedy."""
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """The last result of a check as the page shows it.

    `steps` are texts and commands by turns, the first one a text; `query` shows the rows.
    """

    suite: str
    name: str
    words: str
    severity: str
    success: bool
    rows: str
    problem: str
    steps: tuple[str, ...]
    query: str


def folder(conf: Conf, named: Path | None = None) -> Path:
    """The folder of the page: that of an option, else of conf, else one beside the tables.

    Raises ConfigError if the folder has other content.
    """
    chosen = named or Path(conf.quality.data_docs or conf.warehouse.state_folder / _FOLDER)
    path = expanded(chosen)
    if path.exists() and not _is_ours(path):
        raise ConfigError(f"{path} has other content than pages of checks: name another folder")
    return path


def _is_ours(path: Path) -> bool:
    if not path.is_dir():
        return False
    index = path / _INDEX
    if index.is_file():
        return _OURS in index.read_text(encoding="utf-8", errors="replace")
    return not any(path.iterdir())


def write(
    path: Path,
    suites: Mapping[str, Sequence[Check]],
    current_rows: Sequence[Row],
    made_at: datetime,
) -> Path:
    """Replace the page. Returns its path.

    Raises ConfigError if it cannot be written.
    """
    index = path / _INDEX
    text = page(suites, current_rows, made_at)
    try:
        path.mkdir(parents=True, exist_ok=True)
        index.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"the results are stored, and pages cannot be written to {path}: "
            f"{error.strerror or error}: name another folder with --docs"
        ) from None
    return index


def page(
    suites: Mapping[str, Sequence[Check]], current_rows: Sequence[Row], made_at: datetime
) -> str:
    """The page as HTML. `current_rows` are those of the view current_quality."""
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415  comes with the extra

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    assert __package__
    source = (resources.files(__package__) / _TEMPLATE).read_text(encoding="utf-8")
    tables = [_table(name, rows, suites) for name, rows in _by_suite(current_rows).items()]
    failed = [result for table in tables for result in table["results"] if not result.success]
    failed.sort(key=lambda result: result.severity != CRITICAL)
    unchecked = [name for name in suites if name not in _by_suite(current_rows)]
    return environment.from_string(source).render(
        counted=counted, tables=tables, failed=failed, unchecked=unchecked, made_at=made_at
    )


def _by_suite(current_rows: Sequence[Row]) -> Mapping[str, list[Row]]:
    """Rows by table: those with failed checks first, then by name."""
    suites: dict[str, list[Row]] = {}
    for row in current_rows:
        suites.setdefault(row["suite"], []).append(row)
    is_well = {name: all(row["success"] for row in rows) for name, rows in suites.items()}
    return {name: suites[name] for name in sorted(suites, key=lambda name: (is_well[name], name))}


def _table(name: str, rows: Sequence[Row], suites: Mapping[str, Sequence[Check]]) -> dict[str, Any]:
    declared = {check.name: check for check in suites.get(name, ())}
    results = [_result(row, declared.get(row["expectation"])) for row in rows]
    table = TABLES.get(name)
    return {
        "name": name,
        "meaning": table.comment if table else "",
        "checked_at": max(row["event_time"] for row in rows),
        "rows": counted(rows[0]["checked_rows"] or 0, "row"),
        "failed": sum(not result.success for result in results),
        "results": sorted(results, key=lambda result: (result.success, result.name)),
    }


def _result(row: Row, check: Check | None) -> Result:
    """A result, of a check that this version has, or of one that it no longer has."""
    details = values.visible(row["details"] or "")
    table = TABLES.get(row["suite"])
    words = wording.expected(check) if check else details or row["expectation"]
    failed, checked = row["failed_rows"], row["checked_rows"] or 0
    is_counted = failed is not None
    steps: tuple[str, ...] = ()
    query = ""
    if check and table and not row["success"]:
        steps = _steps(wording.remedy(table, check))
        query = wording.rows_query(table.name, check)
    return Result(
        suite=row["suite"],
        name=row["expectation"],
        words=values.visible(words),
        severity=row["severity"],
        success=row["success"],
        rows=f"{failed:,} of {counted(checked, 'row')} {noun(failed, 'is', 'are')} not so"
        if is_counted
        else "It was not checked",
        problem="" if is_counted or row["success"] else details,
        steps=steps,
        query=query,
    )


def _steps(remedy: str) -> tuple[str, ...]:
    """Texts and commands by turns."""
    return tuple(COMMAND.split(remedy))
