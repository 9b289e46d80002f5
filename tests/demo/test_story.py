"""The demo's own cluster is the only one that its commands ask and change."""

import os
from pathlib import Path

import pytest

from quotaflow.demo import runs, story


class StartedError(Exception):
    """In place of the cluster."""


def test_conf_of_the_environment_is_not_for_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*_: object) -> None:
        raise StartedError

    given = {
        "QUOTAFLOW_CONF": "/of-user.yaml",
        "QUOTAFLOW__KAFKA__PROPERTIES__BOOTSTRAP_SERVERS": "cluster-of-user:9092",
        "QUOTAFLOW_PLAN__LEASE_S": "60",
        "quotaflow__PLAN__LEASE_S": "60",
    }
    others = {"QUOTAFLOW_HOME": str(tmp_path), "QUOTAFLOW_KAFKA_PASSWORD": "x"}
    for name, text in (given | others).items():
        monkeypatch.setenv(name, text)
    monkeypatch.setattr(runs, "new_run", start)
    with pytest.raises(StartedError):
        story.play(1, 1.0, story.Display(print, print, lambda *_: None))
    assert {name for name in os.environ if name.upper().startswith("QUOTAFLOW")} == set(others)
