"""An alert from its first breach to its end: only its client gets another subscription."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from quotaflow.demo.broker_config import REQUEST_LOG_TOPIC
from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.request_lines import logged
from quotaflow.demo.shipper import Shipper
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.feedback.configs.change import Change
from quotaflow.pipelines.feedback.ledger.ledger import DONE
from quotaflow.pipelines.feedback.planning import planning
from quotaflow.pipelines.feedback.runs import apply_run, context
from quotaflow.pipelines.jobs import runner
from quotaflow.pipelines.kafka import client_metrics
from quotaflow.pipelines.snapshots import take
from quotaflow.pipelines.warehouse.readers import open_reader

from .conftest import conf_of_scene
from .readers import await_so
from .tables_read import query

TOPIC = "alerted"
IDLE, BUSY = "rdk-alerted-idle", "rdk-alerted-busy"
METRIC = "org.apache.kafka.consumer.coordinator.assigned.partitions"
USUAL_MS, ALERT_MS = 2_000, 1_000
RULE = (
    f"alerts.rules=[{{name: idle, metric: {METRIC}, below: 0.5, clear: 0.5, for_s: 1, "
    f"stale_s: 3600, subscribe_interval_s: {ALERT_MS // 1_000}}}]"
)
OF_RULE = "rule = 'idle'"
RESOURCE = "quotaflow-alert-idle"
AGE = "plan.max_input_age_s=86400"
"""The shared warehouse may be old by now."""
JOBS = ["ingest_request_log", "client_metrics", "metric_alerts"]


@pytest.fixture
def clients(cluster: LocalCluster) -> Iterator[dict[str, Consumer]]:
    """Two consumers, of which one has no partitions; meanwhile all push less often."""
    cluster.create_topics([TOPIC], 1, 1)
    cluster.subscribe_telemetry("everything", METRIC, USUAL_MS)
    # Nobody polls while jobs run: on a machine at its limit for longer than the default allows.
    login = {**cluster.librdkafka_properties("alice"), "max.poll.interval.ms": 3_600_000}
    with ExitStack() as stack:
        named = {name: {**login, "client.id": name, "group.id": name} for name in (IDLE, BUSY)}
        started = {name: Consumer(properties) for name, properties in named.items()}
        for client in started.values():
            stack.enter_context(closing(client))
        join(started[BUSY])
        yield started
    client_metrics.delete(cluster.client_properties("admin"), RESOURCE)
    cluster.subscribe_telemetry("everything")


def join(consumer: Consumer) -> None:
    """Until the consumer has its partition."""
    consumer.subscribe([TOPIC])
    await_so(lambda: consumer.poll(0.1) is None and bool(consumer.assignment()))


@pytest.fixture
def shipper(cluster: LocalCluster, clients: dict[str, Consumer]) -> Iterator[Shipper]:
    """Ships only the requests of these clients."""
    names = [name.encode() for name in clients]
    login = cluster.librdkafka_properties("shipper")

    def is_others(line: bytes) -> bool:
        return not any(name in line for name in names)

    with Shipper(login, REQUEST_LOG_TOPIC, cluster.request_logs, is_filtered=is_others) as running:
        yield running


@pytest.fixture
def conf(filled: Path, login: list[str], tmp_path: Path) -> Conf:
    """Conf of a warehouse that goes on where the shared one ended, and trusts it after a second."""
    shutil.copytree(filled, tmp_path / "warehouse")
    return conf_of_scene(login, tmp_path, REQUEST_LOG_TOPIC, RULE, "results.settle_s=1", AGE)


def answers(cluster: LocalCluster, client_id: str, api: str) -> list[dict[str, Any]]:
    """What brokers granted a client of this API, in order of time."""
    lines = [
        entry
        for entry in logged(cluster)
        if entry["r"]["requestHeader"]["requestApiKeyName"] == api
        and entry["r"]["requestHeader"]["clientId"] == client_id
        and entry["r"]["response"]["errorCode"] == 0
    ]
    return [entry["r"]["response"] for entry in sorted(lines, key=lambda entry: int(entry["ts"]))]


def await_pushes(cluster: LocalCluster, count: int) -> None:
    """Until the idle client pushed as often again."""
    before = len(answers(cluster, IDLE, "PUSH_TELEMETRY"))
    await_so(lambda: len(answers(cluster, IDLE, "PUSH_TELEMETRY")) >= before + count)


def await_interval(cluster: LocalCluster, interval_ms: int) -> None:
    """Wait until the idle client gets this interval."""

    def intervals_now() -> list[int]:
        lines = answers(cluster, IDLE, "GET_TELEMETRY_SUBSCRIPTIONS")
        return [answer["pushIntervalMs"] for answer in lines[-1:]]

    await_so(lambda: intervals_now() == [interval_ms])


def changes(conf: Conf) -> tuple[Change, ...]:
    """The plan's changes of client metrics now; nothing is blocked."""
    made = planning.make(context.of_plans(conf), open_reader(conf), datetime.now(UTC))
    of_metrics = [
        blocked for blocked in made.blocked if blocked.desired.entity_type == "client-metrics"
    ]
    assert of_metrics == []
    return tuple(c for c in made.changes if c.desired.entity_type == "client-metrics")


def carry_out(conf: Conf, planned_changes: tuple[Change, ...]) -> None:
    """Apply the plan, after which nothing is left to plan, nor after a snapshot."""
    _, outcomes = apply_run.apply_plan(context.from_conf(conf), None, lambda _: None)
    done = {outcome.change.change_id for outcome in outcomes if outcome.step == DONE}
    assert done == {change.change_id for change in planned_changes}
    assert changes(conf) == ()
    take.take(conf, datetime.now(UTC), lambda _: None, ["configs"])
    assert changes(conf) == ()


def of_tables(conf: Conf, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in query(conf, sql)]


def intervals(conf: Conf) -> dict[str, list[int]]:
    """The push intervals that each client got, in order of time."""
    rows = of_tables(
        conf,
        "SELECT client_id, push_interval_ms FROM telemetry_subscriptions WHERE error_code = 0 "
        f"AND client_id IN ('{IDLE}', '{BUSY}') "
        "GROUP BY client_id, push_interval_ms ORDER BY min(event_time)",
    )
    return {name: [ms for client, ms in rows if client == name] for name, _ in rows}


def mean_gap_ms(conf: Conf, interval_ms: int) -> float:
    """Times between pushes of the idle client while it had this interval."""
    pushes = of_tables(
        conf,
        f"SELECT event_time FROM telemetry_contacts WHERE client_id = '{IDLE}' AND accepted "
        f"AND is_push = 1 AND interval_ms = {interval_ms} ORDER BY event_time",
    )
    ((first,), *_, (last,)) = pushes
    return (last - first) / timedelta(milliseconds=1) / (len(pushes) - 1)


@pytest.mark.faults
@pytest.mark.shows("raises alerts by rules, and subscribes to more while one is open")
def test_its_client_alone_is_asked_for_more_until_it_ends(
    cluster: LocalCluster, clients: dict[str, Consumer], shipper: Shipper, conf: Conf
) -> None:
    def run_jobs() -> None:
        shipper.drain()
        runner.run(conf, JOBS, None, lambda _: None)

    await_pushes(cluster, 2)
    run_jobs()
    ((client, instance, is_open),) = of_tables(
        conf, f"SELECT client_id, client_instance_id, is_open FROM metric_alerts WHERE {OF_RULE}"
    )
    assert (client, is_open) == (IDLE, True)
    planned = changes(conf)
    assert {change.desired.entity_name for change in planned} == {RESOURCE}
    assert {change.desired.config_key: change.value for change in planned} == {
        "interval.ms": str(ALERT_MS),
        "match": f"client_instance_id={instance}",
        "metrics": "org.apache.kafka.consumer.",
    }
    carry_out(conf, planned)

    await_interval(cluster, ALERT_MS)
    await_pushes(cluster, 2)
    join(clients[IDLE])
    await_pushes(cluster, 2)
    run_jobs()
    ended = of_tables(conf, f"SELECT is_open, reason FROM metric_alerts WHERE {OF_RULE}")
    assert ended == [(False, "cleared")]
    assert intervals(conf) == {IDLE: [USUAL_MS, ALERT_MS], BUSY: [USUAL_MS]}
    assert mean_gap_ms(conf, ALERT_MS) < 0.9 * USUAL_MS < mean_gap_ms(conf, USUAL_MS)
    takes_back = changes(conf)
    assert {(change.desired.entity_name, change.value) for change in takes_back} == {
        (RESOURCE, None)
    }
    carry_out(conf, takes_back)

    assert RESOURCE not in client_metrics.read(conf.kafka.properties)
    await_interval(cluster, USUAL_MS)
