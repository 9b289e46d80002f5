"""Plans applied to a real cluster: recorded, read back, restored, and resolved after a crash."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ConfigResourceType,
    ResourcePattern,
    ResourceType,
)

from quotaflow.demo import traffic_configs
from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines import config
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import FeedbackError, LockedError
from quotaflow.pipelines.feedback.configs.change import DELETE, SET, Change, Operation
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity, DesiredConfig
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection
from quotaflow.pipelines.feedback.ledger import lease_topic
from quotaflow.pipelines.feedback.ledger.ledger import DONE, MOVED, REFUSED, UNDONE, Record
from quotaflow.pipelines.feedback.ledger.outcome import MAY_LAND_FOR, Outcome
from quotaflow.pipelines.feedback.planning.guards import PlanPolicy
from quotaflow.pipelines.feedback.planning.plan import plan
from quotaflow.pipelines.feedback.runs import context, restore_run
from quotaflow.pipelines.feedback.writing import exclusive_section, stop_file
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ..crashes import CrashError, crash_at
from . import live_configs
from .conftest import by_reference
from .readers import await_so
from .tables_read import query

PREFIX = "feedback-"
TOPIC = f"{PREFIX}topic"
BYTES = "producer_byte_rate"
LIST = "leader.replication.throttled.replicas"
RATE = "leader.replication.throttled.rate"
METRICS = {"metrics": "org.apache.kafka.producer.", "interval.ms": "60000"}
IDS = "client_instance_id=vl7CCx68Qw29SsxmLSK4Xg"
ENTITIES = (
    (ConfigEntity("", "user", f"{PREFIX}user"), {BYTES: "5000000", "request_percentage": "50.0"}),
    (ConfigEntity("", "user", f"{PREFIX}user", "an app"), {"consumer_byte_rate": "6000000"}),
    (ConfigEntity("", "client-id", f"{PREFIX}client"), {BYTES: "7000000"}),
    (ConfigEntity("", "broker", "2"), {RATE: "8000000"}),
    (ConfigEntity("", "topic", TOPIC), {LIST: "0:1,0:2"}),
    (ConfigEntity("", "client-metrics", f"{PREFIX}metrics"), METRICS | {"match": IDS}),
)


class Nowhere:
    """Keeps no records: those of a time to come may stand in no table yet."""

    def add(self, records: Sequence[Record]) -> None:
        pass


@pytest.fixture(scope="module", autouse=True)
def topic(cluster: LocalCluster) -> Iterator[None]:
    with cluster.admin() as admin:
        admin.create_topics({TOPIC: {"num_partitions": 1, "replication_factor": 2}})
        yield
        # With the list that somebody else keeps: to other scenes it would be left over.
        admin.delete_topics([TOPIC])


@pytest.fixture(scope="module")
def conf(login: list[str], tmp_path_factory: pytest.TempPathFactory) -> Conf:
    """One warehouse for all: records of one test are the next one's past."""
    folder = tmp_path_factory.mktemp("feedback") / "warehouse"
    return config.load(overrides=[*login, f"warehouse.path={folder}"])


def rows(
    cluster_id: str, entity: ConfigEntity, values: dict[str, str], **others: object
) -> list[DesiredConfig]:
    """Desired rows of these values over what is set now: nothing, unless `prior_value` says so."""
    return [
        DesiredConfig(
            cluster_id=cluster_id,
            entity_type=entity.entity_type,
            entity_name=entity.entity_name,
            entity_client_id=entity.client_id,
            config_key=key,
            config_value=value,
            reason="because",
            evidence_table="quota_advice",
            evidence_key="live",
            since=datetime.now(UTC) - timedelta(hours=1),
            priority=20,
            **({"prior_value": None, "observed": None if key == RATE else 10.0} | others),  # type: ignore[arg-type]
        )
        for key, value in values.items()
    ]


def apply(
    conf: Conf,
    desired: list[DesiredConfig],
    passed: Callable[[str], None] = lambda _: None,
    policy: PlanPolicy | None = None,
) -> list[Outcome]:
    """Plan these rows on what was done before, and write it."""
    with exclusive_section.acquired(
        context.from_conf(conf).writes, lambda _: None, on_step=passed
    ) as taken:
        bounds = policy or PlanPolicy(lease_s=3_600)
        connection = Connection.from_conf(conf.kafka)
        made = plan(desired, datetime.now(UTC), bounds, connection, taken.ledger)
        assert made.blocked == ()
        return taken.apply.run(made.plan_id, made.changes)


def give_back(conf: Conf) -> list[Outcome]:
    return live_configs.restored(conf)[1]


@contextmanager
def current(conf: Conf) -> Iterator[Callable[[ConfigEntity], dict[str, str]]]:
    """What the cluster has of an entity now."""
    with live_configs.opened(conf) as configs:
        yield configs.read


def on_cluster(cluster: LocalCluster, entity: ConfigEntity) -> ConfigEntity:
    return replace(entity, cluster_id=cluster.cluster_id)


def steps(conf: Conf) -> list[tuple[str, str]]:
    sql = "SELECT step, config_key FROM config_changes ORDER BY event_time, number"
    return [(row["step"], row["config_key"]) for row in query(conf, sql)]


@pytest.mark.shows("tries each change, reads it back and records it")
def test_every_kind_of_entity_is_written_read_back_and_given_back(
    cluster: LocalCluster, conf: Conf
) -> None:
    with cluster.admin() as admin:
        others = traffic_configs.set_config(ConfigResourceType.TOPIC, TOPIC, LIST, "0:3")
        assert others(admin).error_code == 0
    desired = [
        row
        for entity, values in ENTITIES
        for row in rows(
            cluster.cluster_id,
            entity,
            {k: f"0:3,{v}" if k == LIST else v for k, v in values.items()},
            prior_value="0:3" if entity.entity_type == "topic" else None,
        )
    ]
    outcomes = apply(conf, desired)
    assert {o.step for o in outcomes} == {DONE}
    with current(conf) as read:
        for entity, values in ENTITIES:
            expected = {k: f"0:3,{v}" if k == LIST else v for k, v in values.items()}
            assert read(on_cluster(cluster, entity)) == expected
        assert apply(conf, desired) == []
        assert {o.step for o in give_back(conf)} == {DONE}
        left = {e: read(on_cluster(cluster, e)) for e, _ in ENTITIES}
    assert {e.entity_type: configs for e, configs in left.items() if configs} == {
        "topic": {LIST: "0:3"}
    }


def test_a_record_about_the_default_of_all_users_changes_nothing(
    cluster: LocalCluster, conf: Conf
) -> None:
    """No plan proposes this default, so such a record is not ours. All defaults are read and
    written like this one."""
    default = ConfigEntity(cluster.cluster_id, "user", None)
    (row,) = rows(cluster.cluster_id, default, {BYTES: "900000000"})
    change = Change(row, row.config_value, Operation(SET, row.config_value), "", "", 3_600)
    with exclusive_section.acquired(context.from_conf(conf).writes, lambda _: None) as taken:
        (outcome,) = taken.apply.run("p", [change])
    with current(conf) as read:
        assert (outcome.step, read(default)) == (DONE, {BYTES: "900000000"})
        restore, _ = live_configs.restored(conf)
        assert [refused.key[1] for refused in restore.refused] == [BYTES]
        assert "the default of all users" in restore.refused[0].why
        assert read(default) == {BYTES: "900000000"}
        (rate,) = rows(cluster.cluster_id, default, {"producer_ids_rate": "5"})
        ids = replace(change, desired=rate, value="5", operation=Operation(SET, "5"))
        with live_configs.opened(conf) as configs:
            answer = str(configs.refusal([ids]))
        assert answer.startswith("42 Invalid configuration key producer_ids_rate")
    # The operator removes it by hand, and the next restore forgets the record.
    removal = replace(change, operation=Operation(DELETE, None))
    with live_configs.opened(conf) as configs:
        assert configs.write([removal]) is None
    restore, _ = live_configs.restored(conf)
    assert [each.owned.record.config_key for each in restore.yielded] == [BYTES]
    with exclusive_section.acquired(context.from_conf(conf).writes, lambda _: None) as taken:
        assert taken.ledger.owned == {}


@pytest.mark.parametrize(
    "at",
    [
        pytest.param("looked", marks=pytest.mark.faults),
        "begun",
        "sent",
        pytest.param("written", marks=pytest.mark.faults),
        pytest.param("recorded", marks=pytest.mark.faults),
    ],
)
def test_a_crash_between_any_two_steps_is_found_and_finished(
    cluster: LocalCluster, conf: Conf, at: str
) -> None:
    entities = [ConfigEntity("", "user", f"{PREFIX}{at}-{n}") for n in "ab"]
    desired = [r for e in entities for r in rows(cluster.cluster_id, e, {BYTES: "1000000"})]

    with pytest.raises(CrashError):
        apply(conf, desired, crash_at(at))
    apply(conf, desired)
    with current(conf) as read:
        assert [read(on_cluster(cluster, e)) for e in entities] == [{BYTES: "1000000"}] * 2
        assert {o.step for o in give_back(conf)} == {DONE}
        assert [read(on_cluster(cluster, e)) for e in entities] == [{}, {}]
    # What a run that crashed may have sent can land for a while: it stays open until then.
    with exclusive_section.acquired(context.from_conf(conf).writes, lambda _: None) as taken:
        assert taken.ledger.owned == {}
        over = datetime.now(UTC) + MAY_LAND_FOR
        ended = replace(taken.apply, journal=Nowhere(), clock=lambda: over).finish(taken.ledger)
    unfinished = {(record.write, UNDONE) for record in taken.ledger.open_records}
    assert {(ended_record.write, ended_record.step) for ended_record in ended} == unfinished


def test_what_another_admin_did_stays(cluster: LocalCluster, conf: Conf) -> None:
    user = ConfigEntity("", "user", f"{PREFIX}moved")
    desired = rows(cluster.cluster_id, user, {BYTES: "1000000"})
    with cluster.admin() as admin:
        set_quota = traffic_configs.set_quota
        assert set_quota(f"{PREFIX}moved", BYTES, 3e6)(admin).error_code == 0
        (outcome,) = apply(conf, desired)
        assert (outcome.step, outcome.detail) == (
            MOVED,
            "it is 3000000 now, and was planned on not set",
        )
        assert set_quota(f"{PREFIX}moved", BYTES, None)(admin).error_code == 0
        (outcome,) = apply(conf, desired)
        assert outcome.step == DONE
        assert set_quota(f"{PREFIX}moved", BYTES, 4e6)(admin).error_code == 0
        assert give_back(conf) == []
        with current(conf) as read:
            assert read(on_cluster(cluster, user)) == {BYTES: "4000000"}
        assert set_quota(f"{PREFIX}moved", BYTES, None)(admin).error_code == 0
    assert ("yielded", BYTES) in steps(conf)


def test_the_lease_of_a_topic_that_was_deleted_ends(cluster: LocalCluster, conf: Conf) -> None:
    doomed = ConfigEntity("", "topic", f"{PREFIX}doomed")
    with cluster.admin() as admin:
        admin.create_topics({doomed.entity_name: {"num_partitions": 1, "replication_factor": 2}})
        with current(conf) as read:
            await_so(lambda: admin.describe_topics([doomed.entity_name])[0]["error_code"] == 0)
            (outcome,) = apply(conf, rows(cluster.cluster_id, doomed, {LIST: "0:1"}))
            assert outcome.step == DONE
            admin.delete_topics([doomed.entity_name])
            await_so(lambda: read(on_cluster(cluster, doomed)) == {})
    plan, outcomes = live_configs.restored(conf)
    assert (outcomes, plan.unanswered) == ([], ())
    assert [each.key for each in plan.yielded] == [(on_cluster(cluster, doomed), LIST)]
    left = restore_run.preview(context.from_conf(conf), datetime.now(UTC), everything=True)
    assert left.yielded == ()


def test_what_one_entity_is_refused_costs_no_other(cluster: LocalCluster, conf: Conf) -> None:
    # With one ACL of the topic, only what ACLs allow may be done to it.
    pattern = ResourcePattern(ResourceType.TOPIC, TOPIC)
    read = ACL("User:alice", "*", ACLOperation.DESCRIBE_CONFIGS, ACLPermissionType.ALLOW, pattern)
    topic, bob = ConfigEntity("", "topic", TOPIC), ConfigEntity("", "user", f"{PREFIX}bob")
    desired = rows(cluster.cluster_id, topic, {LIST: "0:3,0:1"}, prior_value="0:3")
    desired += rows(cluster.cluster_id, bob, {BYTES: "1000000"})
    with cluster.admin() as admin, pytest.MonkeyPatch.context() as patch:
        alice = by_reference(cluster, "FEEDBACK_ALICE", patch, "alice")
        as_alice = config.load(overrides=[*alice, f"warehouse.path={conf.warehouse.path}"])
        admin.create_acls([read])
        try:
            outcomes = apply(as_alice, desired)
        finally:
            admin.delete_acls([read])
    ended = {o.change.entity.entity_type: (o.step, o.detail) for o in outcomes}
    assert ended["user"] == (DONE, None)
    assert ended["topic"][0] == REFUSED
    assert "29" in str(ended["topic"][1])
    give_back(conf)


def test_an_expired_lease_ends_whoever_was_away(cluster: LocalCluster, conf: Conf) -> None:
    user = ConfigEntity("", "user", f"{PREFIX}leased")
    apply(conf, rows(cluster.cluster_id, user, {BYTES: "1000000"}, lease_s=2))
    with current(conf) as read:
        await_so(
            lambda: bool(restore_run.preview(context.from_conf(conf), datetime.now(UTC)).changes)
        )
        (outcome,) = live_configs.restored(conf, everything=False)[1]
        assert (outcome.step, read(on_cluster(cluster, user))) == (DONE, {})


def test_one_at_a_time_and_none_while_there_is_a_stop_file(
    cluster: LocalCluster, conf: Conf
) -> None:
    desired = rows(
        cluster.cluster_id, ConfigEntity("", "user", f"{PREFIX}stop"), {BYTES: "1000000"}
    )
    with Warehouse(conf.warehouse).lock(), pytest.raises(LockedError):
        apply(conf, desired)
    stop = stop_file.path(conf.plan, conf.warehouse)

    def passed(step: str) -> None:
        if step == "begun":
            stop.touch()

    try:
        (outcome,) = apply(conf, desired, passed)
        assert outcome.step == UNDONE
        with pytest.raises(FeedbackError, match="STOP is there"):
            apply(conf, desired)
    finally:
        stop.unlink()
    with current(conf) as read:
        assert read(on_cluster(cluster, desired[0].entity)) == {}


def led_by(node_id: int, cluster: LocalCluster, conf: Conf) -> Conf:
    """Conf with a topic of leases that this broker leads: that of the demo has one replica."""
    name = f"{PREFIX}led-by-{node_id}"
    replicas = [node_id, *({1, 2, 3} - {node_id})]
    topic = {"assignments": {0: replicas}, "configs": dict(lease_topic.CONFIGS)}
    with cluster.admin() as admin:
        admin.create_topics({name: topic})
    feedback = conf.feedback.model_copy(update={"lease_topic": name})
    await_so(lambda: is_there(conf, name))
    return conf.model_copy(update={"feedback": feedback})


def is_there(conf: Conf, name: str) -> bool:
    """Whether the topic of leases exists and has a leader."""
    with lease_topic.opened(conf.kafka, name) as topic:
        return not isinstance(topic, lease_topic.MissingTopic)


@pytest.mark.faults
@pytest.mark.timeout(600)
@pytest.mark.parametrize("node_id", [1, 3])
def test_the_next_leader_of_the_topic_of_leases_is_awaited(
    node_id: int, cluster: LocalCluster, conf: Conf
) -> None:
    conf = led_by(node_id, cluster, conf)
    cluster.kill_broker(node_id)
    try:
        with lease_topic.opened(conf.kafka, conf.feedback.lease_topic) as leases:
            leases.append([(b"key", b"value")])
            assert leases.read() == [(b"key", b"value")]
    finally:
        cluster.start_broker(node_id)


@pytest.mark.faults
@pytest.mark.timeout(600)
def test_a_broker_that_is_down_costs_its_own_configs_until_it_is_back(
    cluster: LocalCluster, conf: Conf
) -> None:
    conf, broker = led_by(2, cluster, conf), ConfigEntity("", "broker", "2")
    desired = [
        *rows(cluster.cluster_id, broker, {RATE: "8000000"}),
        *rows(cluster.cluster_id, ConfigEntity("", "user", f"{PREFIX}down"), {BYTES: "1000000"}),
    ]
    cluster.kill_broker(2)
    try:
        ended = {o.change.entity.entity_type: (o.step, o.detail) for o in apply(conf, desired)}
    finally:
        cluster.start_broker(2)
    assert ended["user"] == (DONE, None)
    assert ended["broker"][0] == UNDONE
    assert "not reached" in str(ended["broker"][1])
    assert [o.step for o in apply(conf, desired)] == [DONE]
    with current(conf) as read:
        assert read(on_cluster(cluster, broker)) == {RATE: "8000000"}
        assert {o.step for o in give_back(conf)} == {DONE}
        assert read(on_cluster(cluster, broker)) == {}
