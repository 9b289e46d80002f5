"""Where values of conf come from."""

from pathlib import Path

import pytest

from quotaflow.pipelines.config import load
from quotaflow.pipelines.config.origins import origins

from ...command_line import Command

FILE = """
kafka:
  properties:
    bootstrap.servers: b:1
    sasl.password: env:PASSWORD
    sasl.username: me
    sasl.mechanism: PLAIN
    security.protocol: sasl_ssl

warehouse:
  path: /file
health:
teams:
- {team: pay, topics: [pay]}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "conf.yaml"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_each_value_has_its_place(file: Path) -> None:
    pairs = [
        "warehouse.query_memory_mb=512",
        "kafka.properties.client.id=x",
        "producer_ids.quotas.alice=5",
    ]
    by_key = {each.key: each for each in origins(load(file, pairs), file, pairs)}
    places = {key: each.source for key, each in by_key.items() if each.source != "default"}
    assert places == {
        "kafka.properties.bootstrap.servers": f"{file}:4",
        "kafka.properties.sasl.password": f"{file}:5",
        "kafka.properties.sasl.username": f"{file}:6",
        "kafka.properties.sasl.mechanism": f"{file}:7",
        "kafka.properties.security.protocol": f"{file}:8",
        "kafka.properties.client.id": "--set",
        "warehouse.path": f"{file}:11",
        "warehouse.query_memory_mb": "--set",
        "teams": f"{file}:13",
        "producer_ids.quotas.alice": "--set",
    }
    assert by_key["kafka.properties.security.protocol"].value == "SASL_SSL"
    assert by_key["kafka.properties.sasl.password"].value == "env:PASSWORD"
    assert by_key["health.max_silence_s"].value == 1_800


def test_conf_is_shown_in_part(command: Command, file: Path) -> None:
    of_file = ("--conf", str(file))
    shown = {"key": "warehouse.path", "value": "/file", "source": f"{file}:11"}
    assert command("conf", "show", "warehouse.p", *of_file, "--json").rows == [shown]
    error = command("conf", "show", "wherehouse", *of_file, code=2).err
    assert "no key of conf begins with wherehouse" in error


def test_conf_is_checked(command: Command, file: Path) -> None:
    checked = command("conf", "check", "--conf", str(file)).out
    assert checked.startswith("conf is valid: 7 values are given")
    file.write_text(FILE.replace("sasl.password: env:PASSWORD", "sasl.password: s3cret"), "utf-8")
    printed = command("conf", "check", "--conf", str(file), code=2).err
    assert "holds a secret in plain text" in printed
    assert "s3cret" not in printed
