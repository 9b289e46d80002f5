"""docs/conf.md has every key of conf with its default, and pages name no key that conf lacks."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from quotaflow.pipelines.config import Conf, load
from quotaflow.pipelines.config.base import Section
from quotaflow.pipelines.errors import ConfigError

from ..documented_commands import PAGES

PAGE = Path(__file__).parents[2] / "docs" / "conf.md"
REQUIRED = "required"
# What begins with these elsewhere is Spark's or Kafka's own: spark.sql..., kafka.request.logger.
SHARED = {"spark", "kafka"}


def keys(section: type[Section], above: str = "") -> Iterator[tuple[str, str]]:
    """Each key of a section and of those in it, with its default as JSON, in conf's order."""
    for name, field in section.model_fields.items():
        path, annotation = f"{above}{name}", field.annotation
        if isinstance(annotation, type) and issubclass(annotation, Section):
            yield from keys(annotation, f"{path}.")
            continue
        default = field.get_default(call_default_factory=True)
        yield path, REQUIRED if field.is_required() else json.dumps(plain(default))
        for item in get_args(annotation):
            if isinstance(item, type) and issubclass(item, Section):
                of_list = "[]" if isinstance(default, list) else ""
                yield from keys(item, f"{path}{of_list}.")


def plain(value: Any) -> Any:
    """A default as YAML has it; of a section what was given, for the rest is defaults."""
    if isinstance(value, Section):
        return value.model_dump(exclude_unset=True)
    return list(map(plain, value)) if isinstance(value, list) else value


def documented(page: str) -> list[tuple[str, str]]:
    """The rows of a page's tables of keys: each key with its default as JSON."""
    tables = re.findall(r"^\| key \| default \| .*\n\|[- |]+\n((?:\|.*\n)+)", page, re.M)
    rows = [re.findall(r"^\| `([^`]+)` \| (.+?) \| .+ \|$", table, re.M) for table in tables]
    assert sum(map(len, rows)) == "".join(tables).count("\n")
    return [(key, default(cell)) for of_table in rows for key, cell in of_table]


def default(cell: str) -> str:
    return cell if cell == REQUIRED else json.dumps(yaml.safe_load(cell.strip("`")))


def test_every_key_is_there_with_its_default() -> None:
    assert documented(PAGE.read_text(encoding="utf-8")) == list(keys(Conf))


@pytest.mark.parametrize(
    "conf", ["plan: {lease_s: 5, leases: 60}", "kafka: {properties: {sasl.password: hidden}}"]
)
def test_an_error_that_the_page_shows_is_the_one_that_is_said(
    conf: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("conf.yaml").write_text(conf, encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        load(Path("conf.yaml"))
    assert f"- `error: {raised.value}`" in PAGE.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_key_that_a_page_names_is_one(page: Path) -> None:
    defaults = dict(keys(Conf))
    sections = set(Conf.model_fields) - (set() if page == PAGE else SHARED)
    named = re.findall(rf"`({'|'.join(sections)})\.([\w.\[\]]+)[`=]", page.read_text("utf-8"))
    maps = {key for key, value in defaults.items() if value.startswith("{")}
    wrong = [
        path
        for section, name in named
        if (path := f"{section}.{name}") not in defaults
        and not any(path.startswith(f"{key}.") for key in maps)
    ]
    assert wrong == []
