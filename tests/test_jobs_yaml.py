"""The bundle as Databricks reads it: no unknown key, and every task runs what the wheel has."""

import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from databricks.sdk.service.catalog import SchemaInfo, VolumeInfo
from databricks.sdk.service.jobs import JobAccessControlRequest, JobSettings
from packaging.requirements import Requirement

from quotaflow.pipelines import config
from quotaflow.pipelines.__main__ import app
from quotaflow.pipelines.jobs.registry import GROUPS, JOBS
from quotaflow.schemas import grants

from . import bundle
from .bundle import DEV, PROD, ROOT, TARGETS, lost

JOBS_TEXT = (ROOT / "jobs.yaml").read_text(encoding="utf-8")
# The other compute, as the file's own comment says to choose it.
ON_CLUSTERS = re.sub(r"<<: \*serverless_(job|task|quality_task)\b", r"<<: *cluster_\1", JOBS_TEXT)
BUNDLE = bundle.load()
FILES = [ROOT / name for name in ("databricks.yml", *BUNDLE["include"])]


@cache
def resolved(target: str, text: str = JOBS_TEXT) -> dict[str, Any]:
    """The bundle of a target; read it only."""
    return bundle.resolve(target, text)


def resources_of(target: str) -> Any:
    """What the bundle makes beside jobs, as it is deployed."""
    return resolved(target)["resources"]


def jobs_of(text: str, target: str = PROD) -> dict[str, Any]:
    """Every job of the bundle as it is deployed."""
    jobs: dict[str, Any] = resolved(target, text)["resources"]["jobs"]
    return jobs


DEFINED = jobs_of(JOBS_TEXT)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("text", [JOBS_TEXT, ON_CLUSTERS], ids=["serverless", "clusters"])
@pytest.mark.parametrize("name", DEFINED)
def test_a_strict_round_trip_loses_nothing(name: str, text: str, target: str) -> None:
    job = dict(jobs_of(text, target)[name])
    for allowed in job.pop("permissions", []):
        level = {**allowed, "permission_level": allowed["level"]}
        del level["level"]
        assert lost(level, JobAccessControlRequest.from_dict(level).as_dict()) == []
    assert lost(job, JobSettings.from_dict(job).as_dict()) == []


def test_the_round_trip_does_find_an_unknown_key_and_a_wrong_word() -> None:
    planted = {
        "name": "x",
        "max_concurent_runs": 1,
        "continuous": {"pause_status": "RUNNING"},
        "tasks": [{"task_key": "a", "depend_on": []}],
    }
    differences = lost(planted, JobSettings.from_dict(planted).as_dict())
    assert differences == [".max_concurent_runs", ".continuous.pause_status"]


BY_HAND = {"quotaflow_apply"}
PAUSED_IN_PROD = {"quotaflow_ingest_continuous", "quotaflow_notify"}


def paused(target: str) -> dict[str, bool]:
    """Whether each job that starts by itself is paused."""
    return {
        name: job[kind]["pause_status"] == "PAUSED"
        for name, job in jobs_of(JOBS_TEXT, target).items()
        for kind in job.keys() & {"schedule", "continuous", "trigger"}
    }


def test_target_dev_starts_nothing_by_itself_and_prod_does() -> None:
    started = set(DEFINED) - BY_HAND
    assert paused(DEV) == dict.fromkeys(started, True)
    assert paused(PROD) == {name: name in PAUSED_IN_PROD for name in started}


def test_no_variable_of_a_target_is_undeclared() -> None:
    for target in TARGETS:
        assert BUNDLE["targets"][target].get("variables", {}).keys() <= BUNDLE["variables"].keys()


def test_target_dev_has_no_name_of_prod() -> None:
    """A copy beside prod in one workspace must neither take nor change what prod has."""
    names = {
        target: {
            resource.get("display_name") or resource["name"]
            for kind in ("jobs", "dashboards", "schemas", "secret_scopes")
            for resource in resources_of(target)[kind].values()
        }
        for target in TARGETS
    }
    assert not names[DEV] & names[PROD]
    assert {f"[dev you] {job['name']}" for job in DEFINED.values()} <= names[DEV]
    volumes = resources_of(DEV)["volumes"].values()
    assert {volume["schema_name"] for volume in volumes} == {"dev_you_quotaflow"}


def words_of(task: dict[str, Any]) -> list[str]:
    """The command that a task runs."""
    words: list[str] = task["python_wheel_task"]["parameters"]
    return words


def given_to(option: str, words: list[str]) -> list[str]:
    """The values of an option of a command."""
    return [words[i + 1] for i, word in enumerate(words) if word == option]


def conf_of(task: dict[str, Any]) -> config.Conf:
    """The conf of the bundle, as a task has it."""
    (file,) = given_to("--conf", words_of(task))
    path = ROOT / file.removeprefix("/Workspace/files/")
    return config.load(path, given_to("--set", words_of(task)))


@pytest.mark.parametrize("target", TARGETS)
def test_only_prod_writes_to_brokers(target: str) -> None:
    writers = {"apply", "restore"}
    for job in jobs_of(JOBS_TEXT, target).values():
        for task in job["tasks"]:
            may_write = conf_of(task).feedback.may_write
            assert words_of(task)[0] not in writers or may_write == (target == PROD)


def test_what_holds_data_is_destroyed_in_target_dev_alone() -> None:
    for target in TARGETS:
        kept = {
            (kind, name): "lifecycle" in resource and resource["lifecycle"]["prevent_destroy"]
            for kind in ("schemas", "volumes", "secret_scopes")
            for name, resource in resources_of(target)[kind].items()
        }
        assert set(kept.values()) == {target == PROD}, kept


def test_a_deployment_uploads_conf_and_no_other_folder() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.splitlines()
    folders = {path.split("/")[0] for path in listed if "/" in path}
    excluded = {pattern.removesuffix("/**") for pattern in BUNDLE["sync"]["exclude"]}
    assert folders - excluded == {"conf", "src"}, "src has links to folders, which are no files"
    assert excluded <= folders


def test_no_value_is_a_name_of_an_earlier_release() -> None:
    """`SINGLE_USER` and `USER_ISOLATION` are the names of access modes before 2025."""
    modes = {
        cluster["new_cluster"]["data_security_mode"]
        for job in jobs_of(ON_CLUSTERS).values()
        for cluster in job["job_clusters"]
    }
    assert modes == {"DATA_SECURITY_MODE_DEDICATED"}


def test_target_dev_has_a_schema_and_a_secret_scope_of_its_own() -> None:
    names = {
        target: (
            resources["schemas"]["tables"]["name"],
            resources["schemas"]["ledger"]["name"],
            resources["volumes"]["files"]["schema_name"],
            resources["secret_scopes"]["kafka"]["name"],
            resources["secret_scopes"]["operator"]["name"],
        )
        for target in TARGETS
        for resources in [resources_of(target)]
    }
    assert names == {
        DEV: (
            "dev_you_quotaflow",
            "dev_you_quotaflow_ledger",
            "dev_you_quotaflow",
            "quotaflow_dev_you",
            "quotaflow_operator_dev_you",
        ),
        PROD: ("quotaflow", "quotaflow_ledger", "quotaflow", "quotaflow", "quotaflow_operator"),
    }


@pytest.mark.parametrize("text", [JOBS_TEXT, ON_CLUSTERS], ids=["serverless", "clusters"])
@pytest.mark.parametrize("name", DEFINED)
def test_every_task_runs_where_its_job_says(name: str, text: str) -> None:
    job = jobs_of(text)[name]
    clusters = {cluster["job_cluster_key"] for cluster in job.get("job_clusters", [])}
    environments = {environment["environment_key"] for environment in job.get("environments", [])}
    keys = {task["task_key"] for task in job["tasks"]}
    for task in job["tasks"]:
        of_cluster = task.get("job_cluster_key") in clusters and task["libraries"]
        assert bool(of_cluster) != (task.get("environment_key") in environments)
        assert {environment["task_key"] for environment in task.get("depends_on", [])} <= keys
    assert job["max_concurrent_runs"] == 1
    assert job["queue"]["enabled"]


def test_what_is_continuous_runs_on_a_cluster_or_reads_what_is_there_and_ends() -> None:
    for job in DEFINED.values():
        for task in job["tasks"]:
            words = words_of(task)
            assert ("--every" not in words) or "job_cluster_key" in task


def test_every_job_of_the_wheel_has_a_task_and_every_task_a_command() -> None:
    tasks = [task["python_wheel_task"] for job in DEFINED.values() for task in job["tasks"]]
    assert {(task["package_name"], task["entry_point"]) for task in tasks} == {
        ("quotaflow", "quotaflow")
    }
    called = [task["parameters"] for task in tasks]
    run = [words[1] for words in called if words[0] == "run" and "--once" in words]
    assert sorted(job for name in run for job in GROUPS.get(name, (name,))) == sorted(JOBS)
    others = [words[0] for words in called if words[0] != "run"]
    assert " ".join(others) == "snapshot restore plan apply notify check upkeep upkeep"


OPERATORS = ("apply", "plan", "restore")
"""Commands that write to brokers, or freeze what an apply writes."""


@pytest.mark.parametrize("target", TARGETS)
def test_the_jobs_that_write_to_brokers_have_an_identity_and_secrets_of_their_own(
    target: str,
) -> None:
    scopes = resources_of(target)["secret_scopes"]
    for job in jobs_of(JOBS_TEXT, target).values():
        for task in job["tasks"]:
            words = words_of(task)
            is_operator = "run_as" in job
            mine, others = ("operator", "kafka") if is_operator else ("kafka", "operator")
            assert f"secrets.scope={scopes[mine]['name']}" in words
            assert f"secrets.scope={scopes[others]['name']}" not in words
            file = "conf/databricks-operator.yaml" if is_operator else "conf/databricks.yaml"
            assert words[words.index("--conf") + 1].endswith(file)
            assert words[0] not in OPERATORS or is_operator
            assert words[0] not in {"run", "snapshot", "check", "notify"} or not is_operator


def test_each_identity_maintains_the_tables_that_it_may_change() -> None:
    (records,) = (t for t in DEFINED["quotaflow_operator_upkeep"]["tasks"])
    words = words_of(records)
    assert set(words[1 : words.index("--conf")]) == grants.OPERATOR_TABLES
    (rest,) = DEFINED["quotaflow_upkeep"]["tasks"]
    assert set(given_to("--except", words_of(rest))) == grants.OPERATOR_TABLES


@pytest.mark.parametrize("name", DEFINED)
def test_every_task_calls_a_command_with_options_it_has(name: str) -> None:
    commands: Any = typer.main.get_command(app())
    for task in DEFINED[name]["tasks"]:
        command, *words = words_of(task)
        commands.commands[command].make_context(command, list(words))


@pytest.mark.parametrize("given", ["--json", "--set=plan.max_entity_share=1", "--", ""])
def test_what_is_applied_is_named_by_its_parameter_whatever_that_is(given: str) -> None:
    commands: Any = typer.main.get_command(app())
    (task,) = DEFINED["quotaflow_apply"]["tasks"]
    command, *words = words_of(task)
    words = [word.replace("{{job.parameters.plan_id}}", given) for word in words]
    assert commands.commands[command].make_context(command, words).params["plan_id"] == given


@pytest.mark.parametrize("name", DEFINED)
def test_every_parameter_of_a_run_is_declared(name: str) -> None:
    declared = {parameter["name"] for parameter in DEFINED[name].get("parameters", [])}
    used = set(re.findall(r"\{\{job\.parameters\.(\w+)\}\}", repr(DEFINED[name]["tasks"])))
    assert used == declared


@pytest.mark.parametrize("text", [JOBS_TEXT, ON_CLUSTERS], ids=["serverless", "clusters"])
def test_checks_alone_have_what_they_need_as_the_wheel_asks_for_it(text: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = Requirement(*project["optional-dependencies"]["quality"])
    for name, job in jobs_of(text).items():
        installed = {
            environment["environment_key"]: environment["spec"]["dependencies"]
            for environment in job.get("environments", [])
        }
        for task in job["tasks"]:
            libraries = task.get("libraries", ())
            given = installed.get(task.get("environment_key"), []) + [
                library["pypi"]["package"] for library in libraries if "pypi" in library
            ]
            checks = [each for each in given if re.split("[=<>]", each)[0] == required.name]
            assert len(checks) == (name == "quotaflow_quality")
            for each in checks:
                assert not Requirement(each).specifier or str(Requirement(each)) in pinned(BUNDLED)


BUNDLED = ROOT / "conf" / "bundle-constraints.txt"


def pinned(constraints: Path) -> list[str]:
    return [line for line in constraints.read_text("utf-8").splitlines() if line[:1] != "#"]


def test_serverless_packages_are_those_of_the_platform_and_of_the_release() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["quality"]]
    for job in DEFINED.values():
        for environment in job.get("environments", []):
            files = [
                ROOT / line.removeprefix("--constraint /Workspace/files/")
                for line in environment["spec"]["dependencies"][:2]
            ]
            assert files[1] == BUNDLED
            listed = [Requirement(line).name for file in files for line in pinned(file)]
            assert len(listed) == len(set(listed))
            assert {Requirement(each).name for each in needed} <= set(listed)
            version = environment["spec"]["environment_version"]
            assert files[0].name == f"serverless-{version}.txt"
    released = [line.replace("_", "-") for line in pinned(ROOT / "constraints.txt")]
    direct = {Requirement(each).name for each in needed}
    for line in pinned(BUNDLED):
        assert line in released or Requirement(line).name not in direct


def test_every_variable_is_declared_and_every_declared_one_is_used() -> None:
    used = {name for file in FILES for name in re.findall(r"\$\{var\.(\w+)\}", file.read_text())}
    assert used == set(BUNDLE["variables"])


def test_a_dashboard_reads_the_schema_that_the_tasks_fill() -> None:
    (dashboard,) = yaml.safe_load((ROOT / "dashboards.yaml").read_text())["resources"][
        "dashboards"
    ].values()
    made = re.findall(r"> (\S+)$", BUNDLE["experimental"]["scripts"]["preinit"])
    assert made == [dashboard["file_path"].removeprefix("./")]
    place = f"{dashboard['dataset_catalog']}.{dashboard['dataset_schema']}"
    assert f"warehouse.catalog_schema={place}" in JOBS_TEXT


def test_what_the_catalog_holds_is_declared_as_the_catalog_names_it() -> None:
    resources = resources_of(PROD)
    for schema in resources["schemas"].values():
        assert lost(schema, SchemaInfo.from_dict(schema).as_dict()) == [".lifecycle"]
    for volume in resources["volumes"].values():
        assert lost(volume, VolumeInfo.from_dict(volume).as_dict()) == [".lifecycle"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", DEFINED)
def test_the_conf_of_the_bundle_is_valid_in_the_place_the_tasks_name(
    name: str, target: str
) -> None:
    resources = resources_of(target)
    schema = resources["schemas"]["tables"]["name"]
    job = jobs_of(JOBS_TEXT, target)[name]
    scope = resources["secret_scopes"]["operator" if "run_as" in job else "kafka"]["name"]
    for task in job["tasks"]:
        conf = conf_of(task)
        assert conf.warehouse.catalog_schema == f"main.{schema}"
        ledger = resources["schemas"]["ledger"]["name"]
        assert conf.warehouse.ledger_schema == f"main.{ledger}"
        assert str(conf.warehouse.checkpoint_folder) == path_of(resources, "checkpoints")
        assert conf.kafka.properties["sasl.password"] == f"secret:{scope}/kafka-password"
        # The certificate of Kafka's CA is no secret, and the same for both.
        certificates = Path(conf.kafka.properties["ssl.truststore.location"])
        assert str(certificates.parent) == path_of(resources_of(PROD), "files")


def path_of(resources: Any, volume: str) -> str:
    declared = resources["volumes"][volume]
    return f"/Volumes/{declared['catalog_name']}/{declared['schema_name']}/{declared['name']}"
