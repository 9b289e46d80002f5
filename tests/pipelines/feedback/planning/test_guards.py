"""Guards: a plan stays small, slow and fresh."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines.feedback.configs.change import Change, Plan
from quotaflow.pipelines.feedback.configs.desired_configs import DesiredConfig
from quotaflow.pipelines.feedback.ledger.ledger import Ledger
from quotaflow.pipelines.feedback.planning.guards import (
    REQUESTS,
    RESULTS,
    SNAPSHOT,
    TELEMETRY,
    PlanPolicy,
)
from quotaflow.pipelines.feedback.planning.preflight import Preflight
from quotaflow.udfs.rules.client_metrics import Client
from quotaflow.udfs.rules.pseudonym import Pseudonyms
from quotaflow.udfs.rules.subscription_safety import LiveClient

from .... import case_tables
from ....cases import cases
from ....delta_tables import NOON
from ..fake_configs import Clock, DictConfigs, ListJournal, applying, desired, planned, whys

RATE = "leader.replication.throttled.rate"
NEARLY = PlanPolicy(lease_s=600)
LONG_COOLDOWN = PlanPolicy(lease_s=600, cooldown=timedelta(seconds=600))


def values(changes: tuple[Change, ...]) -> list[str | None]:
    return [change.value for change in changes]


@cases(
    ("prior", "desired_value", "value", "note"),
    ("within a step", "1000", "1900", "1900", ""),
    ("up", "1000", "9000", "2000", "a step on the way to 9000"),
    ("down", "1000", "100", "500", "a step on the way to 100"),
    ("the first", None, "100", "100", ""),
    ("from nothing", "0", "100", "100", ""),
    ("from unlimited", "9223372036854775807", "100", "100", ""),
    ("and up", "9e18", "9000000000000000", "9000000000000000", ""),
)
def test_a_quota_goes_in_steps(
    prior: str | None, desired_value: str, value: str, note: str
) -> None:
    row = desired(config_value=desired_value, prior_value=prior)
    (change,) = planned(row, bounds=PlanPolicy(max_step_factor=2.0)).changes
    assert (change.value, change.note) == (value, note)


def test_a_rate_of_replication_goes_as_its_own_rule_says() -> None:
    columns = {"entity_type": "broker", "config_key": RATE, "config_value": "9000000"}
    row = desired("1", **columns, prior_value="1000000", priority=5, observed=None)
    assert values(planned(row, bounds=PlanPolicy(max_step_factor=2.0)).changes) == ["9000000"]


def test_what_is_near_stays() -> None:
    near = desired(config_value="1099", prior_value="1000")
    far = desired("b", config_value="1100", prior_value="1000")
    made = planned(near, far, bounds=PlanPolicy())
    assert values(made.changes) == ["1100"]
    assert whys(made) == ["1099 is within 10% of 1000, the current value"]


def test_of_two_that_want_one_config_the_more_urgent_has_it() -> None:
    first = desired(priority=15, config_value="100")
    other = desired(priority=30, config_value="900", evidence_table="quota_advice")
    made = planned(other, first, bounds=PlanPolicy())
    assert values(made.changes) == ["100"]
    assert whys(made) == [
        "producer_id_rates (principal=User:mallory) wants 100 of it, and is more urgent"
    ]


def test_who_may_not_be_planned_takes_nobody_s_place() -> None:
    first = desired(priority=5, blocked_reason="not for us")
    assert values(planned(first, desired(priority=9), bounds=PlanPolicy()).changes) == ["1000"]


NEW = {REQUESTS: 0, RESULTS: 0, TELEMETRY: 0, SNAPSHOT: 0}
NEW |= {"producer_id_rates": 0, "metric_alert_events": 0}
BY_RATES, BY_ALERTS, BY_SNAPSHOT = "producer_id_offenders", "metric_alerts", "current_configs"


def aged(evidence: str, ages_s: dict[str, int | None]) -> Plan:
    at = {
        name: None if age is None else NOON - timedelta(seconds=age)
        for name, age in (NEW | ages_s).items()
    }
    bounds = PlanPolicy(inputs_at=at, max_input_age=timedelta(seconds=60))
    return planned(desired(evidence_table=evidence), bounds=bounds)


@pytest.mark.parametrize(
    ("evidence", "ages_s", "why"),
    [
        (
            BY_RATES,
            {REQUESTS: 61},
            "the age of the request log is 61 s (plan.max_input_age_s: 60 s)",
        ),
        (BY_RATES, {"producer_id_rates": 61}, "the age of the producer_id_rates is 61 s"),
        ("of_another", {RESULTS: 61}, "the age of the results is 61 s"),
        (BY_RATES, {SNAPSHOT: 99}, "the age of the last snapshot is 99 s"),
        (BY_RATES, {REQUESTS: None}, "the age of the request log is not known"),
        (BY_ALERTS, {TELEMETRY: 61}, "the age of the telemetry is 61 s"),
        (BY_ALERTS, {"metric_alert_events": None}, "the age of the metric_alert"),
        (BY_SNAPSHOT, {SNAPSHOT: 99}, "the age of the last snapshot is 99 s"),
        (BY_RATES, {REQUESTS: -301}, "the time of the request log is 0:05:01 ahead"),
        (BY_SNAPSHOT, {SNAPSHOT: -366 * 86_400}, "the time of the last snapshot is 366 days"),
    ],
)
def test_old_inputs_freeze_what_stands_on_them(
    evidence: str, ages_s: dict[str, int | None], why: str
) -> None:
    made = aged(evidence, ages_s)
    assert made.changes == ()
    assert why in made.blocked[0].reason


@pytest.mark.parametrize(
    ("evidence", "ages_s"),
    [
        (BY_RATES, {TELEMETRY: None}),
        (BY_ALERTS, {REQUESTS: None, RESULTS: None}),
        (BY_SNAPSHOT, {REQUESTS: 99, RESULTS: 99, TELEMETRY: 99}),
    ],
)
def test_what_a_row_does_not_stand_on_freezes_nothing(
    evidence: str, ages_s: dict[str, int | None]
) -> None:
    assert len(aged(evidence, ages_s).changes) == 1


def test_another_program_s_entities_are_left_alone() -> None:
    others = {"user": "strimzi (User:strimzi, last seen 12:00)"}
    rate = desired("1", entity_type="broker", config_key=RATE, config_value="2000000")
    made = planned(desired(), rate, bounds=PlanPolicy(other_managers=others))
    assert values(made.changes) == ["2000000"]
    assert "strimzi (User:strimzi, last seen 12:00) manages configs of users too" in whys(made)[0]


def test_a_default_is_not_planned() -> None:
    made = planned(desired(entity_name=None), bounds=PlanPolicy())
    assert "default of all users" in whys(made)[0]


def test_all_replicas_stay_all_replicas() -> None:
    key = "follower.replication.throttled.replicas"
    columns = {"entity_type": "topic", "config_key": key, "prior_value": "*"}
    rows = desired("t", **columns, config_value="0:1"), desired("u", **columns, config_value=None)
    assert (
        whys(planned(*rows, bounds=PlanPolicy()))
        == ["the list is * (all replicas), so no entry can be added or removed"] * 2
    )


def applied(*rows: DesiredConfig, lease_s: int = 600) -> Ledger:
    journal = ListJournal()
    run = applying(DictConfigs(), journal, clock=Clock())
    run.run("p1", planned(*rows, bounds=PlanPolicy(lease_s=lease_s)).changes)
    return journal.ledger


@cases(
    ("after_s", "priority", "is_blocked"),
    ("too soon", 100, 10, True),
    ("late enough", 200, 10, False),
    ("urgent", 100, 5, False),
)
def test_what_was_just_changed_holds(after_s: int, priority: int, is_blocked: bool) -> None:
    row = desired(config_value="1500", prior_value="1000", priority=priority)
    made = planned(
        row,
        bounds=PlanPolicy(cooldown=timedelta(seconds=180), lease_s=600),
        ledger=applied(desired()),
        after_s=after_s,
    )
    assert (len(made.blocked), len(made.changes)) == ((1, 0) if is_blocked else (0, 1))


def test_what_we_wrote_since_the_snapshot_stands() -> None:
    made = planned(desired(), bounds=PlanPolicy(lease_s=600), ledger=applied(desired()))
    assert made == Plan((), ())


def test_a_later_snapshot_tells_better_than_what_we_wrote() -> None:
    seen = {SNAPSHOT: NOON + timedelta(seconds=5)}
    made = planned(
        desired(), bounds=PlanPolicy(inputs_at=seen), ledger=applied(desired()), after_s=9
    )
    assert [(c.desired.prior_value, c.value) for c in made.changes] == [(None, "1000")]


def test_a_lease_is_renewed_in_its_second_half() -> None:
    ledger, bounds = applied(desired()), PlanPolicy(lease_s=600)
    assert planned(desired(), bounds=bounds, ledger=ledger, after_s=299).changes == ()
    (renewed,) = planned(desired(), bounds=bounds, ledger=ledger, after_s=301).changes
    assert (renewed.operation.name, renewed.value, renewed.command) == ("RENEW", "1000", "")


@cases(
    ("desired_value", "bounds", "after_s", "renewed", "why"),
    *case_tables.rows(
        __file__,
        "what_waits_does_not_let_the_lease_of_what_stands_end",
        NEARLY=NEARLY,
        LONG_COOLDOWN=LONG_COOLDOWN,
    ),
)
def test_what_waits_does_not_let_the_lease_of_what_stands_end(
    desired_value: str | None, bounds: PlanPolicy, after_s: float, renewed: str | None, why: str
) -> None:
    row = desired(config_value=desired_value, prior_value="1000")
    made = planned(row, bounds=bounds, ledger=applied(desired()), after_s=after_s)
    changes = [(c.operation.name, c.value, c.lease_s) for c in made.changes]
    assert changes == ([] if renewed is None else [("RENEW", renewed, 600)])
    assert whys(made) == [why]


NONE_FITS = "more is written into what its lists hold than is left of it: move fewer at once"
BROKER_RATE = {"entity_type": "broker", "config_key": RATE, "evidence_table": "rate_advice"}
BY_CHECK = PlanPolicy(failed_checks={"rate_advice": "its check failed"})
OLD = PlanPolicy(inputs_at={REQUESTS: None})


def blocked_row(**others: object) -> DesiredConfig:
    """A rate of ours while no rate is right: the advice is to keep it."""
    columns = {"config_value": None, "prior_value": "20000000", "renew_only": True, "lease_s": 600}
    return desired("1", **(BROKER_RATE | columns | {"blocked_reason": NONE_FITS} | others))


@cases(
    ("row", "bounds", "after_s", "renewed", "why"),
    *case_tables.rows(
        __file__,
        "what_is_withheld_for_want_of_a_better_value_lets_no_lease_end",
        blocked_row,
        PlanPolicy,
        NONE_FITS=NONE_FITS,
        BY_CHECK=BY_CHECK,
        OLD=OLD,
    ),
)
def test_what_is_withheld_for_want_of_a_better_value_lets_no_lease_end(
    row: DesiredConfig, bounds: PlanPolicy, after_s: float, renewed: str | None, why: str
) -> None:
    """A broker without room for more must not be left without a throttle in mid-move."""
    owned = applied(desired("1", **BROKER_RATE, config_value="20000000"))
    made = planned(row, bounds=bounds, ledger=owned, after_s=after_s)
    changes = [(c.operation.name, c.value, c.lease_s) for c in made.changes]
    assert changes == ([] if renewed is None else [("RENEW", renewed, 600)])
    assert [reason[: len(why)] for reason in whys(made)] == [why]


def test_what_somebody_else_set_is_not_renewed_where_no_better_value_is_known() -> None:
    bounds = PlanPolicy(inputs_at={SNAPSHOT: NOON + timedelta(seconds=100)})
    owned = applied(desired("1", **BROKER_RATE, config_value="20000000"))
    made = planned(blocked_row(prior_value="3000000"), bounds=bounds, ledger=owned, after_s=301)
    assert (made.changes, whys(made)) == ((), [NONE_FITS])


def test_a_rate_that_is_renewed_is_not_taken_away_in_the_same_plan() -> None:
    owned = applied(desired("1", **BROKER_RATE, config_value="20000000"))
    removed = desired("1", **(BROKER_RATE | {"priority": 40}), config_value=None, prior_value="7")
    made = planned(blocked_row(), removed, bounds=PlanPolicy(), ledger=owned, after_s=301)
    assert [c.operation.name for c in made.changes] == ["RENEW"]


def test_what_somebody_else_set_near_ours_is_not_renewed() -> None:
    bounds = replace(NEARLY, inputs_at={SNAPSHOT: NOON + timedelta(seconds=100)})
    row = desired(config_value="1050", prior_value="1060")
    made = planned(row, bounds=bounds, ledger=applied(desired()), after_s=301)
    assert (made.changes, whys(made)) == ((), ["1050 is within 10% of 1060, the current value"])


def test_the_same_inputs_give_the_same_id_and_others_another() -> None:
    one, same = (planned(desired(), bounds=PlanPolicy()).plan_id for _ in range(2))
    other = planned(desired(config_value="1001"), bounds=PlanPolicy()).plan_id
    assert one == same != other


@cases(
    "row",
    ("an entity", desired(Pseudonyms(b"k" * 32, "k1").pseudonym("client_id", "orders"))),
    (
        "a part of one, of another key",
        desired(entity_client_id=Pseudonyms(b"o" * 32, "old").pseudonym("client_id", "orders")),
    ),
)
def test_nothing_is_planned_for_a_pseudonym(row: DesiredConfig) -> None:
    made = planned(row, bounds=PlanPolicy())
    assert made.changes == ()
    (why,) = whys(made)
    assert why.endswith("is a pseudonym, and Kafka knows nobody of that name: privacy.columns")


@cases(
    ("match", "why"),
    (
        "by what is hidden",
        "client_id=orders-.*",
        "cannot be judged: other matches by client_id, which privacy.columns hides in tables",
    ),
    ("by what is not", "client_software_name=.*", None),
)
def test_whom_a_resource_reaches_is_not_guessed(match: str, why: str | None) -> None:
    hidden = Client("i", Pseudonyms(b"k" * 32, "k1").pseudonym("client_id", "orders-7"), "x", "1")
    resources = {"other": {"metrics": "*", "match": match}}
    assert Preflight(resources, (LiveClient(hidden, "consumer"),)).harm_of(resources) == why


def instance(n: int, version: str) -> LiveClient:
    name = f"{n}".rjust(22, "A")
    return LiveClient(Client(name, "c", "librdkafka", version, "h"), "consumer")


def alert_on_producers(lives: Sequence[LiveClient]) -> list[DesiredConfig]:
    """A subscription of these clients to metrics that none of them has."""
    ids = "|".join(str(live.client.client_instance_id) for live in lives)
    configs = {
        "metrics": "org.apache.kafka.producer.",
        "interval.ms": "10000",
        "match": f"client_instance_id={ids}",
    }
    return [
        desired("quotaflow-alert-x", entity_type="client-metrics", config_key=k, config_value=v)
        for k, v in configs.items()
    ]


def policy_for(lives: Sequence[LiveClient]) -> PlanPolicy:
    check = Preflight({}, tuple(lives))
    return PlanPolicy(preflight=lambda _: check)


def test_a_client_that_claims_a_version_that_crashes_excludes_itself_alone() -> None:
    lives = [instance(1, "2.11.0"), instance(2, "2.5.0"), instance(3, "2.11.0")]
    made = planned(*alert_on_producers(lives), bounds=policy_for(lives))
    values = {change.desired.config_key: change.value for change in made.changes}
    assert values["match"] == f"client_instance_id={'1'.rjust(22, 'A')}|{'3'.rjust(22, 'A')}"
    assert len(values) == 3
    (why,) = whys(made)
    assert why.startswith("1 of its 3 clients is left out: librdkafka 2.5.0 crashes")


def test_a_subscription_of_which_nobody_is_left_is_not_written() -> None:
    """An empty match would reach every client."""
    lives = [instance(1, "2.5.0"), instance(2, "2.5.1")]
    made = planned(*alert_on_producers(lives), bounds=policy_for(lives))
    assert made.changes == ()
    assert all(why.startswith("could harm 2 live clients") for why in whys(made))


@given(st.lists(st.sampled_from(["2.5.0", "2.5.2", "2.10.0", "2.11.0", "junk"]), max_size=6))
def test_no_claim_of_others_keeps_a_client_out(versions: list[str]) -> None:
    honest = instance(99, "2.11.0")
    lives = [honest, *(instance(n, version) for n, version in enumerate(versions))]
    made = planned(*alert_on_producers(lives), bounds=policy_for(lives))
    match = next(c.value for c in made.changes if c.desired.config_key == "match")
    assert str(honest.client.client_instance_id) in str(match)
    harmless = {"2.11.0"}
    kept = str(match).removeprefix("client_instance_id=").split("|")
    by_name = {live.client.client_instance_id: live for live in lives}
    assert {by_name[name].client.client_software_version for name in kept} <= harmless


ADVICE_OF = {"evidence_table": "quota_advice", "priority": 30}


def test_what_fits_goes_on_and_is_never_changed() -> None:
    owned = applied(desired(**ADVICE_OF), desired("bob"))
    fits = {"prior_value": "1000", "renew_only": True} | ADVICE_OF
    rows = [desired(**fits), desired("bob", **fits), desired("carol", **fits)]
    made = planned(*rows, bounds=PlanPolicy(lease_s=600), ledger=owned, after_s=500)
    assert [(c.entity.entity_name, c.operation.name) for c in made.changes] == [
        ("mallory", "RENEW")
    ]
    older = desired(**(fits | {"config_value": "900", "prior_value": "900"}))
    assert planned(older, bounds=PlanPolicy(lease_s=600), ledger=owned, after_s=500) == Plan((), ())


def test_advice_does_not_change_what_was_set_for_another_reason() -> None:
    owned = applied(desired())
    row = desired(config_value="1500", prior_value="1000", **ADVICE_OF)
    made = planned(row, bounds=PlanPolicy(), ledger=owned, after_s=500)
    assert whys(made) == ["producer_id_rates set the current value, and that is restored first"]
