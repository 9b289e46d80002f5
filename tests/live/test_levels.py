"""A cluster without request log and telemetry: what its Admin API alone shows of it."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.replica_moves import Throttled, move, replicas, set_rate
from quotaflow.pipelines import config
from quotaflow.pipelines.areas.clusters import clusters
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.doctor import doctor
from quotaflow.pipelines.feedback.ledger.ledger import DONE
from quotaflow.pipelines.feedback.planning import planning
from quotaflow.pipelines.feedback.runs import apply_run, context
from quotaflow.pipelines.report.report import sections
from quotaflow.pipelines.snapshots import take
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.readers import open_reader
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from . import live_configs
from .rack_scene import Roles, write
from .readers import await_so
from .tables_read import query

TOPIC = "levels-moved"
RATE, RECORDS, RECORD_BYTES = 200_000, 1_200, 50_000
"""60 MB at the throttle's rate take minutes, as snapshots may at a busy machine; and seconds
without it."""
STALE_S = 3


@pytest.fixture(scope="module")
def admin_api(login: list[str], tmp_path_factory: pytest.TempPathFactory) -> Conf:
    """Conf that reads no topic."""
    folder = tmp_path_factory.mktemp("levels") / "warehouse"
    off = [f"ingest.{name}_topic=null" for name in ("request_log", "receiver", "otlp")]
    own = [f"warehouse.path={folder}", f"replication.stale_throttle_s={STALE_S}"]
    return config.load(overrides=[*login, *off, *own])


@pytest.fixture(scope="module")
def throttled(cluster: LocalCluster, admin_api: Conf) -> Iterator[Throttled]:
    """A move that went on while a snapshot was taken, and the lists that its throttle left."""
    roles = Roles.of_cluster(cluster)
    throttled = Throttled(TOPIC, roles.home, roles.other)
    with cluster.admin() as admin:
        admin.create_topics({TOPIC: {"assignments": {0: [roles.home]}}}, wait_for_metadata=True)
        write(cluster, "levels-", TOPIC, RECORDS, RECORD_BYTES, acks=1)
        throttled.set(admin, RATE)
        try:
            move(admin, TOPIC, [roles.other], ask=roles.home)
            for pause_s in (0, 4):
                time.sleep(pause_s)
                snapshot(admin_api)
            yield throttled
        finally:
            throttled.set(admin, None)
            admin.delete_topics([TOPIC])


def snapshot(conf: Conf) -> None:
    take.take(conf, datetime.now(UTC), lambda _: None)


@pytest.mark.faults
def test_a_move_is_followed_by_sizes_and_its_throttle_is_left_over_after_it(
    cluster: LocalCluster, admin_api: Conf, throttled: Throttled
) -> None:
    (moving,) = query(admin_api, f"SELECT * FROM ongoing_moves WHERE topic = '{TOPIC}'")
    assert (moving["replica_id"], moving["leader_id"]) == (throttled.follower, throttled.leader)
    assert moving["state"] == "moving"
    assert 0 < moving["size_bytes"] < moving["leader_size_bytes"]
    # A throttle lets through what it did not use in the eleven seconds before.
    assert RATE / 4 < moving["bytes_per_s"] < 12 * RATE
    assert moving["eta_s"] > 0
    assert query(admin_api, "SELECT * FROM throttle_leftovers") == []
    with cluster.admin() as admin:
        for side, broker in (("leader", throttled.leader), ("follower", throttled.follower)):
            set_rate(admin, side, broker, None)
        await_so(lambda: replicas(admin, TOPIC) == [throttled.follower])
    snapshot(admin_api)
    time.sleep(STALE_S + 1)
    snapshot(admin_api)
    assert query(admin_api, "SELECT * FROM ongoing_moves") == []
    left = query(admin_api, "SELECT * FROM throttle_leftovers ORDER BY config_key")
    assert [(row["entity_name"], row["config_key"], row["config_value"]) for row in left] == [
        (TOPIC, "follower.replication.throttled.replicas", f"0:{throttled.follower}"),
        (TOPIC, "leader.replication.throttled.replicas", f"0:{throttled.leader}"),
    ]


@pytest.mark.usefixtures("throttled")
def test_doctor_plan_and_report_work_on_snapshots_alone(admin_api: Conf) -> None:
    findings = {each.subject: each for each in doctor.examine(admin_api)}
    assert findings["level"].observed.startswith("admin_api: the Admin API alone")
    assert findings["level telemetry"].remedy
    assert "a request to write and ship" in findings["level whole_log"].observed
    assert [each for each in findings.values() if each.state == "bad"] == []
    tables = open_reader(admin_api)
    assert planning.make(context.of_plans(admin_api), tables, datetime.now(UTC)) is not None
    reader, now = FolderReader(Warehouse(admin_api.warehouse)), datetime.now(UTC)
    (cluster_id,) = clusters(reader)
    of_cluster = Scope(reader, cluster_id, now - timedelta(days=1), now, now, admin_api)
    by_title = {section.title: section for section in sections(of_cluster)}
    assert "the Admin API alone" in by_title["Overview"].sentences[0]
    assert len(by_title["Replication throttles and moves"].grids) == 2
    assert by_title["Changes that wait"].grids


@pytest.mark.faults
@pytest.mark.usefixtures("throttled")
def test_a_plan_on_snapshots_alone_removes_what_is_left_over(admin_api: Conf) -> None:
    """After the tests above, which leave a list of each side."""
    (left, *others) = planning.make(
        context.of_plans(admin_api), open_reader(admin_api), datetime.now(UTC)
    ).blocked
    assert "replication.remove_leftovers" in left.reason
    assert len(others) == 1
    section = admin_api.replication.model_copy(update={"remove_leftovers": True})
    at_once = admin_api.results.model_copy(update={"settle_s": 1})
    managed = admin_api.model_copy(update={"replication": section, "results": at_once})
    snapshot(managed)
    _, outcomes = apply_run.apply_plan(context.from_conf(managed), None, lambda _: None)
    assert [(each.change.entity.entity_name, each.step) for each in outcomes] == [(TOPIC, DONE)] * 2
    with live_configs.opened(managed) as configs:
        live = configs.read(outcomes[0].change.entity)
    assert {key for key in live if "throttled" in key} == set()
