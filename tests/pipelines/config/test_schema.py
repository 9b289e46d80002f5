"""The JSON Schema of conf: it takes what `load` takes, and refuses typos."""

import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.config.schema import EDITOR_LINE, schema
from quotaflow.pipelines.reference import conf_keys

from ...cases import cases
from ...command_line import Command
from ...documented_commands import PAGES

BLOCK = re.compile(r"(?ms)^ *```yaml\n(.*?)^ *```$")


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    Draft202012Validator.check_schema(schema())
    return Draft202012Validator(schema())


def confs() -> list[Any]:
    """The conf files of the package, and the blocks of pages that have sections of conf."""
    folder = Path(str(resources.files("quotaflow.conf")))
    texts = [(file.name, file.read_text("utf-8")) for file in sorted(folder.glob("*.yaml"))]
    texts += [
        (page.name, block) for page in PAGES for block in BLOCK.findall(page.read_text("utf-8"))
    ]
    given = [(name, yaml.safe_load(text)) for name, text in texts]
    return [
        pytest.param(values, id=f"{name} {', '.join(values)}")
        for name, values in given
        if isinstance(values, dict) and values.keys() <= Conf.model_fields.keys()
    ]


@pytest.mark.parametrize("values", confs())
def test_the_schema_takes_every_conf_of_the_pages(
    validator: Draft202012Validator, values: dict[str, Any]
) -> None:
    Conf.model_validate({name: section for name, section in values.items() if section is not None})
    assert [error.message for error in validator.iter_errors(values)] == []


def test_there_are_such_confs() -> None:
    assert len(confs()) > 10


@cases(
    "text",
    ("a section", "warehous: {}"),
    ("a key", "warehouse: {pth: /data}"),
    ("a type", "warehouse: {query_memory_mb: many}"),
    ("a bound", "health: {max_silence_s: 0}"),
    ("a closed set", "kafka: {login_module_prefix: kafkashaded}"),
)
def test_the_schema_refuses(validator: Draft202012Validator, text: str) -> None:
    assert not validator.is_valid(yaml.safe_load(text))


@cases(
    "text",
    ("a section without lines", "kafka:"),
    ("a number as text", "kafka: {properties: {request.timeout.ms: 5000}}"),
    ("a truth as text", "kafka: {properties: {enable.metrics.push: false}}"),
)
def test_the_schema_takes_what_conf_makes_text_of(
    validator: Draft202012Validator, text: str
) -> None:
    assert validator.is_valid(yaml.safe_load(text))


def test_the_command_prints_it_and_names_the_line_for_editors(command: Command) -> None:
    assert json.loads(command("conf", "schema").out) == schema()
    assert EDITOR_LINE in " ".join(command("conf", "--help").out.split())


def test_the_command_describes_keys(command: Command) -> None:
    printed = command("conf", "keys", "teams").out
    assert printed.startswith(
        "teams  []\n    At most 100 teams, each with the keys of `teams[]`.\n"
    )
    assert "teams[].team  required\n" in printed
    rows = command("conf", "keys", "--json").rows
    assert {row["key"] for row in rows} == {key.path for key in conf_keys.each_key()}
    assert all(row["meaning"] for row in rows)
    assert (
        "no key of conf begins with wherehouse" in command("conf", "keys", "wherehouse", code=2).err
    )
