"""Where Strimzi's User Operator writes quotas, a plan prints a KafkaUser and writes nothing."""

from datetime import timedelta
from typing import Any

import yaml

from quotaflow.pipelines.feedback.configs.change import Plan
from quotaflow.pipelines.feedback.planning import other_writers, strimzi
from quotaflow.pipelines.feedback.planning.guards import PlanPolicy

from ....cases import cases
from ....delta_tables import NOON
from ..fake_configs import FakeTables, desired, planned

OPERATOR = "strimzi (User:op (op), ALTER_CLIENT_QUOTAS)"
RATE = "leader.replication.throttled.rate"
PERCENTAGE = {"config_key": "request_percentage"}


def operated(*rows: Any, operator: str | None = OPERATOR) -> Plan:
    bounds = PlanPolicy(user_operator=operator)
    return planned(*rows, bounds=bounds)


def test_a_quota_of_a_user_is_a_fragment_and_no_change() -> None:
    made = operated(
        desired("CN=alice"),
        desired("CN=alice", config_value="12.1", **PERCENTAGE),
        desired("bob", config_value="0.02", **PERCENTAGE),
        desired("1", entity_type="broker", config_key=RATE, config_value="9000000"),
    )
    assert [change.entity.entity_type for change in made.changes] == ["broker"]
    assert {b.reason for b in made.blocked} == {
        f"{OPERATOR} writes quotas of users: change the KafkaUser, as the plan prints it"
    }
    documents = list(yaml.safe_load_all("\n".join(made.fragments)))
    assert [(d["kind"], d["metadata"]["name"], d["spec"]["quotas"]) for d in documents] == [
        ("KafkaUser", "alice", {"producerByteRate": 1000, "requestPercentage": 13}),
        ("KafkaUser", "bob", {"requestPercentage": 1}),
    ]


def test_what_a_kafka_user_cannot_have_is_a_comment() -> None:
    made = operated(
        desired("a", entity_client_id="c\nd"),
        desired("b", config_value=None, prior_value="9"),
        desired("c\n- d: {}"),
    )
    assert made.changes == ()
    comments = [line for line in made.fragments if line.startswith("#")]
    assert len(comments) == 2
    assert "no KafkaUser can have this" in comments[0]
    assert "remove producerByteRate" in comments[1]
    assert all("\n" not in comment for comment in comments)
    (document,) = [yaml.safe_load(text) for text in made.fragments if text.startswith("---")]
    assert document["metadata"] == {"name": "c\n- d: {}"}


def test_without_the_operator_quotas_are_changes() -> None:
    made = operated(desired(), operator=None)
    assert (len(made.changes), made.fragments) == (1, ())


@cases(
    ("others", "is_operator"),
    ("by kind", {}, True),
    ("by client id", {"kind": "other", "client_id": "my-cluster-user-operator"}, True),
    (
        "by principal",
        {"kind": "admin_client", "principal": "User:CN=c-entity-user-operator,O=x"},
        True,
    ),
    ("a person", {"kind": "admin_client", "client_id": "adminclient-1"}, False),
    ("of topics", {"entity_types": "topic"}, False),
    ("a trace", {"entity_types": None, "last_seen": None}, True),
    ("long ago", {"last_seen": NOON - timedelta(days=2)}, False),
)
def test_the_user_operator_is_recognized(others: dict[str, Any], is_operator: bool) -> None:
    row = {"kind": "strimzi", "principal": "User:op", "client_id": "op", "entity_types": "user"}
    row |= {"evidence_code": "requests", "evidence": "ALTER_CLIENT_QUOTAS", "last_seen": NOON}
    row |= {"recent_entities": 40}
    tables: Any = FakeTables([row | others])
    assert (other_writers.managers(tables, NOON, []).user_operator is not None) is is_operator


def test_fragments_of_nothing_are_nothing() -> None:
    assert list(strimzi.fragments([])) == []
