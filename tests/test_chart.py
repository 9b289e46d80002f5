"""The chart for Kubernetes, as far as Python sees it: values, their schema, and what it runs.

tests/live/test_helm.py renders it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import typer
import yaml

from quotaflow.pipelines import config
from quotaflow.pipelines.__main__ import app
from quotaflow.pipelines.config import HealthSection
from quotaflow.pipelines.monitoring import rule_file

CHART = Path(__file__).parents[1] / "conf" / "helm" / "quotaflow"
SCHEMA = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
VALUES = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
EXAMPLES = sorted((CHART / "examples").glob("*.yaml"))


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Values over others, as Helm lays them: null takes a value away."""
    both = deepcopy({**below})
    for name, value in above.items():
        is_map = isinstance(value, Mapping) and isinstance(both.get(name), Mapping)
        both[name] = merged(both[name], value) if is_map else value
    return {name: value for name, value in both.items() if value is not None}


def given() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "values.yaml", VALUES
    for path in EXAMPLES:
        yield path.name, merged(VALUES, yaml.safe_load(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(("name", "values"), list(given()))
def test_values_fit_their_schema_and_their_conf_is_valid(
    name: str, values: dict[str, Any], tmp_path: Path
) -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    jsonschema.validate(values, SCHEMA)
    for conf in (values["conf"], merged(values["conf"], values["feedback"]["conf"])):
        (tmp_path / name).write_text(yaml.safe_dump(conf), encoding="utf-8")
        config.load(tmp_path / name)


@pytest.mark.parametrize(
    "values",
    [
        {"imag": {}},
        {"mode": "sometimes"},
        {"mode": "every"},
        {"prometheus": {"podMonitor": True}},
        {"serve": {"enabled": True}},
        {"serve": {"enabled": True}, "conf": {"serve": {"proxies": []}}},
        {"cronJobs": {"run": {"commands": [["run", "--once; rm -rf /"]]}}},
        {"volume": {"size": "much"}},
    ],
)
def test_values_that_cannot_work_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(merged(VALUES, values), SCHEMA)


def called() -> Iterator[list[str]]:
    """Each command that a pod runs, without --conf."""
    for job in VALUES["cronJobs"].values():
        yield from job["commands"]
    for path in (CHART / "templates").glob("*.yaml"):
        for words in re.findall(r"(?:args|command): \[(.*)\]", path.read_text(encoding="utf-8")):
            plain = re.sub(r"{{[^}]*metricsPort }}", "9464", words)
            plain = re.sub(r"{{[^}]*port \| quote }}", '"9465"', plain)
            plain = re.sub(r"{{[^}]*interval \| quote }}", '"60s"', plain)
            yield [word for word in yaml.safe_load(f"[{plain}]") if word not in ("quotaflow", "-q")]


def test_each_command_has_its_options() -> None:
    group: Any = typer.main.get_command(app())
    lines = list(called())
    assert {line[0] for line in lines} >= {"run", "serve", "status", "snapshot", "upkeep", "notify"}
    for command, *words in lines:
        group.commands[command].make_context(command, list(words))


def test_nothing_writes_to_brokers_unless_it_is_enabled() -> None:
    for job in VALUES["cronJobs"].values():
        if {line[0] for line in job["commands"]} & {"restore", "plan", "apply"}:
            assert job["operator"]
            assert not job["enabled"]


def test_its_rules_are_those_of_the_command() -> None:
    rules = (CHART / "files" / "rules.yaml").read_text(encoding="utf-8")
    assert rules.rstrip() == rule_file.text(HealthSection()).rstrip()
