"""What client-metrics resources give each client, beside what it got."""

from typing import Any

from quotaflow.pipelines.kafka.cluster_state import ClusterState
from quotaflow.pipelines.snapshots import client_subscriptions
from quotaflow.pipelines.snapshots.sections import ClusterObserver
from quotaflow.schemas.tables.declared import CLIENT_SUBSCRIPTIONS, CONFIGS

from ... import case_tables
from ...cases import cases
from .snapshot_scenes import EVERY_S, Resources, Scene, answer, at, of_resources


@cases(
    ("answers", "resources", "expected"),
    *case_tables.rows(
        __file__, "what_resources_give_a_client_beside_what_it_got", answer, EVERY_S=EVERY_S
    ),
    (
        "refused, of another cluster, or long ago",
        [
            answer(5, error_code=89),
            answer(5, cluster_id="c2"),
            answer(-2 * 24 * 60),
        ],
        EVERY_S,
        [],
    ),
    (
        "answered with what cannot be read",
        [
            answer(5, requested_metrics=[None, "a"], client_instance_id="i1"),
            answer(5, requested_metrics=None, client_instance_id="i2"),
        ],
        EVERY_S,
        [(instance, ["all"], ["*"], 1_000, "differs") for instance in ("i1", "i2")],
    ),
)
def test_what_resources_give_a_client_beside_what_it_got(
    scene: Scene,
    answers: list[dict[str, Any]],
    resources: Resources,
    expected: list[tuple[Any, ...]],
) -> None:
    scene.make("client_subscriptions")
    scene.put("telemetry_subscriptions", answers)
    cluster = of_resources(resources)
    assert scene.take(1, cluster, [CONFIGS]) == sum(map(len, resources.values()))
    for minute in (6, 7):
        seen = ClusterObserver(ClusterState(cluster), set).observed(CLIENT_SUBSCRIPTIONS)
        client_subscriptions.replace(scene.snapshot(minute), seen)
    columns = "subscriptions, predicted_metrics, predicted_interval_ms, state"
    sql = f"SELECT client_instance_id, {columns} FROM client_subscriptions"
    assert scene.rows(sql) == expected


def test_rows_of_another_cluster_stay(scene: Scene) -> None:
    scene.make("client_subscriptions")
    other = {"cluster_id": "c2", "event_time": at(0), "snapshot_time": at(0)}
    scene.put("client_subscriptions", [other, other | {"cluster_id": "c1"}])
    scene.put("telemetry_subscriptions", [answer(5)])
    assert scene.take(6, of_resources(EVERY_S), [CLIENT_SUBSCRIPTIONS]) == 1
    sql = "SELECT cluster_id, event_time, snapshot_time, client_id FROM client_subscriptions"
    assert scene.rows(sql) == [("c1", at(5), at(6), "orders"), ("c2", at(0), at(0), None)]
