"""A move that never ends under its throttle, and ends as foretold under the one advised."""

import time
from datetime import timedelta
from pathlib import Path
from threading import Event

import pytest

from quotaflow.demo import pause_scene
from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.replica_moves import Throttled, move
from quotaflow.demo.request_lines import now_ms
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.feedback.ledger.ledger import DONE
from quotaflow.pipelines.feedback.runs import apply_run, context
from quotaflow.schemas.configs import BROKER

from . import live_configs
from .conftest import conf_of_scene, login_of
from .rack_scene import Roles
from .slow_move import CAPACITY, LOG, RATE, TOPIC, WRITTEN, Move, await_end, started
from .tables_read import make_missing

FULL_MINUTE_S = 75
"""Until a whole minute is reported."""


@pytest.mark.faults
@pytest.mark.timeout(1_200)
@pytest.mark.shows("shows progress and end of a move, and those that never end")
def test_a_throttle_under_what_is_written_is_flagged_and_the_advised_one_ends_it(
    cluster: LocalCluster, login: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    conf = conf_of(login, tmp_path_factory.mktemp("slow-move"))
    roles = Roles.of_cluster(cluster)
    throttled = Throttled(TOPIC, roles.home, roles.other)
    with started(cluster, conf, throttled) as running, cluster.admin() as admin:
        move(admin, TOPIC, [throttled.follower], ask=roles.home)
        time.sleep(FULL_MINUTE_S)
        # Answers wait until all that they read is there.
        make_missing(conf)
        running.go_on(with_snapshot=True)
        flagged(running)
        advised(running)
        _, outcomes = apply_run.apply_plan(context.from_conf(conf), None, lambda _: None)
        assert [o.step for o in outcomes if o.change.entity.entity_type == BROKER] == [DONE] * 2
        raised_ms = now_ms()
        await_end(admin, throttled)
        time.sleep(1)
        half_way_ms = (raised_ms + now_ms()) // 2
        _, restored = live_configs.restored(conf)
        assert {(o.change.value, o.step) for o in restored} == {(str(RATE), DONE)}
    running.go_on(half_way_ms)
    foretold = running.move()
    running.go_on()
    ended = running.move()
    assert (foretold["state"], ended["state"]) == ("moving", "done")
    end = foretold["last_fetch_time"] + timedelta(seconds=foretold["eta_s"])
    off_s = abs((ended["joined_time"] - end).total_seconds())
    # The end was foretold for the pace until then, and other work on the machine changes the pace.
    # That at the end is of two minutes, of which half can be from before.
    bytes_per_s = ended["bytes_per_s"] - ended["written_bytes_per_s"]
    changed_s = 2 * abs(foretold["bytes_left"] / bytes_per_s - foretold["eta_s"])
    assert off_s <= foretold["eta_error_s"] + changed_s, (off_s, changed_s, foretold, ended)


@pytest.mark.faults
@pytest.mark.timeout(1_200)
def test_a_follower_that_must_catch_up_gets_its_bandwidth_beside_partitions_at_min_isr(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its throttle is halved while clients are slow, and not because another ISR shrank."""
    settings = {"replica.lag.time.max.ms": str(pause_scene.LAG_TIME_MS)}
    with LocalCluster(tmp_path / "cluster", settings=settings) as cluster:
        conf = conf_of(login_of(cluster, monkeypatch), tmp_path)
        roles = Roles.of_cluster(cluster)
        throttled = Throttled(TOPIC, roles.home, roles.other)
        cluster.create_topics([pause_scene.TOPIC], partitions=6, replication_factor=2)
        with started(cluster, conf, throttled) as running, cluster.admin() as admin:
            running.go_on(with_snapshot=True)
            move(admin, TOPIC, [throttled.follower], ask=roles.home)
            pause_scene.play(cluster, Event())
            time.sleep(FULL_MINUTE_S)
            make_missing(conf)
            running.go_on(with_snapshot=True)
            (seen,) = running.rows(
                "SELECT max(shrunk_partitions) AS shrunk, max(is_slow) AS is_slow "
                "FROM broker_degradation"
            )
            assert seen["shrunk"] > 0
            assert not seen["is_slow"]
            advised(running)


def conf_of(login: list[str], folder: Path) -> Conf:
    """Conf of a plan that sets rates of moves."""
    rates = ["replication.manage=true", f"replication.capacity_bytes_per_s={CAPACITY}"]
    at_once = ["results.settle_s=1", "plan.max_input_age_s=86400"]
    return conf_of_scene(login, folder, LOG, *rates, *at_once)


def flagged(move: Move) -> None:
    """It never ends, and the least a throttle must let through is what is written."""
    row = move.move()
    assert row["state"] == "never_converges", row
    assert row["eta_s"] is None
    assert row["written_bytes_per_s"] == pytest.approx(WRITTEN, rel=0.1)
    assert row["bytes_per_s"] == pytest.approx(RATE, rel=0.25)


def advised(move: Move) -> None:
    """The plan's rates of both ends."""
    desired = move.rows("SELECT * FROM desired_configs WHERE entity_type = 'broker'")
    throttled = move.throttled
    assert {(row["entity_name"], row["config_key"].partition(".")[0]) for row in desired} == {
        (str(throttled.leader), "leader"),
        (str(throttled.follower), "follower"),
    }
    for row in desired:
        assert (row["blocked_reason"], row["prior_value"]) == (None, str(RATE)), row
        assert float(row["config_value"]) == pytest.approx(2 * WRITTEN, rel=0.1)
