"""One real three-broker cluster for every test in this folder, started when the first needs it."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from quotaflow.demo import story
from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines import config
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.jobs import runner
from quotaflow.pipelines.snapshots import take
from quotaflow.pipelines.spark import session

from ..http_endpoint import listening
from .drive import Run, drive

# The default rule takes minutes to open; this one opens while a client has requests answered.
ALERTS = (
    "alerts.rules=[{name: at-work, metric: org.apache.kafka.*.request.latency.max, above: 0, "
    "for_s: 2, stale_s: 5}]"
)
# On a machine at its limit mallory is slower, and still far from what anybody else does.
QUOTA = "producer_ids.default_quota_per_s=0.5"
# As users run it but for this, so that code Spark generates is run too.
QUICK = [f"spark.conf.{key}={value}" for key, value in session.ONE_COMPILER.items()]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder is live, so that no test can forget to say it."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker("live")


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Quotaflow's home, where the key of records is made: not that of the user."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("home")
        patch.setenv("QUOTAFLOW_HOME", str(folder))
        yield folder


@pytest.fixture(scope="session")
def root() -> None:
    """Rights for chroot, mounts and namespaces: who asks for the lane learns that they lack."""
    if os.geteuid() != 0:
        pytest.fail("chroot and mounts are for root alone: run `make live-more` as root")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Shared: use topics, client ids and subscriptions of your own, and restart what you stop."""
    with LocalCluster(tmp_path_factory.mktemp("kafka") / "cluster") as running:
        yield running


@pytest.fixture(scope="session")
def run(cluster: LocalCluster) -> Run:
    """Shared: one run of the demo's traffic; its log topic holds every line up to its end."""
    return drive(cluster)


@pytest.fixture(scope="session")
def login(cluster: LocalCluster) -> Iterator[list[str]]:
    """Overrides of conf that reach the shared cluster as admin, the secret by reference."""
    with pytest.MonkeyPatch.context() as patch:
        yield login_of(cluster, patch)


def login_of(cluster: LocalCluster, patch: pytest.MonkeyPatch) -> list[str]:
    """Overrides of conf that reach a cluster as admin, the secret by reference."""
    return [*by_reference(cluster, "LIVE_TEST_JAAS", patch), ALERTS, QUOTA, *QUICK]


def by_reference(
    cluster: LocalCluster, variable: str, patch: pytest.MonkeyPatch, user: str = "admin"
) -> list[str]:
    """Overrides of conf with the login of a user, whose secret is in an environment variable."""
    properties = cluster.client_properties(user)
    patch.setenv(variable, properties["sasl.jaas.config"])
    given = properties | {"sasl.jaas.config": f"env:{variable}"}
    return [f"kafka.properties.{key}={value}" for key, value in given.items()]


def conf_of_scene(login: list[str], folder: Path, log: str | None, *pairs: str) -> Conf:
    """Conf with a warehouse in a folder, which reads a log topic of its own, and no pushes."""
    ways = [f"ingest.request_log_topic={log or 'null'}", "ingest.receiver_topic=null"]
    place = f"warehouse.path={folder / 'warehouse'}"
    return config.load(overrides=[*login, *ways, place, *pairs])


def of_topic(conf: Conf, topic: str) -> Conf:
    """Conf whose request log is in this topic."""
    ingest = conf.ingest.model_copy(update={"request_log_topic": topic})
    return conf.model_copy(update={"ingest": ingest})


@pytest.fixture
def conf(login: list[str], tmp_path: Path) -> Conf:
    """Conf of the shared cluster with a warehouse of the test's own."""
    return config.load(overrides=[*login, f"warehouse.path={tmp_path / 'warehouse'}"])


@pytest.fixture(scope="session")
def filled(login: list[str], run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shared, to read: a warehouse that every job ran on once, undisturbed, after the traffic.

    Later tests bring topics more: what reads them again to compare comes first, and by its name
    test_exactly_once does.
    """
    folder = tmp_path_factory.mktemp("filled") / "warehouse"
    conf = config.load(overrides=[*login, f"warehouse.path={folder}"])
    facts, results = story.in_two(conf)
    assert runner.run(conf, facts, None, lambda _: None) > run.line_counts.acked
    take.take(conf, datetime.now(UTC), lambda _: None)
    runner.run(conf, results, None, lambda _: None)
    return folder


@pytest.fixture(scope="module")
def webhook() -> Iterator[str]:
    """The address of a receiver on this machine."""
    with listening("/hook") as endpoint:
        yield endpoint.url
