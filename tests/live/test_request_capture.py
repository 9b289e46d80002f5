"""capture on a real broker: the level of its request log comes back however a capture ends."""

import json
import signal
import subprocess
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
from quotaflow.pipelines.feedback.runs import context, request_logger
from quotaflow.pipelines.feedback.writing import exclusive_section

from ..command_line import in_options
from ..crashes import CrashError, crash_at
from ..own_process import quotaflow
from . import live_configs, logged_process, printed_command

BROKER = 3
LOGGER = "kafka.request.logger"


def level(conf: Conf) -> str:
    with exclusive_section.open_cluster(context.from_conf(conf).writes) as (cluster_id, configs):
        return configs.read(ConfigEntity(cluster_id, "broker-logger", str(BROKER)))[LOGGER]


def set_level(conf: Conf, value: str) -> None:
    alter = requests.IncrementalAlterConfigsRequest(
        resources=[(ConfigResourceType.BROKER_LOGGER.value, str(BROKER), [(LOGGER, 0, value)])]
    )
    with live_configs.opened(conf) as configs:
        assert configs.state.ask(alter, BROKER).responses[0].error_code == 0


@pytest.fixture(autouse=True)
def is_off(conf: Conf) -> Iterator[None]:
    """What this broker does meanwhile is in no log, and it logs again for who comes after."""
    set_level(conf, "INFO")
    yield
    set_level(conf, "DEBUG")


@pytest.mark.shows("samples lines by API, and switches the log on for a while")
def test_a_capture_that_was_killed_is_given_back_by_restore(conf: Conf) -> None:
    switch = request_logger.read_switch(context.from_conf(conf), [BROKER], 600, datetime.now(UTC))
    assert (switch.levels, len(switch.plan.changes)) == ({BROKER: "INFO"}, 1)
    with pytest.raises(CrashError):
        request_logger.switched_on(
            context.from_conf(conf), switch.request, lambda _: None, on_step=crash_at("sent")
        )
    assert level(conf) == "DEBUG"
    _, outcomes = live_configs.restored(conf)
    assert [(o.step, o.change.value) for o in outcomes] == [(DONE, "INFO")]
    assert level(conf) == "INFO"


@pytest.fixture
def command(conf: Conf, login: list[str]) -> list[str]:
    options = in_options(*login, f"warehouse.path={conf.warehouse.folder}")
    return quotaflow("capture", "--broker", str(BROKER), "--for", "10m", *options)


@pytest.mark.faults
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_end_from_outside(
    conf: Conf, command: list[str], ending: signal.Signals, tmp_path: Path
) -> None:
    log = tmp_path / "stderr"
    with logged_process.logging([*command, "--yes"], log, b"following") as process:
        assert level(conf) == "DEBUG"
        process.send_signal(ending)
        is_killed = ending == signal.SIGKILL
        code = -ending if is_killed else 130
        assert process.wait(logged_process.TIMEOUT_S) == code, log.read_text()
    if is_killed:
        assert level(conf) == "DEBUG"
        live_configs.restored(conf)
    assert level(conf) == "INFO"


@pytest.mark.faults
def test_what_is_shown_can_be_run(cluster: LocalCluster, conf: Conf, command: list[str]) -> None:
    output = subprocess.run([*command, "--json"], stdout=subprocess.PIPE, text=True, check=True)
    (shown,) = map(json.loads, output.stdout.splitlines())
    for line, after in ((shown["command"], "DEBUG"), (shown["take_back_command"], "INFO")):
        printed_command.run(cluster, line)
        assert level(conf) == after
