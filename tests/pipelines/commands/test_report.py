"""`quotaflow report`: where it writes, and what it says when it cannot."""

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.commands import report
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.control import PIPELINE_PROGRESS

from ...schemas.views.view_tables import make_table


def test_a_second_report_takes_the_place_of_the_first(
    warehouse: Warehouse, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Only this table, so that the other sections end at once: their tables do not exist.
    make_table(warehouse, PIPELINE_PROGRESS, [])
    out = tmp_path / "today.html"
    out.write_text("yesterday")
    command = ["report", "--out", str(out), "--set", f"warehouse.path={warehouse.conf.path}"]
    for _ in range(2):
        assert execute(command) == 0
        assert capsys.readouterr().out == f"wrote {out}\n"
        assert out.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["today.html"]


def test_a_page_goes_to_stdout(
    warehouse: Warehouse,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_table(warehouse, PIPELINE_PROGRESS, [])
    monkeypatch.chdir(tmp_path)
    command = ["report", "--out", "-", "--set", f"warehouse.path={warehouse.conf.path}"]
    assert execute(command) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("<!DOCTYPE html>")
    assert printed.rstrip().endswith("</html>")
    assert not (tmp_path / "-").exists()


def test_a_pipe_is_written_to_and_not_replaced(warehouse: Warehouse, tmp_path: Path) -> None:
    make_table(warehouse, PIPELINE_PROGRESS, [])
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as other:
        page = other.submit(pipe.read_text, "utf-8")
        command = ["report", "--out", str(pipe), "--set", f"warehouse.path={warehouse.conf.path}"]
        assert execute(command) == 0
        assert page.result().startswith("<!DOCTYPE html>")
    assert pipe.is_fifo()


def test_since_counts_from_now_and_a_report_without_it_from_the_newest_event() -> None:
    now = datetime(2026, 11, 21, 12, tzinfo=UTC)
    hour = timedelta(hours=1)
    assert report.covered("6h", now - hour, now) == (now - 6 * hour, now - hour)
    assert report.covered("6h", now - 9 * hour, now) == (now - 6 * hour, now)
    assert report.covered(None, now - 9 * hour, now) == (now - 33 * hour, now - 9 * hour)


def test_where_it_cannot_write_is_one_error(
    warehouse: Warehouse, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Only this table, so that the other sections end at once: their tables do not exist.
    make_table(warehouse, PIPELINE_PROGRESS, [])
    out = tmp_path / "no" / "today.html"
    command = ["report", "--out", str(out), "--set", f"warehouse.path={warehouse.conf.path}"]
    assert execute(command) == 2
    assert capsys.readouterr().err == (
        f"error: --out {out} cannot be written: No such file or directory\n"
    )


@pytest.mark.parametrize("out", ["folder", ".", "/"])
def test_a_folder_is_refused_before_anything_is_read(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    out: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    assert execute(["report", "--out", out, "--set", "warehouse.path=never_made"]) == 2
    assert f"--out {out} cannot be written: name a file" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_no_tables_no_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "today.html"
    command = ["report", "--out", str(out), "--set", f"warehouse.path={tmp_path / 'w'}"]
    assert execute(command) == 1
    assert "pipeline_progress was never made" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--since", "yesterday"], "--since 'yesterday': write how long ago"),
        (["--cluster", "c9"], "no cluster c9 (known: )"),
    ],
)
def test_what_cannot_be_told_is_one_error(
    options: list[str], error: str, warehouse: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    # Only this table, so that the other sections end at once: their tables do not exist.
    make_table(warehouse, PIPELINE_PROGRESS, [])
    command = ["report", *options, "--set", f"warehouse.path={warehouse.conf.path}"]
    assert execute(command) == 2
    assert error in capsys.readouterr().err


def test_the_cluster_that_conf_pins_may_be_unknown_yet(
    warehouse: Warehouse, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_table(warehouse, PIPELINE_PROGRESS, [])
    out = tmp_path / "today.html"
    places = [f"warehouse.path={warehouse.conf.path}", "kafka.cluster_id=c1"]
    command = ["report", "--out", str(out), "--set", places[0], "--set", places[1]]
    assert execute(command) == 0, capsys.readouterr().err
    assert "No job has rows of a cluster yet" in out.read_text(encoding="utf-8")
