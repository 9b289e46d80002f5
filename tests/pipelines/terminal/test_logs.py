"""Lines on stderr: as text for grep, as JSON for a log system, and none that nobody asked for."""

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.terminal import logs
from quotaflow.pipelines.terminal.logs import LogLine

from ...cases import cases
from ...command_line import Command, in_options

HOSTILE = "app\x1b[2J\n2026-01-01T00:00:00Z error forged\u202e"
PASSWORD = "hunter2-secret"


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    logs.start("text")
    logs.of_command(None, logging.INFO)


def objects(printed: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed.splitlines()]


def test_a_line_of_json_has_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    logs.start("json")
    logs.of_command("run", logging.INFO)
    logs.report("starting Spark")
    logs.of_cluster("c1")
    logs.report(LogLine("batch 3, 20 rows in 2 s", job="fetches", batch=3))
    logs.report(logs.warning("trying again in 1 s", "fetches"))
    first, second, third = objects(capsys.readouterr().err)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first.pop("time"))
    assert first == {"level": "info", "job": "run", "message": "starting Spark"}
    about = {"job": "fetches", "cluster": "c1"}
    message = "fetches: batch 3, 20 rows in 2 s"
    assert second == {**about, "time": second["time"], "level": "info", "batch": 3} | {
        "message": message
    }
    assert (third["level"], third["message"]) == ("warning", "fetches: trying again in 1 s")


def test_a_line_of_text_begins_with_time_level_and_job(capsys: pytest.CaptureFixture[str]) -> None:
    logs.report(LogLine("batch 3", job="fetches", batch=3))
    line = capsys.readouterr().err
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ info fetches: batch 3\n", line)


@cases("form", ("text", "text"), ("json", "json"))
def test_what_a_client_named_ends_no_line(
    form: logs.Format, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.start(form)
    for write in (logs.report, logs.note, logs.error):
        write(HOSTILE)
        line = capsys.readouterr().err
        assert line.count("\n") == 1
        assert line.isascii()
        assert line[:-1].isprintable()
        assert all(c.isprintable() for c in (objects(line)[0]["message"] if form == "json" else ""))


def test_a_quiet_command_says_only_what_went_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    logs.of_command("run", logging.WARNING)
    logs.note("no rows")
    logs.report("reading topic")
    logs.report(logs.warning("trying again"))
    logs.error("it failed")
    warned, failed = capsys.readouterr().err.splitlines()
    assert warned.endswith("warning trying again")
    assert failed == "error: it failed"


def test_libraries_and_handlers_of_others_get_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    handler = logging.StreamHandler()
    logging.getLogger().addHandler(handler)
    try:
        logs.of_command("run", logging.DEBUG)
        logging.getLogger("botocore").debug(PASSWORD)
        logs.detail("one line")
    finally:
        logging.getLogger().removeHandler(handler)
    printed = capsys.readouterr().err
    assert printed.count("one line") == 1
    assert PASSWORD not in printed


def test_options_stand_before_the_command(command: Command, tmp_path: Path) -> None:
    place = in_options(f"warehouse.path={tmp_path}")
    detailed = command("--log-format", "json", "-v", "tables", *place).err
    assert [line["level"] for line in objects(detailed)] == ["debug"]
    assert command("-q", "tables", *place).err == ""
    (failed,) = objects(command("--log-format", "json", "show", "nope", *place, code=2).err)
    assert (failed["level"], failed["job"]) == ("error", "show")
    assert failed["message"].startswith("no table nope")
    (unknown,) = objects(command("--log-format", "json", "nope", code=2).err)
    assert unknown["level"] == "error"
    assert command.error("show", "nope", *place)
    assert "exclude each other" in command.error("-v", "-q", "tables")


def test_the_form_can_be_a_variable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QUOTAFLOW_LOG_FORMAT", "json")
    assert execute(["show", "nope"]) == 2
    assert objects(capsys.readouterr().err)


def test_no_line_has_a_password(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGIN", PASSWORD)
    conf = tmp_path / "conf.yaml"
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    login |= {
        "bootstrap.servers": "127.0.0.1:1",
        "sasl.username": "u",
        "sasl.password": "env:LOGIN",
    }
    conf.write_text(
        json.dumps({"kafka": {"properties": login}, "warehouse": {"path": str(tmp_path)}})
    )
    printed = command("--log-format", "json", "-v", "tables", "--conf", str(conf))
    assert str(conf) in objects(printed.err)[0]["message"]
    assert PASSWORD not in printed.err + printed.out
