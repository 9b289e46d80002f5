"""jobs.yaml as Databricks reads it: no unknown key, and every task runs what the wheel has."""

import re
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from databricks.sdk.service.jobs import JobSettings

from quotaflow.pipelines import config
from quotaflow.pipelines.__main__ import app
from quotaflow.pipelines.jobs import JOBS

ROOT = Path(__file__).parent.parent
BUNDLE = yaml.safe_load((ROOT / "databricks.yml").read_text())
DEFINED = yaml.safe_load((ROOT / "jobs.yaml").read_text())["resources"]["jobs"]


def lost(given: Any, kept: Any, path: str = "") -> list[str]:
    """Paths of `given` that a round trip through the SDK's own classes dropped or changed."""
    if isinstance(given, dict) and isinstance(kept, dict):
        return [p for key, v in given.items() for p in lost(v, kept.get(key), f"{path}.{key}")]
    if isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        pairs = enumerate(zip(given, kept, strict=True))
        return [p for i, (a, b) in pairs for p in lost(a, b, f"{path}[{i}]")]
    return [] if given == kept else [path]


@pytest.mark.parametrize("name", DEFINED)
def test_a_strict_round_trip_loses_nothing(name: str) -> None:
    assert lost(DEFINED[name], JobSettings.from_dict(DEFINED[name]).as_dict()) == []


def test_the_round_trip_does_find_an_unknown_key() -> None:
    planted = {"name": "x", "max_concurent_runs": 1, "tasks": [{"task_key": "a", "depend_on": []}]}
    found = lost(planted, JobSettings.from_dict(planted).as_dict())
    assert found == [".max_concurent_runs", ".tasks[0].depend_on"]


def test_every_task_runs_a_job_that_exists_and_every_job_that_is_on_has_a_task() -> None:
    tasks = [task for job in DEFINED.values() for task in job["tasks"]]
    run = [task["python_wheel_task"] for task in tasks]
    assert {(task["package_name"], task["entry_point"]) for task in run} == {
        ("quotaflow", "quotaflow")
    }
    ingest = config.load(ROOT / "conf" / "databricks.yaml").ingest
    on = [name for name, job in JOBS.items() if not job.topic or getattr(ingest, job.topic)]
    called = [task["parameters"][:2] for task in run]
    jobs = [words[1] for words in called if words[0] == "run"]
    assert sorted(jobs) == sorted(on)
    others = [words[0] for words in called if words[0] != "run"]
    assert others == ["snapshot", "restore", "plan", "apply"]


@pytest.mark.parametrize("name", DEFINED)
def test_every_task_calls_a_command_with_options_it_has(name: str) -> None:
    commands: Any = typer.main.get_command(app())
    for task in DEFINED[name]["tasks"]:
        command, *words = task["python_wheel_task"]["parameters"]
        commands.commands[command].make_context(command, list(words))


def test_every_variable_is_declared() -> None:
    used = set(re.findall(r"\$\{var\.(\w+)\}", (ROOT / "jobs.yaml").read_text()))
    assert used == set(BUNDLE["variables"])


def test_the_databricks_conf_is_valid() -> None:
    conf = config.load(ROOT / "conf" / "databricks.yaml")
    assert conf.warehouse.catalog_schema == "main.quotaflow"
