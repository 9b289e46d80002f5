"""Every test has a home, a topic of leases and a folder of tables of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.feedback.writing import exclusive_section
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from .delta_scene import Opened
from .fake_configs import DictConfigs, file_leases


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Quotaflow's home, where the key of records is made."""
    monkeypatch.setenv("QUOTAFLOW_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(exclusive_section, "open_leases", file_leases)
    return tmp_path / "home"


@pytest.fixture
def conf(warehouse: Warehouse) -> Conf:
    return config.load(overrides=[f"warehouse.path={warehouse.conf.folder}"])


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    """Makes these configs those of conf's cluster."""

    @contextmanager
    def cluster(configs: DictConfigs, _: Conf) -> Iterator[tuple[str, DictConfigs]]:
        yield "c1", configs

    return lambda configs: monkeypatch.setattr(
        exclusive_section, "open_cluster", partial(cluster, configs)
    )
