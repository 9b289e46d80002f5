"""Every key of conf is described, and pages name no key that conf lacks."""

import re
from functools import cache
from pathlib import Path

import pytest

from quotaflow.pipelines.config import Conf, load
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.reference import conf_keys

from ..documented_commands import PAGES

PAGE = Path(__file__).parents[2] / "docs" / "conf.md"
# What begins with these elsewhere is Spark's or Kafka's own: spark.sql..., kafka.request.logger.
SHARED = {"spark", "kafka"}


def test_every_key_is_described_in_the_schema_and_on_the_page() -> None:
    described = set(re.findall(r"^\| `(.+?)` \| .+ \| .+\. \|$", conf_keys.text(), re.M))
    assert {key.path for key in conf_keys.each_key()} - described == set()


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


@cache
def defaults_of_keys() -> dict[str, str]:
    return {key.path: key.default for key in conf_keys.each_key()}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_key_that_a_page_names_is_one(page: Path) -> None:
    defaults = defaults_of_keys()
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
