"""Racks and fetch sizes of real consumers, in the tables and views (KIP-392, KIP-74)."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines.jobs import registry, runner
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.declared import CLIENT_METRICS, MOVING_REPLICAS

from ..schemas.views.view_tables import picked
from . import rack_scene, replay_tables
from .conftest import conf_of_scene
from .rack_scene import (
    BURST_RECORDS,
    FULL,
    HUGE,
    HUGE_BYTES,
    LAGGING,
    LARGE,
    LARGE_BYTES,
    LARGE_RECORDS,
    LATE,
    LOG,
    MOVED,
    NO_RACK,
    NOWHERE,
    PREFIX,
    REDIRECTED,
    SHORT,
    SHORT_BYTES,
    SPREAD,
    STICKY,
    STRAY,
    TINY,
    TINY_BYTES,
    Scene,
)
from .replay import MOMENT_UNKNOWN, NAMES_NOBODY, verdict
from .tables_read import query

pytestmark = pytest.mark.faults
HERE = "az-a"
"""The rack of this machine by conf, and so of clients that declare none."""
JOBS = ["ingest_request_log", "fetches", "fetch_results"]
EMPTY = [CLIENT_METRICS, MOVING_REPLICAS, *registry.JOBS["request_results"].fills]
"""What views read beside; nobody pushes here, and other tests cover the rest."""
Row = dict[str, Any]


@pytest.fixture(scope="module")
def scene(
    cluster: LocalCluster, login: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Scene:
    """Played once, and every table made of it."""
    folder = tmp_path_factory.mktemp("racks")
    conf = conf_of_scene(login, folder, LOG, f"racks.127.0.0.1/32={HERE}")
    played = rack_scene.play(cluster, conf)
    Warehouse(conf.warehouse).ensure(lambda: session.get(conf.spark), EMPTY)
    runner.run(conf, JOBS, None, lambda _: None)
    return played


def choices(scene: Scene, client_id: str) -> list[Row]:
    """Rows of a client, in order of time, partition and broker."""
    return query(
        scene.conf,
        f"SELECT * FROM preferred_replicas WHERE client_id = '{client_id}' "
        "ORDER BY event_time, partition, broker_id",
    )


def leaders(scene: Scene) -> dict[int, int]:
    """Partition of SPREAD -> its leader."""
    return {number: replicas[0] for number, replicas in scene.roles.topics[SPREAD].items()}


@pytest.mark.parametrize("broker_id", [1, 2, 3])
def test_a_consumer_reads_in_its_rack_and_leaders_elsewhere_name_it(
    scene: Scene, broker_id: int
) -> None:
    rows = choices(scene, f"{PREFIX}{scene.rack(broker_id)}")
    read = [row for row in rows if row["bytes"] > 0]
    assert picked(read, "topic", "partition", "broker_id", "cross_rack_bytes") == [
        (SPREAD, partition, broker_id, 0) for partition in range(3)
    ]
    sent = [row for row in rows if row["redirects"] > 0]
    replicas = ("preferred_read_replica", "expected_replica", "recommended_replica")
    names = ("partition", "broker_id", *replicas)
    assert picked(sent, *names) == [
        (partition, leader, *[broker_id] * 3)
        for partition, leader in leaders(scene).items()
        if leader != broker_id
    ]
    reasons = dict.fromkeys(leaders(scene).values(), "follower_in_rack")
    reasons |= {broker_id: "leader_in_rack"}
    assert {row["leader_id"]: row["expected_reason"] for row in rows} == reasons
    assert {row["eligibility"] for row in rows} == {"known"}


@pytest.mark.shows("infers the rack of a client by its address")
def test_who_tells_no_rack_is_placed_by_its_address(scene: Scene) -> None:
    rows = choices(scene, NO_RACK)
    assert {(row["client_rack"], row["is_rack_inferred"]) for row in rows} == {(HERE, True)}
    assert picked(rows, "partition", "broker_id") == [*leaders(scene).items()]
    assert {row["expected_reason"] for row in rows} == {"no_client_rack"}
    assert {row["recommended_replica"] for row in rows} == {1}
    for row in rows:
        crossed = 0 if row["broker_id"] == 1 else row["bytes"]
        assert (row["cross_rack_bytes"], row["avoidable_bytes"]) == (crossed, crossed)


def test_of_a_rack_that_no_broker_has_nobody_knows_what_crosses(scene: Scene) -> None:
    rows = choices(scene, STRAY)
    assert picked(rows, "partition", "broker_id") == [*leaders(scene).items()]
    assert {row["expected_reason"] for row in rows} == {"no_replica_in_rack"}
    for row in rows:
        assert (row["cross_rack_bytes"], row["avoidable_bytes"]) == (None, None)


def test_a_leader_that_moved_is_the_new_one_after_the_next_snapshot(scene: Scene) -> None:
    home, other = scene.roles.home, scene.roles.other
    before, *after = choices(scene, REDIRECTED)
    names = ("topic", "broker_id", "leader_id", "expected_reason", "redirects")
    assert picked([before], *names) == [(MOVED, home, home, "leader_in_rack", 0)]
    read, sent = sorted(after, key=lambda row: row["broker_id"] != home)
    assert picked([read, sent], "event_time", "broker_id", "leader_id", "expected_reason") == [
        (sent["event_time"], broker_id, other, "follower_in_rack") for broker_id in (home, other)
    ]
    assert read["bytes"] > sent["bytes"] == 0
    assert (sent["preferred_read_replica"], sent["redirects"] > 0) == (home, True)


def test_a_follower_out_of_sync_is_named_to_nobody_and_lags_for_who_stays(scene: Scene) -> None:
    home, away = scene.roles.home, scene.roles.away
    (late,) = choices(scene, LATE)
    names = ("topic", "broker_id", "expected_reason", "recommended_reason", "avoidable_bytes")
    reason = "not_eligible_in_rack"
    assert picked([late], *names, "redirects") == [(LAGGING, home, reason, reason, 0, 0)]
    assert late["cross_rack_bytes"] == late["bytes"] > BURST_RECORDS * rack_scene.BURST_BYTES

    rows = choices(scene, STICKY)
    stayed = [row for row in rows if row["bytes"] > 0]
    assert picked(stayed, "broker_id", "expected_reason", "cross_rack_bytes") == [
        (away, "follower_in_rack", 0),
        (away, reason, 0),
    ]
    in_sync, lagging = (row["hw_lag"] for row in stayed)
    assert in_sync <= 1
    assert 100 < lagging < BURST_RECORDS


def test_leaders_named_whom_the_rule_names(scene: Scene) -> None:
    folder = Path(scene.conf.warehouse.path)
    replayed = replay_tables.cluster(folder)
    verdicts = Counter(verdict(answer, replayed) for _, answer in replay_tables.answers(folder))
    compared = {"leader_in_rack", "follower_in_rack", "no_replica_in_rack"}
    assert compared <= verdicts.keys() <= compared | {NAMES_NOBODY, MOMENT_UNKNOWN}


@pytest.mark.shows("compares the rack that a client has with the rack that it reads from")
def test_verdicts_tell_who_reads_where(scene: Scene) -> None:
    rows = query(
        scene.conf, "SELECT client_id, declared_rack, inferred_rack, verdict FROM client_racks"
    )
    verdicts = {client_id: tuple(verdict) for client_id, *verdict in map(dict.values, rows)}
    home, away = scene.rack(scene.roles.home), scene.rack(scene.roles.away)
    racks = {f"{PREFIX}{rack}": rack for rack in scene.cluster.racks.values()}
    racks |= dict.fromkeys((TINY, HUGE, SHORT, REDIRECTED), home) | {STICKY: away}
    assert verdicts == {
        **{client_id: (rack, None, "followed") for client_id, rack in racks.items()},
        NO_RACK: (None, HERE, "no_rack"),
        STRAY: (NOWHERE, None, "unknown"),
        LATE: (away, None, "elsewhere"),
    }


@pytest.mark.shows("advises racks, with what each saves")
def test_advice_is_to_tell_a_rack_that_brokers_have(scene: Scene) -> None:
    rows = query(scene.conf, "SELECT * FROM replica_advice WHERE advice <> 'move_leader'")
    names = ("advice", "client_id", "client_rack", "topic")
    # Clients of a rack that no broker has are found by `traffic`, which is empty here.
    assert picked(rows, *names) == [("set_client_rack", NO_RACK, HERE, None)]
    (of_no_rack,) = (row for row in rows if row["client_id"] == NO_RACK)
    saved = sum(row["cross_rack_bytes"] for row in choices(scene, NO_RACK))
    assert of_no_rack["saved_bytes_per_hour"] == pytest.approx(saved / (2 / 60))


def sizes(scene: Scene, client_id: str) -> Row:
    (row,) = query(scene.conf, f"SELECT * FROM fetch_sizes WHERE client_id = '{client_id}'")
    return row


def advised(scene: Scene, client_id: str) -> list[tuple[Any, ...]]:
    rows = query(scene.conf, f"SELECT * FROM fetch_advice WHERE client_id = '{client_id}'")
    return picked(rows, "advice", "setting", "current_value", "recommended_value")


@pytest.mark.shows("finds starved partitions, and consumers that do not rotate")
def test_a_small_fetch_max_bytes_cuts_answers_and_starves_a_partition(scene: Scene) -> None:
    tiny = sizes(scene, TINY)
    assert tiny["max_bytes_fetches"] > tiny["drained_fetches"] > 0
    assert (tiny["max_response_bytes"], tiny["max_bytes"]) == (TINY_BYTES, TINY_BYTES)
    assert tiny["starved_partitions"] == len(scene.roles.topics[FULL])
    assert advised(scene, TINY) == [
        ("raise_fetch_max_bytes", "fetch.max.bytes", TINY_BYTES, 2 * TINY_BYTES)
    ]


@pytest.mark.shows("bounds the memory of a consumer by its own limits")
def test_a_large_one_asks_for_memory_that_is_never_used(scene: Scene) -> None:
    huge = sizes(scene, HUGE)
    assert (huge["bound_bytes"], huge["starved_fetches"]) == (HUGE_BYTES, 0)
    assert huge["max_bytes_fetches"] == huge["partition_max_bytes_fetches"] == 0
    ((advice, setting, now, then),) = advised(scene, HUGE)
    assert (advice, setting) == ("lower_max_partition_fetch_bytes", "max.partition.fetch.bytes")
    assert huge["max_response_bytes"] <= then < now == HUGE_BYTES


def test_a_batch_over_the_limit_comes_whole_and_is_named(scene: Scene) -> None:
    short = sizes(scene, SHORT)
    assert short["first_batch_fetches"] == short["oversized_batches"] == LARGE_RECORDS
    (size,) = {batch["bytes"] for batch in short["largest_oversized"]}
    assert LARGE_BYTES < size < LARGE_BYTES + 200
    named = picked(short["largest_oversized"], "topic", "partition", "fetch_offset")
    assert set(named) == {(LARGE, 0, offset) for offset in range(LARGE_RECORDS)}
    setting = ("raise_max_partition_fetch_bytes", "max.partition.fetch.bytes")
    assert advised(scene, SHORT) == [(*setting, SHORT_BYTES, short["max_response_bytes"])]
