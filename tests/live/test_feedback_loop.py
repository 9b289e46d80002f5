"""An applied plan works: it throttles only the users it names, until it is restored."""

import shutil
import time
from collections import defaultdict
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import Producer, ThrottleEvent

from quotaflow.demo.broker_config import REQUEST_LOG_TOPIC
from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.shipper import Shipper
from quotaflow.pipelines import config
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.feedback.configs.change import Plan
from quotaflow.pipelines.feedback.ledger.ledger import DONE
from quotaflow.pipelines.feedback.ledger.outcome import Outcome
from quotaflow.pipelines.feedback.runs import apply_run, context
from quotaflow.pipelines.jobs import runner
from quotaflow.pipelines.snapshots import take

from . import advised_quotas, live_configs, quiet_clients
from .tables_read import query

TOPIC = "feedback-loop"
MALLORY, ALICE = "mallory", "alice"
# What one test makes a user produce must not count as what another's quota is advised from.
HEIDI = "heidi"
BYTES = "producer_byte_rate"
RECORD_BYTES = 10_000
# Far over what mallory may produce in a window of 11 s, on any machine.
RECORDS = 2_000
WATCHED_S = 3.0
LEASE_S = 60
LEASE = f"plan.lease_s={LEASE_S}"


class Work:
    """Two users who produce side by side, as fast as brokers let them."""

    def __init__(self, cluster: LocalCluster, throttled: str) -> None:
        self.throttles: dict[str, list[float]] = defaultdict(list)
        self._producers = {user: self._producer(cluster, user) for user in (throttled, ALICE)}

    def _producer(self, cluster: LocalCluster, user: str) -> Producer:
        def throttled(event: ThrottleEvent) -> None:
            if event.throttle_time > 0:
                self.throttles[user].append(event.throttle_time)

        settings = {"client.id": f"{TOPIC}-{user}", "queue.buffering.max.messages": 2 * RECORDS}
        login = cluster.librdkafka_properties(user)
        return Producer({**login, **quiet_clients.QUIET, **settings, "throttle_cb": throttled})

    def run(self) -> None:
        """Until everything is sent; the throttles are those of this time."""
        self.throttles.clear()
        for _ in range(RECORDS):
            for producer in self._producers.values():
                producer.produce(TOPIC, bytes(RECORD_BYTES), partition=0)
                producer.poll(0)
        end_s = time.monotonic() + WATCHED_S
        while time.monotonic() < end_s:
            for producer in self._producers.values():
                producer.poll(0.1)

    def drop(self) -> None:
        """What a throttled user could not send is nothing anybody waits for."""
        for producer in self._producers.values():
            producer.purge()
            producer.flush(5)

    def close(self) -> None:
        """End: a running producer would search for stopped brokers."""
        self.drop()
        self._producers.clear()


@pytest.fixture(scope="module", autouse=True)
def topic(cluster: LocalCluster) -> None:
    cluster.create_topics([TOPIC], partitions=1, replication_factor=1)


@pytest.mark.shows("bounds what a plan may change, and whom it may touch")
def test_who_is_planned_is_throttled_and_nobody_else_until_it_is_given_back(
    cluster: LocalCluster, conf: Conf
) -> None:
    advised_quotas.fill(conf, cluster.cluster_id, [HEIDI])
    advised = conf.model_copy(update={"quotas": config.QuotasSection(advised_users=[HEIDI])})
    with closing(Work(cluster, HEIDI)) as work:
        throttled_and_restored(advised, work)


def throttled_and_restored(conf: Conf, work: Work) -> None:
    try:
        work.run()
        assert work.throttles == {}
        _, outcomes = applied(conf)
        assert [o.step for o in outcomes] == [DONE]
        work.run()
        assert (set(work.throttles), max(work.throttles[HEIDI]) > 0.5) == ({HEIDI}, True)
    finally:
        work.drop()
        restored = live_configs.restored(conf)[1]
    assert [o.step for o in restored] == [DONE]
    # A bucket that was overdrawn is forgotten with its quota.
    work.run()
    assert work.throttles == {}


def is_others(line: bytes) -> bool:
    """What the shared run shipped already."""
    return TOPIC.encode() not in line and b"ALTER_CLIENT_QUOTAS" not in line


def applied(conf: Conf) -> tuple[Plan, list[Outcome]]:
    return apply_run.apply_plan(context.from_conf(conf), None, lambda _: None)


@pytest.mark.faults
@pytest.mark.timeout(1_800)
def test_who_conf_names_is_held_to_what_it_used_seen_to_be_held_and_let_go(
    cluster: LocalCluster, filled: Path, login: list[str], tmp_path: Path
) -> None:
    folder = shutil.copytree(filled, tmp_path / "warehouse")
    ways = ["ingest.receiver_topic=null", "plan.max_input_age_s=86400", "results.settle_s=1"]
    ways.append("plan.min_history_s=1")
    advised = f"quotas.advised_users=[{MALLORY}]"
    conf = config.load(overrides=[*login, f"warehouse.path={folder}", *ways, advised, LEASE])
    take.take(conf, datetime.now(UTC), lambda _: None, ["settings", "client_quotas"])
    plan, outcomes = applied(conf)
    quotas = {o.change.desired.config_key: o.change.value for o in outcomes if o.step == DONE}
    assert {change.entity.entity_name for change in plan.changes} == {MALLORY}
    assert {change.desired.evidence_table for change in plan.changes} == {"quota_advice"}
    assert BYTES in quotas
    began = datetime.now(UTC)
    login_of_shipper = cluster.librdkafka_properties("shipper")
    with (
        Shipper(
            login_of_shipper, REQUEST_LOG_TOPIC, cluster.request_logs, is_filtered=is_others
        ) as shipper,
        closing(Work(cluster, MALLORY)) as work,
    ):
        work.run()
        work.drop()
        shipper.drain()
    runner.run(conf, ["ingest_request_log"], None, lambda _: None)
    take.take(conf, datetime.now(UTC), lambda _: None, ["client_quotas"])
    runner.run(conf, ["request_results"], None, lambda _: None)
    rows = query(
        folder,
        "SELECT principal, throttled_by, sum(throttle_time_ms) AS ms FROM throttled_clients "
        f"WHERE client_id IN ('{TOPIC}-{MALLORY}', '{TOPIC}-{ALICE}') "
        "GROUP BY principal, throttled_by",
    )
    assert {row["principal"] for row in rows} == {f"User:{MALLORY}"}
    by = {row["throttled_by"]: row["ms"] for row in rows}
    assert by.keys() <= quotas.keys()
    assert by[BYTES] > 500
    while datetime.now(UTC).timestamp() < began.timestamp() + LEASE_S:
        time.sleep(1)
    restore_plan, restored = live_configs.restored(conf, everything=False)
    assert {o.change.entity.entity_name for o in restored} == {MALLORY}
    assert {o.change.desired.config_key: o.step for o in restored} == dict.fromkeys(quotas, DONE)
    assert restore_plan.yielded == ()
    with closing(Work(cluster, MALLORY)) as work:
        work.run()
        assert work.throttles == {}
