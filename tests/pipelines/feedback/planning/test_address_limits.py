"""Limits of addresses and of the life of producer ids: what a plan may write, and what never."""

import pytest

from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.pipelines.feedback.planning import guards, plan_inputs
from quotaflow.pipelines.feedback.planning.guards import PlanPolicy

from ..fake_configs import Clock, DictConfigs, ListJournal, applying, desired, planned

RATE, EXPIRATION = "connection_creation_rate", "producer.id.expiration.ms"
LIMIT = {"entity_type": "ip", "config_key": RATE, "config_value": "1"}


@pytest.mark.parametrize(
    ("name", "can_be"),
    [
        ("10.0.0.7", True),
        ("2001:db8::1", True),
        ("2001:db8:0:0:0:0:0:1", False),
        ("localhost", False),
        ("app-1.internal", False),
        ("10.0.0.7 ", False),
        ("10.0.7", False),
    ],
)
def test_only_the_usual_text_of_an_address_is_written(name: str, can_be: bool) -> None:
    row = desired(name, **LIMIT)
    assert row.entity.can_be == can_be
    problem = guards.write_problem(row, PlanPolicy())
    assert problem is None if can_be else "is no ip: its name is an address" in str(problem)


@pytest.mark.parametrize("name", [None, "", "<default>", "hmac.k1.0123456789abcdef01234567"])
def test_no_default_and_no_pseudonym_is_limited(name: str | None) -> None:
    assert guards.write_problem(desired(name, **LIMIT), PlanPolicy()) is not None


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        (RATE, "0", "must be over 0"),
        (RATE, "1.5", "must be whole"),
        (RATE, "2147483648", "at most"),
        (RATE, "2147483647", None),
        (EXPIRATION, "21599999", "must be over"),
        (EXPIRATION, "21600000", None),
    ],
)
def test_a_limit_has_bounds(key: str, value: str, problem: str | None) -> None:
    of_address = {"entity_type": "ip", "config_key": RATE}
    of_broker = {"entity_type": "broker", "config_key": EXPIRATION}
    entity = of_address if key == RATE else of_broker
    name = "10.0.0.7" if key == RATE else "1"
    why = guards.write_problem(desired(name, **entity, config_value=value), PlanPolicy())
    assert why is None if problem is None else problem in str(why)


def test_a_user_has_no_rate_of_connections_and_an_address_no_bytes() -> None:
    for entity_type, key in (("user", RATE), ("ip", "producer_byte_rate"), ("broker", RATE)):
        entity = ConfigEntity("c1", entity_type, "10.0.0.7" if entity_type == "ip" else "1")
        assert guards.config_problem(entity, key) is not None


def test_an_address_is_limited_and_given_back_in_one_command_each() -> None:
    configs, journal, clock = DictConfigs(), ListJournal(), Clock()
    made = planned(desired("10.0.0.7", **LIMIT))
    (change,) = made.changes
    assert change.command.endswith(
        f"--alter --entity-type ips --entity-name 10.0.0.7 --add-config {RATE}=1"
    )
    assert "every client behind this address" in change.risk
    applying(configs, journal, clock).run(made.plan_id, made.changes)
    assert configs.configs == {change.entity: {RATE: "1"}}


def test_the_price_of_a_shorter_life_is_in_the_row() -> None:
    row = desired("1", entity_type="broker", config_key=EXPIRATION, config_value="21600000")
    (change,) = planned(row).changes
    assert "retries late may be stored twice" in change.risk


def test_an_address_of_the_request_log_gets_its_usual_text() -> None:
    assert plan_inputs.named("ip", "2001:db8:0:0:0:0:0:1") == "2001:db8::1"
    assert plan_inputs.named("ip", "hmac.k1.x") == "hmac.k1.x"
    assert plan_inputs.named("user", "2001:db8:0:0:0:0:0:1") == "2001:db8:0:0:0:0:0:1"
