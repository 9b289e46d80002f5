"""capture on a real broker: the level of its request log comes back however a capture ends."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from kafka.admin import ConfigResourceType
from kafka.protocol import admin as requests

from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.pipelines.feedback.ledger.ledger import DONE
from quotaflow.pipelines.feedback.runs import context, request_logger, restore_run
from quotaflow.pipelines.feedback.writing import exclusive_section

from . import printed_command

BROKER = 3
LOGGER = "kafka.request.logger"
TIMEOUT_S = 120.0


class CrashError(Exception):
    """The process ended here, as far as the records show."""


def level(conf: Conf) -> str:
    with exclusive_section.open_cluster(context.from_conf(conf).writes) as (cluster_id, configs):
        return configs.read(ConfigEntity(cluster_id, "broker-logger", str(BROKER)))[LOGGER]


def set_level(conf: Conf, value: str) -> None:
    alter = requests.IncrementalAlterConfigsRequest(
        resources=[(ConfigResourceType.BROKER_LOGGER.value, str(BROKER), [(LOGGER, 0, value)])]
    )
    with exclusive_section.open_cluster(context.from_conf(conf).writes) as (_, configs):
        assert configs.state.ask(alter, BROKER).responses[0].error_code == 0


@pytest.fixture(autouse=True)
def is_off(conf: Conf) -> Iterator[None]:
    """What this broker does meanwhile is in no log, and it logs again for who comes after."""
    set_level(conf, "INFO")
    yield
    set_level(conf, "DEBUG")


@pytest.mark.shows("samples lines by API, and switches the log on for a while")
def test_a_capture_that_was_killed_is_given_back_by_restore(conf: Conf) -> None:
    def passed(step: str) -> None:
        if step == "sent":
            raise CrashError

    switch = request_logger.read_switch(context.from_conf(conf), [BROKER], 600, datetime.now(UTC))
    assert (switch.levels, len(switch.plan.changes)) == ({BROKER: "INFO"}, 1)
    with pytest.raises(CrashError):
        request_logger.switched_on(
            context.from_conf(conf), switch.request, lambda _: None, on_step=passed
        )
    assert level(conf) == "DEBUG"
    _, outcomes = restore_run.restore_configs(
        context.from_conf(conf), lambda _: None, everything=True
    )
    assert [(o.step, o.change.value) for o in outcomes] == [(DONE, "INFO")]
    assert level(conf) == "INFO"


@pytest.fixture
def command(conf: Conf, login: list[str]) -> list[str]:
    overrides = [*login, f"warehouse.path={conf.warehouse.folder}"]
    options = [word for pair in overrides for word in ("--set", pair)]
    capture = ["capture", "--broker", str(BROKER), "--for", "10m"]
    return [sys.executable, "-m", "quotaflow.pipelines", *capture, *options]


@pytest.mark.faults
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_end_from_outside(
    conf: Conf, command: list[str], ending: signal.Signals, tmp_path: Path
) -> None:
    log = tmp_path / "stderr"
    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            [*command, "--yes"],
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        ) as process,
    ):
        try:
            deadline_s = time.monotonic() + TIMEOUT_S
            while b"following" not in log.read_bytes():
                assert time.monotonic() < deadline_s, log.read_text()
                assert process.poll() is None, log.read_text()
                time.sleep(0.1)
            assert level(conf) == "DEBUG"
            process.send_signal(ending)
            is_killed = ending == signal.SIGKILL
            assert process.wait(TIMEOUT_S) == (-ending if is_killed else 130), log.read_text()
        finally:
            process.kill()
    if is_killed:
        assert level(conf) == "DEBUG"
        restore_run.restore_configs(context.from_conf(conf), lambda _: None, everything=True)
    assert level(conf) == "INFO"


@pytest.mark.faults
def test_what_is_shown_can_be_run(cluster: LocalCluster, conf: Conf, command: list[str]) -> None:
    output = subprocess.run([*command, "--json"], stdout=subprocess.PIPE, text=True, check=True)
    (shown,) = map(json.loads, output.stdout.splitlines())
    for line, after in ((shown["command"], "DEBUG"), (shown["take_back_command"], "INFO")):
        printed_command.run(cluster, line)
        assert level(conf) == after
