"""What becomes of moves of replicas on a real cluster, in tables, checks, and the plan."""

from collections.abc import Iterator

import pytest

from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.feedback.configs.change import DELETE
from quotaflow.pipelines.feedback.ledger.ledger import DONE
from quotaflow.pipelines.feedback.ledger.outcome import Outcome
from quotaflow.pipelines.feedback.runs import apply_run, context
from quotaflow.pipelines.jobs import runner

from . import live_configs, move_scene
from .conftest import conf_of_scene
from .move_scene import DOWN, LEFT, LOG, RATE
from .rack_scene import Roles
from .tables_read import make_missing, query

pytestmark = pytest.mark.faults
JOBS = ["ingest_request_log", "fetches", "request_results"]


@pytest.fixture(scope="module")
def conf(login: list[str], tmp_path_factory: pytest.TempPathFactory) -> Conf:
    """Conf of the shared cluster, with the log topic of the scene."""
    folder = tmp_path_factory.mktemp("moves")
    return conf_of_scene(login, folder, LOG, "plan.max_input_age_s=86400")


@pytest.fixture(scope="module")
def roles(cluster: LocalCluster, conf: Conf) -> Iterator[Roles]:
    """The scene, played once, and the tables made of it."""
    with move_scene.played(cluster, conf) as played:
        # An answer is computed at the end of a run if all that it reads is there.
        make_missing(conf)
        runner.run(conf, JOBS, None, lambda _: None)
        yield played


def test_a_move_to_a_broker_that_is_down_is_stuck(conf: Conf, roles: Roles) -> None:
    rows = query(conf, "SELECT * FROM reassignments")
    states = {(row["topic"], row["replica_id"]): row["state"] for row in rows}
    assert states == {(LEFT, roles.other): "done", (DOWN, roles.away): "stuck"}
    assert {row["requested_by"] for row in rows} == {"User:admin"}


@pytest.mark.shows("finds throttles that are left over or set in part")
def test_what_is_left_over_is_found(conf: Conf, roles: Roles) -> None:
    rows = query(conf, "SELECT * FROM throttle_checks WHERE finding LIKE 'stale_%'")
    findings = {(row["finding"], row["topic"], row["side"], row["broker_id"]) for row in rows}
    assert findings == {
        ("stale_list", LEFT, "leader", None),
        ("stale_list", LEFT, "follower", None),
        ("stale_rate", None, "leader", roles.home),
        ("stale_rate", None, "follower", roles.other),
    }
    assert {row["set_by"] for row in rows} == {"User:admin"}
    assert {row["rate"] for row in rows} == {None, float(RATE)}
    for row in rows:
        assert row["age_s"] > (move_scene.MINUTES_LATER - 1) * 60


def test_what_this_login_left_over_is_planned_to_be_removed(conf: Conf, roles: Roles) -> None:
    rows = query(conf, "SELECT * FROM desired_configs WHERE config_key LIKE '%throttled%'")
    planned = {
        (row["entity_name"], row["config_key"]): (row["config_value"], row["prior_value"])
        for row in rows
    }
    rate, replicas = "replication.throttled.rate", "replication.throttled.replicas"
    assert planned == {
        (str(roles.home), f"leader.{rate}"): (None, str(RATE)),
        (str(roles.other), f"follower.{rate}"): (None, str(RATE)),
        (LEFT, f"leader.{replicas}"): (None, f"0:{roles.home}"),
        (LEFT, f"follower.{replicas}"): (None, f"0:{roles.other}"),
    }
    assert {row["blocked_reason"] for row in rows} == {None}


def test_plans_that_are_applied_remove_what_is_left_over(conf: Conf, roles: Roles) -> None:
    first, second = sorted(map(str, (roles.home, roles.other)))
    # Nothing moves now, so a plan changes one broker.
    applied, then = _applied(conf), _applied(conf)
    assert _ended(applied) == [(first, DELETE, DONE), *[(LEFT, DELETE, DONE)] * 2]
    assert _ended(then) == [(second, DELETE, DONE)]
    entities = {outcome.change.entity for outcome in (*applied, *then)}
    with live_configs.opened(conf) as configs:
        assert {key for e in entities for key in configs.read(e) if "throttled" in key} == set()
    # What is removed has no lease: it does not come back.
    assert live_configs.restored(conf)[1] == []


def _applied(conf: Conf) -> list[Outcome]:
    return list(apply_run.apply_plan(context.from_conf(conf), None, lambda _: None)[1])


def _ended(outcomes: list[Outcome]) -> list[tuple[str | None, str, str]]:
    return [(o.change.entity.entity_name, o.change.operation.name, o.step) for o in outcomes]
