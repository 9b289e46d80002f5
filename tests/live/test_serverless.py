"""What the bundle schedules on serverless compute, behind Spark Connect and on tables of a catalog.

Commands are those of jobs.yaml, each a program that finds no Java; the cluster is real, of one
broker, whose topic holds recorded lines.
"""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines.spark.failures import is_transient

from ..command_line import in_options
from ..own_process import quotaflow
from ..pipelines.spark import remote_spark
from ..test_jobs_yaml import DEFINED
from . import recent_lines
from .tables_read import query

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.timeout(3_600)]

SCHEMA = "spark_catalog.default"
NAMES = (
    *("ingest", "snapshot", "results", "plan", "quality", "notify", "upkeep"),
    *("restore", "operator_upkeep"),
)
JOBS = [f"quotaflow_{name}" for name in NAMES]
"""As docs/databricks.md runs them first."""
ADVISED = ["bob", "carol"]
"""Users of the recorded lines, for whom a plan should propose quotas by their usage."""
CONF: dict[str, Any] = {
    "ingest": {"receiver_topic": None},
    "quotas": {"advised_users": ADVISED},
    "upkeep": {"retention_days": {"requests": 1}},
    "alerts": {"receivers": [{"name": "hook", "url": "env:HOOK"}]},
    "plan": {
        "cooldown_s": 0,
        "max_input_age_s": 86_400,
        "min_history_s": 1,
        # All advised users at once.
        "canary": False,
        "max_entity_share": 1.0,
    },
    "feedback": {"signing_keys": ["env:SIGNING_KEY"]},
}
CHANGES_WAITING = 3
TRIES = 3
"""As the bundle tries a task again: a server waits only ten seconds for Python to start."""


@dataclass(frozen=True)
class Serverless:
    """Runs quotaflow against one server, whose catalog has its files in `folder`."""

    folder: Path
    environment: dict[str, str]

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """A command with this conf and catalog."""
        place = ["--conf", str(self.conf), *in_options(f"warehouse.catalog_schema={SCHEMA}")]
        return subprocess.run(
            quotaflow(*words, *place),
            capture_output=True,
            text=True,
            env=os.environ | self.environment,
            check=False,
            timeout=1_200,
        )

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """What the tables hold, as another reader sees them."""
        return query(self.folder, sql)

    def planned(self) -> set[tuple[str, str]]:
        """User and config of each change of the frozen plan."""
        rows = self.rows("SELECT entity_name, config_key FROM plans")
        return {(row["entity_name"], row["config_key"]) for row in rows}

    @property
    def conf(self) -> Path:
        return self.folder / "conf.yaml"


@pytest.fixture(scope="module")
def serverless(
    golden: Path, webhook: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Serverless]:
    folder = tmp_path_factory.mktemp("serverless")
    with LocalCluster(folder / "cluster", nodes=1) as cluster:
        recent_lines.send(cluster, golden / "lines")
        login = cluster.client_properties("admin")
        secrets = {"JAAS": login.pop("sasl.jaas.config"), "HOOK": webhook}
        secrets["SIGNING_KEY"] = "k" * 32
        kafka = {"properties": login | {"sasl.jaas.config": "env:JAAS"}}
        own = {"kafka": kafka, "warehouse": {"checkpoints": str(folder / "checkpoints")}}
        (folder / "conf.yaml").write_text(yaml.safe_dump(CONF | own))
        settings = {"spark.sql.warehouse.dir": str(folder)}
        with remote_spark.connect_server(folder, settings) as client:
            yield Serverless(folder, client | secrets)


def commands(job: str) -> Iterator[list[str]]:
    """What a job of the bundle runs, without the place of its conf and tables."""
    for task in DEFINED[job]["tasks"]:
        words: list[str] = task["python_wheel_task"]["parameters"]
        yield words[: words.index("--conf")]


def test_what_is_run_is_what_runs_on_serverless_compute() -> None:
    assert {name for name, job in DEFINED.items() if "environments" in job} == set(JOBS)


@pytest.fixture(scope="module")
def outputs(serverless: Serverless) -> dict[str, str]:
    """Every task of the bundle was run, in order; what each said."""
    by_task = {}
    for words in (words for job in JOBS for words in commands(job)):
        for _ in range(TRIES):
            done = serverless.run(*words)
            if done.returncode == 0 or not is_transient(done.stderr):
                break
        by_task[" ".join(words)] = done.stdout + done.stderr
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return by_task


@pytest.mark.shows("runs on one machine, behind Spark Connect and on Databricks")
def test_every_task_does_its_work(serverless: Serverless, outputs: dict[str, str]) -> None:
    # Of the other proposals usage is known for one window only, which is too short for any plan.
    assert serverless.planned() == {("carol", "producer_byte_rate")}
    assert "1 change waits in plan" in outputs["plan --save --exit-zero"]
    assert " 0 critical and 1 other not met" in outputs["check"]
    assert "not met: shipped_in_time" in outputs["check"]
    assert re.search(r"\b[1-9]\d* sent", outputs["notify"])
    counts = {
        row["outcome"]: row["n"]
        for row in serverless.rows(
            "SELECT outcome, sum(row_count) AS n FROM pipeline_progress "
            "WHERE target = 'requests' AND outcome IN ('out', 'removed') GROUP BY outcome"
        )
    }
    # The other one is of the operator's records.
    (upkeep,) = (output for task, output in outputs.items() if task.startswith("upkeep --except"))
    assert f"requests: removing {counts['removed']} rows" in upkeep
    (kept,) = serverless.rows(
        "SELECT count(*) AS n, min(greatest(event_time, record_time)) AS first FROM requests"
    )
    assert kept["n"] == counts["out"] - counts["removed"] > 0
    assert counts["removed"] > 0
    assert kept["first"] > datetime.now(UTC) - timedelta(days=1)


@pytest.mark.usefixtures("outputs")
def test_a_plan_is_applied_and_given_back(serverless: Serverless) -> None:
    (plan,) = serverless.rows("SELECT DISTINCT plan_id FROM plans")
    changes = len(serverless.planned())
    tried = serverless.run("apply", plan["plan_id"])
    assert (tried.returncode, tried.stdout.count("accepted   user")) == (CHANGES_WAITING, changes)
    for words in (("apply", plan["plan_id"], "--yes"), ("restore", "--all", "--yes")):
        done = serverless.run(*words)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("done       user") == changes
    steps = "SELECT purpose, step, count(*) AS n FROM config_changes GROUP BY purpose, step"
    assert [row["n"] for row in serverless.rows(steps)] == [changes] * 4
    assert serverless.rows("SELECT * FROM feedback_locks") == []


@pytest.mark.usefixtures("outputs")
def test_a_report_reads_the_catalog(serverless: Serverless) -> None:
    done = serverless.run("report", "--out", "-")
    assert done.returncode == 0, done.stderr
    assert "carol" in done.stdout
