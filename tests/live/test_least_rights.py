"""Each job runs with exactly the rights of schemas/acls.py, and without any of them it says so."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType

from quotaflow.demo.broker_config import REQUEST_LOG_TOPIC, TELEMETRY_TOPIC
from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import QuotaflowError
from quotaflow.pipelines.feedback.configs.change import SET, Change, Operation
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity, DesiredConfig
from quotaflow.pipelines.feedback.ledger.ledger import STARTED
from quotaflow.pipelines.feedback.runs import context
from quotaflow.pipelines.feedback.writing import exclusive_section
from quotaflow.pipelines.feedback.writing.change_writer import preview
from quotaflow.pipelines.jobs import runner
from quotaflow.pipelines.kafka import admin, client_metrics, rights, tail
from quotaflow.pipelines.kafka.cluster_state import ClusterState, UnansweredError, sender
from quotaflow.pipelines.snapshots import sections
from quotaflow.pipelines.snapshots.sections import ClusterObserver
from quotaflow.schemas import acls
from quotaflow.schemas.tables.declared import TRANSACTIONAL_IDS

from . import live_configs
from .guarded import TOPICS, USERS, conf_of, grant, guarded

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1_200)]

TOPIC = "rights"
WRITTEN = (
    (ConfigEntity("", "user", "rights"), "producer_byte_rate", "5000000"),
    (ConfigEntity("", "broker", "1"), "leader.replication.throttled.rate", "8000000"),
    (ConfigEntity("", "topic", TOPIC), "leader.replication.throttled.replicas", "0:1"),
    (ConfigEntity("", "client-metrics", "rights"), "interval.ms", "60000"),
)
LOGGER = "kafka.request.logger"
_WRITER = {REQUEST_LOG_TOPIC: "shipper", TELEMETRY_TOPIC: "receiver"}


@dataclass(frozen=True)
class Login:
    """A cluster, and conf that logs in as the user of a role."""

    cluster: LocalCluster
    conf: Conf
    user: str

    def librdkafka(self) -> dict[str, str]:
        return self.cluster.librdkafka_properties(self.user)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with guarded(tmp_path_factory.mktemp("guarded") / "cluster") as cluster:
        cluster.create_topics([TOPIC], partitions=1)
        _name_a_transactional_id(cluster)
        yield cluster


def _name_a_transactional_id(cluster: LocalCluster) -> None:
    properties = cluster.librdkafka_properties("admin") | {"transactional.id": TOPIC}
    Producer(properties).init_transactions(60)


def produced(login: Login, topic: str) -> list[str]:
    """A record of this topic, and what the broker said of it."""
    errors: list[str] = []
    quiet = {"enable.metrics.push": False, "message.timeout.ms": 10_000, "log_level": 0}
    producer = Producer(login.librdkafka() | quiet)
    with suppress(KafkaException):
        producer.produce(
            topic, b"{}", on_delivery=lambda e, _: errors.append(str(e)) if e else None
        )
    producer.flush(30)
    return [text + rights.hint(_WRITER[topic], text, TOPICS) for text in errors]


def ran(login: Login) -> list[str]:
    """Both topics read, a record of each that is new."""
    fill = Login(login.cluster, login.conf, "admin")
    assert [produced(fill, topic) for topic in (REQUEST_LOG_TOPIC, TELEMETRY_TOPIC)] == [[], []]
    jobs = ["ingest_request_log", "ingest_receiver"]
    came: list[int] = []
    messages = refusals(lambda: came.append(runner.run(login.conf, jobs, None, lambda _: None)))
    assert messages or came[0] >= len(jobs)
    return messages


def queried(login: Login) -> list[str]:
    """What a snapshot would leave out; of transactional ids a broker hides some without a word."""
    with admin.client(login.conf.kafka.properties) as client:
        every = ClusterObserver(ClusterState(sender(client)), lambda: {TOPIC})
        seen = [every.observed(table) for table in sections.SNAPSHOT_TABLES]
    gaps = [f"{each.table.name}: {gap.reason}" for each in seen for gap in each.unanswered]
    ids = next(each.rows.num_rows for each in seen if each.table == TRANSACTIONAL_IDS)
    hidden = [] if ids else ["transactional_ids: TRANSACTIONAL_ID_AUTHORIZATION_FAILED"]
    return [gap + rights.hint("snapshot", gap) for gap in gaps + hidden]


def applied(login: Login) -> list[str]:
    """Each kind of config looked at, tried, written and taken back."""
    return [
        problem
        for entity, key, value in WRITTEN
        for problem in refusals(lambda e=entity, k=key, v=value: written(login, e, k, v))
    ] + refusals(lambda: leased(login))


def leased(login: Login) -> None:
    with exclusive_section.open_leases(context.from_conf(login.conf).writes) as topic:
        topic.append([(b"rights", b"")])
        topic.read()


def written(login: Login, entity: ConfigEntity, key: str, value: str) -> None:
    owner = ConfigEntity(login.cluster.cluster_id, entity.entity_type, entity.entity_name)
    with live_configs.opened(login.conf) as configs:
        (previewed,) = preview(configs, [_change(owner, key, value)])
        if previewed.step != STARTED:
            raise UnansweredError(str(previewed.detail))
        refusal = configs.write([_change(owner, key, value)])
        refusal = refusal or configs.write([_change(owner, key, None)])
        if refusal:
            raise UnansweredError(refusal)


def _change(owner: ConfigEntity, key: str, value: str | None) -> Change:
    row = DesiredConfig(
        *(owner.cluster_id, owner.entity_type, owner.entity_name, key, value),
        *(None, "because", "t", "k"),
        since=datetime.now(UTC),
        priority=1,
    )
    operation = Operation(SET, value) if value else Operation("DELETE", None)
    return Change(row, value, operation, "", "")


def captured(login: Login) -> list[str]:
    """The level of a logger, raised and taken back, and the topic that fills."""
    return refusals(lambda: _logged(login, "DEBUG")) + refusals(
        lambda: _followed(login, REQUEST_LOG_TOPIC)
    )


def _logged(login: Login, level: str) -> None:
    properties = login.conf.kafka.properties
    kind = ConfigResourceType.BROKER_LOGGER
    with admin.client(properties) as client:
        client.describe_configs([ConfigResource(kind, "1")])
        for operation in ((AlterConfigOp.SET, level), (AlterConfigOp.DELETE, None)):
            resource = ConfigResource(kind, "1", {LOGGER: operation})
            answer = client.alter_configs([resource], raise_on_unknown=False)
            answers = [text for results in answer.values() for text in results.values()]
            if answers != ["OK"]:
                needs = rights.hint("capture", str(answers))
                raise UnansweredError(f"broker logger: {answers}{needs}")


def troubleshot(login: Login) -> list[str]:
    properties = login.conf.kafka.properties
    messages = refusals(
        lambda: client_metrics.write(properties, "rights", {"interval.ms": "60000"})
    )
    messages += refusals(lambda: client_metrics.read(properties))
    messages += refusals(lambda: client_metrics.delete(properties, "rights"))
    for topic in (REQUEST_LOG_TOPIC, TELEMETRY_TOPIC):
        messages += refusals(lambda t=topic: _followed(login, t))
    return messages


def _followed(login: Login, topic: str) -> None:
    with tail.follow(login.conf.kafka.properties, {topic: 3}) as poll:
        poll()


def refusals(act: Callable[[], object]) -> list[str]:
    try:
        act()
    except (QuotaflowError, UnansweredError) as error:
        return [str(error)]
    return []


TRIES: dict[str, Callable[[Login], list[str]]] = {
    "shipper": lambda login: produced(login, REQUEST_LOG_TOPIC),
    "receiver": lambda login: produced(login, TELEMETRY_TOPIC),
    "snapshot": queried,
    "apply": applied,
    "capture": captured,
    "troubleshoot": troubleshot,
    "run": ran,
}


@pytest.mark.parametrize("role", TRIES)
def test_a_role_needs_each_of_its_rights_and_no_other(
    cluster: LocalCluster, role: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user, needed = USERS[role], acls.needed(role, TOPICS)
    conf = conf_of(cluster, user, tmp_path / "warehouse", monkeypatch)
    login = Login(cluster, conf, user)
    grant(cluster, user, needed)
    assert TRIES[role](login) == []
    for right in needed:
        # What is not needed may bring along what is.
        others = [r for r in needed if r != right and (right.is_optional or not r.is_optional)]
        grant(cluster, user, others)
        missing = TRIES[role](login)
        assert bool(missing) == (right.resource_type != acls.GROUP), right
        named = right.operation, right.resource_type
        assert not missing or any(all(n in each for n in named) for each in missing), missing


def test_every_role_is_tried() -> None:
    assert set(TRIES) == set(acls.ROLES)
