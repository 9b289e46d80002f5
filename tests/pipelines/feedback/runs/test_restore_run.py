"""restore against a cluster: it does what it shows, and harms no live client."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from quotaflow.pipelines.config import AlertsSection
from quotaflow.pipelines.config.alerts import AlertRule
from quotaflow.pipelines.errors import FeedbackError
from quotaflow.pipelines.feedback.configs.change import SET, FrozenPlan, Operation, Plan
from quotaflow.pipelines.feedback.configs.desired_configs import DesiredConfig
from quotaflow.pipelines.feedback.planning import preflight
from quotaflow.pipelines.feedback.planning.preflight import Preflight
from quotaflow.pipelines.feedback.planning.restore_plan import RestorePlan
from quotaflow.pipelines.feedback.runs import apply_run, context
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.udfs.rules.client_metrics import Client
from quotaflow.udfs.rules.subscription_safety import LiveClient

from ....cases import cases
from ....delta_tables import NOON
from ....schemas.views.view_tables import make_tables_and_answers
from ..fake_configs import desired, planned
from ..scene import Scene

KEY = "producer_byte_rate"
MALLORY = desired().entity


def shown_changes(restore: RestorePlan) -> list[tuple[str, str, str | None]]:
    return [(c.entity.entity_name or "", c.operation.name, c.value) for c in restore.changes]


@pytest.fixture
def scene(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(warehouse, monkeypatch)


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("dies_at", ["begun", "sent", "written", "recorded"])
def test_what_a_killed_apply_left_is_shown_as_it_is_given_back(
    scene: Scene, dies_at: str, everything: bool
) -> None:
    scene.apply(desired(), dies_at=dies_at)
    records = list(scene.journal.records)
    shown = scene.shown(everything=everything)
    assert scene.journal.records == records
    assert shown_changes(shown) == ([] if dies_at == "begun" else [("mallory", "DELETE", None)])
    assert shown_changes(scene.done(everything=everything)) == shown_changes(shown)
    assert (scene.configs.configs.get(MALLORY, {}), scene.journal.ledger.owned) == ({}, {})


def test_what_a_killed_apply_left_is_shown_once_its_lease_is_over(scene: Scene) -> None:
    scene.apply(desired(), dies_at="sent")
    before = NOON + timedelta(seconds=599)
    assert shown_changes(scene.shown(before)) == []
    assert shown_changes(scene.shown(before, everything=True)) == [("mallory", "DELETE", None)]
    assert shown_changes(scene.shown(NOON + timedelta(seconds=601))) == [
        ("mallory", "DELETE", None)
    ]


def test_what_somebody_else_set_since_an_apply_was_killed_is_not_shown(scene: Scene) -> None:
    scene.apply(desired(), dies_at="sent")
    scene.configs.configs[MALLORY] = {KEY: "7"}
    assert scene.shown(everything=True) == RestorePlan((), ())
    assert shown_changes(scene.done(everything=True)) == []
    assert scene.configs.configs[MALLORY] == {KEY: "7"}


TIME = "request_percentage"
PROXY = {"config_key": TIME, "evidence_table": "producer_id_proxies"}
"""A quota whose view is gone: nothing proposes it any more."""


@cases(
    ("before", "expected"),
    ("none", {}, ("mallory", "DELETE", None)),
    ("an operator's", {TIME: "50.0"}, ("mallory", "SET", "50.0")),
)
def test_what_no_view_asks_for_any_more_is_given_back_after_its_lease(
    scene: Scene, before: dict[str, str], expected: tuple[str, str, str | None]
) -> None:
    scene.configs.configs[MALLORY] = dict(before)
    scene.apply(desired(**PROXY, config_value="25.0", prior_value=before.get(TIME)))
    assert scene.configs.configs[MALLORY] == {TIME: "25.0"}
    make_tables_and_answers(scene.warehouse, {})
    assert shown_changes(scene.shown(NOON)) == []
    assert shown_changes(scene.shown()) == [expected]
    assert shown_changes(scene.done()) == [expected]
    assert (scene.configs.configs[MALLORY], scene.journal.ledger.owned) == (before, {})


def test_a_plan_that_an_earlier_release_froze_on_a_removed_view_is_not_applied(
    scene: Scene,
) -> None:
    make_tables_and_answers(scene.warehouse, {})
    approved_plan = FrozenPlan(planned(desired(**PROXY), desired("eve")), NOON)
    with pytest.raises(FeedbackError, match="on producer_id_proxies, which this release does not"):
        apply_run.dry_run(context.from_conf(scene.conf), approved_plan, NOON)
    with pytest.raises(FeedbackError, match="plan again"):
        apply_run.apply_plan(
            context.from_conf(scene.conf),
            replace(approved_plan, frozen_at=datetime.now(UTC)),
            lambda _: None,
        )
    assert (scene.configs.writes, scene.journal.records) == (0, [])


ID = "A" * 22
OLD = LiveClient(Client(ID, "p", "librdkafka", "2.5.0", "h"), "producer")
# Only our resource subscribes the old producer to its metrics; without it the producer crashes.
CONSUMERS_ONLY = {"corp": {"metrics": "org.apache.kafka.consumer."}}
SUBSCRIPTION = {
    "metrics": "org.apache.kafka.producer.",
    "interval.ms": "1000",
    "match": f"client_instance_id={ID}",
}


def subscription(name: str = "quotaflow-alert-x", **others: object) -> list[DesiredConfig]:
    columns = {"entity_type": "client-metrics", "config_key": "", "config_value": None} | others
    return [
        desired(name, **(columns | {"config_key": k, "config_value": v}))
        for k, v in SUBSCRIPTION.items()
    ]


def seen(
    scene: Scene, *lives: LiveClient, resources: dict[str, dict[str, str]] | None = None
) -> None:
    """The last snapshot, which is older than our write, and live clients of telemetry."""
    make_tables_and_answers(scene.warehouse, {})
    check = Preflight(CONSUMERS_ONLY if resources is None else resources, lives)
    scene.monkeypatch.setattr(preflight, "read", lambda *_: check)


def test_a_resource_without_which_a_live_client_crashes_is_held_back(scene: Scene) -> None:
    scene.apply(*subscription(), desired())
    seen(scene, OLD)
    for restore in (scene.shown(), scene.done()):
        assert shown_changes(restore) == [("mallory", "DELETE", None)]
        (why,) = {blocked.reason for blocked in restore.blocked}
        assert why.startswith("could harm 1 live client: librdkafka 2.5.0 crashes")
        assert why.endswith(
            "--entity-name quotaflow-alert-x --delete-config interval.ms,match,metrics"
        )
    assert scene.configs.configs[subscription()[0].entity] == SUBSCRIPTION
    assert len(scene.journal.ledger.owned) == 3


def test_a_client_keeps_a_resource_for_itself_alone(scene: Scene) -> None:
    """A client says itself which library it is, so that must not keep others subscribed."""
    honest = "B" * 22
    both = f"client_instance_id={ID}|{honest}"
    rows = subscription()
    scene.apply(*(replace(r, config_value=both) if r.config_key == "match" else r for r in rows))
    seen(scene, OLD, LiveClient(Client(honest, "p", "librdkafka", "2.11.0", "h"), "producer"))
    restore = scene.done()
    entity = rows[0].entity
    assert scene.configs.configs[entity]["match"] == f"client_instance_id={ID}"
    assert {blocked.desired.entity_name for blocked in restore.blocked} == {entity.entity_name}
    # A second restore has nothing to narrow, and goes on to block the rest.
    assert scene.done().changes == ()
    seen(scene)
    assert scene.done().blocked == ()
    assert scene.configs.configs[entity] == {}
    assert scene.journal.ledger.owned == {}


@cases(
    ("lives", "resources"),
    ("a client that left", (), None),
    (
        "a fixed client",
        (LiveClient(Client(ID, "p", "librdkafka", "2.10.1", "h"), "producer"),),
        None,
    ),
    ("no other subscription", (OLD,), {}),
    ("another resource is enough", (OLD,), {"corp": {"metrics": "org.apache.kafka.producer."}}),
)
def test_a_resource_that_harms_nobody_goes(
    scene: Scene, lives: tuple[LiveClient, ...], resources: dict[str, dict[str, str]] | None
) -> None:
    scene.apply(*subscription())
    seen(scene, *lives, resources=resources)
    assert scene.done().blocked == ()
    assert scene.configs.configs[subscription()[0].entity] == {}


def test_of_two_resources_the_last_that_keeps_a_client_alive_stays(scene: Scene) -> None:
    scene.apply(*subscription("a"), *subscription("b"))
    seen(scene, OLD)
    restore = scene.done()
    assert {name for name, *_ in shown_changes(restore)} == {"a"}
    assert {blocked.desired.entity_name for blocked in restore.blocked} == {"b"}


def test_harm_is_checked_in_the_order_of_the_writes(scene: Scene) -> None:
    """A restore writes the oldest lease first, under any name."""
    scene.apply(*subscription("b"))
    scene.apply(*subscription("a"))
    seen(scene, OLD)
    restore = scene.done(everything=False)
    assert {name for name, *_ in shown_changes(restore)} == {"b"}
    assert {blocked.desired.entity_name for blocked in restore.blocked} == {"a"}


def test_where_nobody_is_known_to_live_a_resource_goes(scene: Scene) -> None:
    """Missing tables show no client, and must not keep a lease from ending."""
    scene.apply(*subscription())
    assert (scene.done().blocked, scene.configs.configs[subscription()[0].entity]) == ((), {})


def test_the_command_says_why_it_holds_back(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.apply(*subscription())
    seen(scene, OLD)
    for words in (("--all",), ("--all", "--yes")):
        assert scene.command(*words) == 1
        out, err = capsys.readouterr()
        assert out == "nothing can be restored\n"
        assert err.count("blocked: client-metrics quotaflow-alert-x (") == 1
        assert "3 configs must be restored, and are blocked" in err


def test_the_command_shows_what_a_killed_apply_left(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.apply(desired(), dies_at="sent")
    assert scene.command("--all") == 3
    assert "--delete-config producer_byte_rate" in capsys.readouterr().out


@cases(("value", "operand"), ("the value", "0", "0"), ("the operand alone", "1000", "0"))
def test_a_frozen_plan_whose_rows_somebody_altered_is_not_applied_past_its_bounds(
    scene: Scene, value: str, operand: str
) -> None:
    (change,) = planned(desired()).changes
    altered = replace(change, value=value, operation=Operation(SET, operand))
    make_tables_and_answers(scene.warehouse, {})
    with pytest.raises(FeedbackError, match=r"plan \w+: user mallory .* = 0 must be over 0"):
        apply_run.dry_run(
            context.from_conf(scene.conf), FrozenPlan(Plan((altered,), ()), NOON), NOON
        )


def test_a_frozen_plan_that_would_harm_who_is_there_now_is_not_applied(scene: Scene) -> None:
    """While an approval holds, clients may start that were not there when it was given."""
    approved_plan = FrozenPlan(planned(*subscription()), NOON)
    consumer = LiveClient(Client(ID, "c", "librdkafka", "2.5.0", "h"), "consumer")
    seen(scene, resources={})
    metric = "org.apache.kafka.producer.*"
    rule = AlertRule(name="a", metric=metric, above=1, subscribe_interval_s=1)
    alerts = AlertsSection(rules=[rule])
    conf = scene.conf.model_copy(update={"alerts": alerts})
    steps = [o.step for o in apply_run.dry_run(context.from_conf(conf), approved_plan, NOON)[1]]
    assert steps == ["accepted"] * 3
    seen(scene, consumer, resources={})
    with pytest.raises(FeedbackError, match=r"plan \w+: client-metrics quotaflow-alert-x .* could"):
        apply_run.dry_run(context.from_conf(scene.conf), approved_plan, NOON)
    with pytest.raises(FeedbackError, match="could harm 1 live client"):
        apply_run.apply_plan(
            context.from_conf(scene.conf),
            replace(approved_plan, frozen_at=datetime.now(UTC)),
            lambda _: None,
        )
    assert (scene.configs.writes, scene.journal.records) == (0, [])
