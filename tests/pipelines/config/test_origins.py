"""Where values of conf come from."""

import json
from pathlib import Path

import pytest

from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.config import load
from quotaflow.pipelines.config.origins import origins

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


def test_conf_is_shown_in_part(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["conf", "show", "warehouse.p", "--conf", str(file), "--json"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"key": "warehouse.path", "value": "/file", "source": f"{file}:11"}
    ]
    assert execute(["conf", "show", "wherehouse", "--conf", str(file)]) == 2
    assert "no key of conf begins with wherehouse" in capsys.readouterr().err


def test_conf_is_checked(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["conf", "check", "--conf", str(file)]) == 0
    assert capsys.readouterr().out.startswith("conf is valid: 7 values are given")
    file.write_text(FILE.replace("sasl.password: env:PASSWORD", "sasl.password: s3cret"), "utf-8")
    assert execute(["conf", "check", "--conf", str(file)]) == 2
    printed = capsys.readouterr().err
    assert "holds a secret in plain text" in printed
    assert "s3cret" not in printed
