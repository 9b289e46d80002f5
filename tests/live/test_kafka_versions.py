"""The oldest and the newest Kafka release: ingest, snapshot, doctor, plan, apply, restore.

Lines of the releases between are in tests/golden/versions/.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from quotaflow.demo.broker_config import REQUEST_LOG_TOPIC
from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.shipper import Shipper
from quotaflow.pipelines import config
from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.pipelines.feedback.ledger.ledger import DONE
from quotaflow.pipelines.feedback.runs import context
from quotaflow.pipelines.feedback.writing import exclusive_section

from ..command_line import in_options
from . import kafka_versions, version_traffic
from .conftest import QUICK, by_reference
from .tables_read import query
from .test_feedback import apply, give_back
from .test_feedback import rows as desired_rows

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1_200)]

QUOTA = {"producer_byte_rate": "5000000"}
REPLICAS = {"leader.replication.throttled.replicas": "0:1"}
METRICS = {"metrics": "org.apache.kafka.producer.", "interval.ms": "60000"}
CHANGES = (
    (ConfigEntity("", "user", "version-user"), QUOTA),
    (ConfigEntity("", "ip", "10.9.8.7"), {"connection_creation_rate": "5"}),
    (ConfigEntity("", "broker", "1"), {"leader.replication.throttled.rate": "8000000"}),
    (ConfigEntity("", "topic", version_traffic.TOPIC), REPLICAS),
    (ConfigEntity("", "client-metrics", "version-metrics"), METRICS),
)


@dataclass(frozen=True, slots=True)
class Site:
    """A cluster of one release, and what `init` wrote for it."""

    version: str
    cluster: LocalCluster
    setup: Path
    warehouse: Path

    def command(self, *words: str) -> int:
        """One command with this conf; its exit code."""
        return execute([*words, "--conf", str(self.setup / "conf.yaml"), *in_options(*QUICK)])

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Rows of a query."""
        return query(self.warehouse, sql)


@pytest.fixture(scope="module", params=[kafka_versions.VERSIONS[0], kafka_versions.VERSIONS[-1]])
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """Shared: clients of the release have worked, and their lines are in the topic."""
    folder = tmp_path_factory.mktemp("release")
    classes = folder / "classes"
    classes.mkdir()
    jars = kafka_versions.jars_of(request.param)
    with LocalCluster(folder / "cluster", 1, kafka=jars, class_path=[classes]) as cluster:
        shippers = cluster.librdkafka_properties("shipper")
        with Shipper(shippers, REQUEST_LOG_TOPIC, cluster.request_logs) as shipper:
            version_traffic.work(cluster, classes)
            shipper.drain()
        with pytest.MonkeyPatch.context() as patch:
            site = Site(request.param, cluster, folder / "setup", folder / "warehouse")
            login = by_reference(cluster, "VERSION_TEST_JAAS", patch)
            options = in_options(*login, f"warehouse.path={site.warehouse}")
            words = ["--bootstrap-server", cluster.bootstrap_servers, "--out", str(site.setup)]
            assert execute(["init", *words, *options]) == 0
            yield site


def test_doctor_names_the_release_and_finds_nothing_wrong(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.command("doctor", "--json")
    rows = map(json.loads, capsys.readouterr().out.splitlines())
    findings = {row["subject"]: row for row in rows}
    major_minor = site.version.rpartition(".")[0]
    assert findings["version"]["observed"].startswith(f"Kafka {major_minor}; metadata.version ")
    states = {subject: row["state"] for subject, row in findings.items()}
    well = ("receiver", "subscriptions", "request logger", "clock", "log lines", "log bodies")
    assert {states[subject] for subject in well} == {"ok"}
    assert "bad" not in states.values()


def test_a_snapshot_fills_tables(site: Site) -> None:
    assert site.command("snapshot") == 0
    quotas = site.rows("SELECT user, config_key, quota FROM current_client_quotas")
    assert quotas == [{"user": "dave", "config_key": "producer_byte_rate", "quota": 1e6}]
    subscriptions = site.rows(
        "SELECT DISTINCT entity_name FROM current_configs WHERE entity_type = 'client-metrics'"
    )
    assert subscriptions == [{"entity_name": version_traffic.SUBSCRIPTION}]
    assert site.rows("SELECT DISTINCT producer_id FROM active_producers") != []
    brokers = site.rows("SELECT broker_id, is_fenced FROM current_brokers")
    # Brokers before 4.0 do not say whether one is fenced.
    is_fenced = None if site.version == kafka_versions.VERSIONS[0] else False
    assert brokers == [{"broker_id": 1, "is_fenced": is_fenced}]


def test_a_plan_is_made_applied_and_given_back(site: Site) -> None:
    # 3: changes wait.
    assert site.command("plan") in {0, 3}
    conf = config.load(site.setup / "conf.yaml", QUICK)
    desired = [
        row
        for entity, values in CHANGES
        for row in desired_rows(site.cluster.cluster_id, entity, values)
    ]
    assert {outcome.step for outcome in apply(conf, desired)} == {DONE}
    assert live(conf) == [values for _, values in CHANGES]
    assert {outcome.step for outcome in give_back(conf)} == {DONE}
    assert live(conf) == [{} for _ in CHANGES]


def test_lines_fill_tables(site: Site) -> None:
    # Results are computed from tables, which have no release.
    assert site.command("run", "facts", "--once") == 0
    (lines,) = site.rows(
        "SELECT count(*) AS n, min(broker_id) AS broker, max(broker_id) AS last FROM requests"
    )
    assert lines["n"] > 100
    assert (lines["broker"], lines["last"]) == (1, 1)
    assert site.rows("SELECT * FROM quarantine") == []
    (pushes,) = site.rows(
        "SELECT count(DISTINCT client_id) AS clients FROM client_metrics "
        f"WHERE client_software_version = '{site.version}'"
    )
    assert pushes["clients"] >= 2
    commits = site.rows(
        "SELECT max(api_version) AS version FROM requests WHERE api = 'TXN_OFFSET_COMMIT'"
    )
    newest = site.version == kafka_versions.VERSIONS[-1]
    assert (commits[0]["version"] == 6) is newest


def live(conf: Conf) -> list[dict[str, str]]:
    """Of each entity what is set of the configs that the plan writes."""
    with exclusive_section.open_cluster(context.from_conf(conf).writes) as (cluster_id, configs):
        return [
            {
                key: value
                for key, value in configs.read(replace(entity, cluster_id=cluster_id)).items()
                if key in values and value is not None
            }
            for entity, values in CHANGES
        ]
