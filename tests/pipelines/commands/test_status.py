"""status from the command line, and the same figures as Prometheus reads them."""

import socket
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from quotaflow.pipelines.commands import status
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.monitoring import health, prometheus
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.declared import ANSWER_STATE

from ...cases import cases
from ...command_line import Command, Printed
from ...rows import HOSTILE, batch, counted, row
from ...schemas.views.view_tables import make_table, make_tables
from ..streaming.test_checkpoints import checkpoint

ROOT = Path(__file__).parents[3]
ROOMY = ("--set", "health.min_free_share=0.0")
Status = Callable[..., Printed]


def fill(
    warehouse: Warehouse,
    *,
    out: int = 10,
    quarantined: int = 0,
    duplicate: int = 0,
    refused: int = 0,
    ago_s: int = 10,
) -> datetime:
    """A warehouse whose jobs ran a while ago, and left three files unread; when that was."""
    at = datetime.now(UTC) - timedelta(seconds=ago_s)
    facts = {"event_time": at, "behind_offsets": 0, "state_rows": 4}
    target = {"target": "requests", "event_time": at}
    make_tables(
        warehouse,
        {
            "query_progress": [batch(0, 3, **facts), batch(0, 5, "results", event_time=at)],
            "pipeline_progress": [
                counted(0, 3, "out", out, **target),
                counted(0, 3, "quarantined", quarantined, reason="not_json", **target),
                counted(0, 3, "left_out", duplicate, reason="duplicate", **target),
                *([counted(0, 3, "refused", refused, **target)] if refused else []),
                counted(0, 3, "left_out", 1, reason=HOSTILE, target=None, event_time=at),
            ],
        },
    )
    folder = warehouse.conf.checkpoint_folder
    checkpoint(folder, "facts", {"logs": {"0": 1}}, batch_id=3)
    source = {"reservoirId": FolderReader(warehouse).table_id("requests"), "reservoirVersion": 0}
    checkpoint(folder, "results", source, batch_id=5)
    return at


@pytest.fixture
def status_of(table_command: Command) -> Status:
    """The status of the test's tables."""
    return partial(table_command, "status")


def test_all_is_well(status_of: Status, warehouse: Warehouse) -> None:
    fill(warehouse)
    printed = status_of(*ROOMY).out
    assert printed.endswith("all is well\n")
    assert "writes now      nobody" in printed


@cases(
    ("work", "expected"),
    (
        "quarantine",
        {"quarantined": 3},
        "! facts: 30 % of its rows were quarantined (threshold: 1 %)",
    ),
    ("silence", {"ago_s": 18_000}, "! facts, results: no trigger for 5 h (threshold: 30 min)"),
)
def test_what_is_past_a_bound_is_said_and_cron_told(
    status_of: Status, work: dict[str, int], expected: str, warehouse: Warehouse
) -> None:
    fill(warehouse, **work)
    assert expected in status_of(*ROOMY, code=1).out.splitlines()


def test_an_answer_that_is_not_up_to_date_is_said(status_of: Status, warehouse: Warehouse) -> None:
    fill(warehouse)
    given = {"cluster_id": "*", "inputs": "{}", "fingerprint": ""}
    problem = f"a table is damaged {HOSTILE}"
    failed = row(ANSWER_STATE.name, datetime.now(UTC), given, answer="quota_advice", error=problem)
    made = failed | {"answer": "top_talkers", "error": None}
    make_table(warehouse, ANSWER_STATE, [failed, made])
    printed = status_of(*ROOMY, code=1).out
    (line,) = [each for each in printed.splitlines() if "up to date" in each]
    assert line.startswith("! quota_advice is not up to date since ")
    assert "a table is damaged" in line
    with prometheus.exposed(Conf(warehouse=warehouse.conf), None, warehouse.conf.folder / "prom"):
        pass
    samples = scraped((warehouse.conf.folder / "prom").read_text(encoding="utf-8"))
    assert samples["quotaflow_answers_failing",] == 1


@cases(
    ("work", "expected", "end"),
    (
        "a line again",
        {"duplicate": 20},
        "20 lines came a second time in its last hour, and each",
        "all is well",
    ),
    (
        "refused points",
        {"out": 993, "refused": 7},
        "its receiver refused 7 points in its last hour of work",
        "no job failed",
    ),
)
def test_what_a_job_cannot_help_is_said_and_no_problem(
    status_of: Status, work: dict[str, int], expected: str, end: str, warehouse: Warehouse
) -> None:
    fill(warehouse, **work)
    *_, line, last = status_of(*ROOMY).out.splitlines()
    assert line.startswith(f"? facts: {expected}")
    assert last == end


@pytest.mark.parametrize("content", ["", "{"])
def test_a_broken_state_of_results_is_a_line(
    status_of: Status, content: str, warehouse: Warehouse
) -> None:
    fill(warehouse)
    (warehouse.conf.checkpoint_folder / "results.results.json").write_text(content)
    printed = status_of(*ROOMY, code=1)
    (line,) = [each for each in printed.out.splitlines() if "results.results.json" in each]
    assert line.startswith("! results: ")
    assert "quotaflow rebuild TABLE" in line
    assert printed.err == ""


@pytest.mark.parametrize(
    ("job", "suffix"), [("request_results", "results"), ("ingest_otlp", "start")]
)
@pytest.mark.parametrize("content", ["", "{"])
def test_a_run_ends_with_one_line_where_a_state_file_is_broken(
    table_command: Command, job: str, suffix: str, content: str, warehouse: Warehouse
) -> None:
    """It starts no JVM, and asks no broker."""
    file = warehouse.checkpoint(job).with_suffix(f".{suffix}.json")
    file.parent.mkdir(parents=True)
    file.write_text(content)
    line = table_command.error("run", job, "--once", "--set", "ingest.otlp_topic=otlp", code=1)
    assert line.startswith(f"error: {file} is ")


def test_everything_as_json(status_of: Status, warehouse: Warehouse) -> None:
    fill(warehouse)
    with warehouse.lock():
        (report,) = status_of("--json", *ROOMY).rows
    jobs = {job["job"]: job for job in report["jobs"]}
    assert report["is_well"]
    assert report["lock_holder"].startswith("process ")
    assert (jobs["facts"]["batch_id"], jobs["facts"]["state_rows"]) == (3, 4)
    assert (jobs["facts"]["rows_in"], jobs["facts"]["behind_s"]) == (10, 0.0)
    assert (jobs["results"]["behind_bytes"], jobs["results"]["behind_s"]) == (0, 0.0)
    assert jobs["facts"]["last_trigger"].endswith("Z")
    documented = (ROOT / "docs/operate.md").read_text(encoding="utf-8")
    assert [key for key in report if f"`{key}`" not in documented] == []


def test_a_warehouse_nothing_ran_on_is_not_well(status_of: Status) -> None:
    assert "! no job ever ran on" in status_of(*ROOMY, code=1).out


def test_a_full_disk_and_a_stop_file_are_told(status_of: Status, warehouse: Warehouse) -> None:
    fill(warehouse)
    (warehouse.conf.folder / "STOP").touch()
    printed = status_of("--set", "health.min_free_share=1.0", code=1).out
    assert "! the disk of the tables has" in printed
    assert "STOP is there, nothing is written" in printed


def test_what_is_redrawn_is_text_whatever_it_holds(warehouse: Warehouse) -> None:
    fill(warehouse)
    conf = Conf(warehouse=warehouse.conf)
    report = health.read(conf, datetime.now(UTC))
    hostile = replace(report, problems=("[red]\x1b[31m" + HOSTILE,))
    shown = status._text(hostile)
    assert "[red]" in shown.plain
    assert "\x1b" not in shown.plain
    assert not shown.spans


def scraped(text: str) -> dict[tuple[Any, ...], float]:
    """Values by metric name and label values, in the order of the label names."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_prometheus_scrapes_what_status_says(warehouse: Warehouse) -> None:
    at = fill(warehouse, quarantined=3)
    conf = Conf(warehouse=warehouse.conf)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with prometheus.exposed(conf, str(port), None):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            text = answer.read().decode()
        samples = scraped(text)
        with (
            pytest.raises(ConfigError, match="Address already in use"),
            prometheus.exposed(conf, f"127.0.0.1:{port}", None),
        ):
            pass
    assert samples["quotaflow_up",] == 1
    assert samples["quotaflow_job_problems", "facts"] == 1
    assert samples["quotaflow_job_behind_offsets", "facts"] == 0
    assert samples["quotaflow_disk_free_ratio", "tables"] > 0
    last = samples["quotaflow_job_last_batch_timestamp_seconds", "facts"]
    assert last == pytest.approx(at.timestamp(), abs=1)
    rows = {labels: n for labels, n in samples.items() if labels[0] == "quotaflow_rows_total"}
    if at.hour or at.minute:
        name = "quotaflow_rows_total"
        assert rows == {
            (name, "out", "facts", "", "requests"): 10,
            (name, "quarantined", "facts", "not_json", "requests"): 3,
            (name, "left_out", "facts", "duplicate", "requests"): 0,
            (name, "left_out", "facts", "other", ""): 1,
        }


def test_a_run_that_ends_leaves_a_file_for_node_exporter(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    file = tmp_path / "quotaflow.prom"
    with prometheus.exposed(Conf(warehouse=warehouse.conf), None, file):
        assert not file.exists()
    assert scraped(file.read_text(encoding="utf-8"))["quotaflow_healthy",] == 0
    assert list(tmp_path.glob("*.prom*")) == [file]


@pytest.mark.parametrize("port", ["http", "", "70000", "127.0.0.1:"])
def test_a_port_that_is_none_is_refused(table_command: Command, port: str) -> None:
    printed = table_command("run", "--once", "--metrics-port", port, code=2)
    assert "write a port, such as 9464" in printed.err


def test_a_file_that_cannot_be_written_is_said(warehouse: Warehouse, tmp_path: Path) -> None:
    file = tmp_path / "none" / "q.prom"
    with (
        pytest.raises(ConfigError, match="cannot be written"),
        prometheus.exposed(Conf(warehouse=warehouse.conf), None, file),
    ):
        pass
