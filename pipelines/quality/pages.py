"""Data Docs: a page for each table, and an index of the last result of each."""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from quotaflow.pipelines.config import Conf, expanded
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.quality.validation import Validation

_PAGES = "validations"
_INDEX = "index.html"
_TEMPLATE = "index.html.j2"
_FOLDER = "_data_docs"
# The pages would load styles and scripts from a dozen hosts, and so report to one of them.
_SEALED = """<head>
    <meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src 'self' data:;
      style-src 'self' 'unsafe-inline'; font-src 'self'">
    <style>
      body { font: 16px/1.5 system-ui, sans-serif; padding: 1rem }
      table { border-collapse: collapse } td, th { padding: .2rem .6rem; text-align: left }
      footer, img, label, [data-toggle=collapse] { display: none }
      .fa-check-circle::before { content: "met" }
      .fa-times::before { content: "not met"; color: #c62828 }
    </style>"""


def folder(conf: Conf, named: Path | None = None) -> Path:
    """The folder of the pages: that of an option, else of conf, else one beside the tables.

    Raises ConfigError if the folder has other content.
    """
    chosen = named or Path(conf.quality.data_docs or conf.warehouse.state_folder / _FOLDER)
    path = expanded(chosen)
    if path.exists() and not _is_ours(path):
        raise ConfigError(f"{path} has other content than pages of checks: name another folder")
    return path


def _is_ours(path: Path) -> bool:
    return path.is_dir() and ((path / _PAGES).is_dir() or not any(path.iterdir()))


def write(
    path: Path,
    validation: Validation,
    checked: Iterable[str],
    current_rows: list[dict[str, Any]],
    made_at: datetime,
) -> Path:
    """Replace the pages of the checked tables, and the index. Returns the path of the index.

    They are made in a temporary folder: great-expectations would remove the pages of other runs.
    """
    index = path / _INDEX
    with TemporaryDirectory() as made:
        validation.write_pages(Path(made))
        for page in Path(made).rglob("*.html"):
            page.write_text(_sealed(page.read_text(encoding="utf-8")), encoding="utf-8")
        try:
            for suite in checked:
                shutil.rmtree(path / _PAGES / suite, ignore_errors=True)
            shutil.copytree(made, path, dirs_exist_ok=True)
            index.write_text(_index(path, current_rows, made_at), encoding="utf-8")
        except OSError as error:
            raise ConfigError(
                f"the results are stored, and pages cannot be written to {path}: "
                f"{error.strerror or error}: name another folder with --docs"
            ) from None
    return index


def _sealed(page: str) -> str:
    return page.replace("<head>", _SEALED, 1)


def _pages(path: Path, suite: str) -> Iterator[Path]:
    return (path / _PAGES / suite).rglob("*.html")


def _index(path: Path, current_rows: list[dict[str, Any]], made_at: datetime) -> str:
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415  comes with the extra

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    assert __package__
    source = (resources.files(__package__) / _TEMPLATE).read_text(encoding="utf-8")
    suites = [_row(path, name, rows) for name, rows in sorted(_by_suite(current_rows).items())]
    return environment.from_string(source).render(suites=suites, made_at=made_at)


def _by_suite(current_rows: list[dict[str, Any]]) -> Mapping[str, list[dict[str, Any]]]:
    suites: dict[str, list[dict[str, Any]]] = {}
    for row in current_rows:
        suites.setdefault(row["suite"], []).append(row)
    return suites


def _row(path: Path, suite: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    page = next(_pages(path, suite), None)
    return {
        "name": suite,
        "page": page.relative_to(path).as_posix() if page else None,
        "checked_at": rows[0]["event_time"],
        "rows": rows[0]["checked_rows"],
        "checks": len(rows),
        "failed": [row for row in rows if not row["success"]],
    }
