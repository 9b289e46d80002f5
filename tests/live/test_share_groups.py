"""Java's share consumers on a real cluster: deliveries, quotas, locks (KIP-932)."""

from typing import Any

import pytest

from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines.config import QuotasSection
from quotaflow.pipelines.results.declared import result_of
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ..command_line import Command
from ..rule_rows import compute
from ..schemas.views.view_tables import make_tables
from . import share_scene
from .share_scene import BYTES_EACH, QUOTA, REFUSED, REFUSES, RETURNED, RETURNS, THROTTLED, Scene

Row = dict[str, Any]
COUNTS = ("accepted_records", "released_records", "rejected_records", "redelivered_records")
COUNTS += ("lock_timeouts", "unexplained_redeliveries", "throttled_requests", "errors")


@pytest.fixture(scope="module")
def scene(cluster: LocalCluster) -> Scene:
    """Shared: the consumers have worked."""
    return share_scene.play(cluster)


def counts(requests: list[Row]) -> dict[str, Row]:
    """Sums by group."""
    rows = compute(result_of("share_fetches"), requests=requests)
    groups = {row["group_id"] for row in rows}
    return {
        group: {
            name: sum(row[name] for row in rows if row["group_id"] == group)
            for name in (*COUNTS, "acquired_records", "fetches")
        }
        for group in groups
    }


def test_what_members_return_and_refuse_is_counted(scene: Scene) -> None:
    by_group = counts(scene.requests)
    returns, refuses = by_group[RETURNS], by_group[REFUSES]
    assert returns["released_records"] >= RETURNED
    assert returns["redelivered_records"] > 0
    assert returns["rejected_records"] == returns["accepted_records"] == 0
    assert refuses["rejected_records"] >= REFUSED
    assert refuses["redelivered_records"] == refuses["accepted_records"] == 0
    assert returns["lock_timeouts"] == returns["unexplained_redeliveries"] == 0
    assert returns["throttled_requests"] == refuses["throttled_requests"] == 0


@pytest.fixture(scope="module")
def usage(scene: Scene) -> list[Row]:
    """Shared: what the consumers used of their quotas."""
    quota = {"cluster_id": scene.cluster.cluster_id, "event_time": scene.requests[0]["event_time"]}
    quota |= {"user": share_scene.THROTTLED_USER, "config_key": "consumer_byte_rate"}
    quota |= dict.fromkeys(("is_default_user", "is_default_client_id", "is_default_ip"), False)
    quota |= {"quota": float(QUOTA), "is_removed": False}
    return compute(result_of("quota_usage"), requests=scene.requests, client_quotas=[quota])


def test_a_throttled_share_consumer_is_charged_to_its_quota_of_bytes(
    scene: Scene, usage: list[Row]
) -> None:
    throttled = [row for row in usage if row["throttled_requests"]]
    assert {(row["client_id"], row["quota_type"], row["throttled_by"]) for row in throttled} == {
        (THROTTLED, "consumer_byte_rate", "consumer_byte_rate")
    }
    assert all(row["is_lower_bound"] for row in throttled)
    # What its quota leaves for one answer is what it got, except for the bytes around records. On
    # a slow machine it lives long enough for more.
    got = counts(scene.requests)[THROTTLED]["acquired_records"] * BYTES_EACH
    times = [row["event_time"] for row in scene.requests if row["client_id"] == THROTTLED]
    lasted_s = (max(times) - min(times)).total_seconds()
    refilled_s = QuotasSection().refill_s
    assert 0.9 * QUOTA * refilled_s < got < QUOTA * (refilled_s + lasted_s)


@pytest.mark.faults
def test_why_names_a_share_consumer_under_a_quota_of_bytes(
    usage: list[Row], warehouse: Warehouse, table_command: Command
) -> None:
    make_tables(warehouse, {"quota_usage": usage})
    out = table_command("why", THROTTLED, "--all").out
    assert "consumer_byte_rate most likely throttled" in out
    assert "SHARE_FETCH" in out
    assert "consumer_byte_rate of user ivan is 20.0 kB/s at each broker" in out


@pytest.mark.faults
def test_a_lock_that_runs_out_counts_for_the_member_that_had_it(cluster: LocalCluster) -> None:
    requests = share_scene.stop_one(cluster, "java-stops", lock_ms=15_000)
    row = counts(requests)["java-stops"]
    assert row["lock_timeouts"] == row["redelivered_records"] > 0
