"""One real three-broker cluster for every test in this folder, started when the first needs it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from quotaflow.demo.cluster import Cluster


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder is live, so that no test can forget to say it."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker("live")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Shared: use topics, client ids and subscriptions of your own, and restart what you stop."""
    with Cluster(tmp_path_factory.mktemp("kafka") / "cluster") as running:
        yield running
