"""`quotaflow report`: where it writes, and what it says when it cannot."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.commands import report
from quotaflow.pipelines.feedback.configs.kafka_configs import ANY_BROKER, Connection
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.declared import PIPELINE_PROGRESS

from ...command_line import Command, Printed
from ...schemas.views.view_tables import make_table

Report = Callable[..., Printed]


@pytest.fixture
def page_of(warehouse: Warehouse, table_command: Command) -> Report:
    """Reports over one table: the other sections end at once, as their tables do not exist."""
    make_table(warehouse, PIPELINE_PROGRESS, [])
    return partial(table_command, "report")


def test_a_second_report_takes_the_place_of_the_first(page_of: Report, tmp_path: Path) -> None:
    out = tmp_path / "today.html"
    out.write_text("yesterday")
    for _ in range(2):
        assert page_of("--out", str(out)).out == f"wrote {out}\n"
        assert out.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["today.html"]


def test_a_page_goes_to_stdout(
    page_of: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = page_of("--out", "-").out
    assert printed.startswith("<!DOCTYPE html>")
    assert printed.rstrip().endswith("</html>")
    assert not (tmp_path / "-").exists()


def test_a_pipe_is_written_to_and_not_replaced(page_of: Report, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as other:
        page = other.submit(pipe.read_text, "utf-8")
        page_of("--out", str(pipe))
        assert page.result().startswith("<!DOCTYPE html>")
    assert pipe.is_fifo()


def test_steps_name_no_address_that_only_the_packaged_conf_has(
    page_of: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of why do: both take the listener of the last snapshot."""
    given: list[str] = []

    def rendered(scope: Scope) -> str:
        given.append(Connection.from_conf(scope.conf.kafka).bootstrap_servers)
        return ""

    monkeypatch.setattr(report, "render_report", rendered)
    page_of("--out", "-")
    page_of("--out", "-", "--set", "kafka.properties={bootstrap.servers: 'k1:9092'}")
    assert given == [ANY_BROKER, "k1:9092"]


def test_since_counts_from_now_and_a_report_without_it_from_the_newest_event() -> None:
    now = datetime(2026, 11, 21, 12, tzinfo=UTC)
    hour = timedelta(hours=1)
    assert report.covered("6h", now - hour, now) == (now - 6 * hour, now - hour)
    assert report.covered("6h", now - 9 * hour, now) == (now - 6 * hour, now)
    assert report.covered(None, now - 9 * hour, now) == (now - 33 * hour, now - 9 * hour)


def test_where_it_cannot_write_is_one_error(page_of: Report, tmp_path: Path) -> None:
    out = tmp_path / "no" / "today.html"
    printed = page_of("--out", str(out), code=2)
    assert printed.err == f"error: --out {out} cannot be written: No such file or directory\n"


@pytest.mark.parametrize("out", ["folder", ".", "/"])
def test_a_folder_is_refused_before_anything_is_read(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    printed = command("report", "--out", out, "--set", "warehouse.path=never_made", code=2)
    assert f"--out {out} cannot be written: name a file" in printed.err
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_no_tables_no_report(table_command: Command, tmp_path: Path) -> None:
    out = tmp_path / "today.html"
    printed = table_command("report", "--out", str(out), code=1)
    assert "pipeline_progress was never made" in printed.err
    assert not out.exists()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--since", "yesterday"], "--since 'yesterday': write how long ago"),
        (["--cluster", "c9"], "no cluster c9 (known: )"),
    ],
)
def test_what_cannot_be_told_is_one_error(page_of: Report, options: list[str], error: str) -> None:
    assert error in page_of(*options, code=2).err


def test_the_cluster_that_conf_pins_may_be_unknown_yet(page_of: Report, tmp_path: Path) -> None:
    out = tmp_path / "today.html"
    page_of("--out", str(out), "--set", "kafka.cluster_id=c1")
    assert "No job has rows of a cluster yet" in out.read_text(encoding="utf-8")
