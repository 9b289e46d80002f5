"""The rights of each job: topics by name, and nothing for what is switched off."""

import pytest

from quotaflow.schemas import acls

from ..cases import cases

TOPICS = {"request_log_topic": "logs", "receiver_topic": "pushes", "otlp_topic": None}


def rights(role: str) -> set[tuple[str, str, str]]:
    return {(a.resource_type, a.name, a.operation) for a in acls.needed(role, TOPICS)}


@cases(
    ("role", "expected"),
    ("a shipper", "shipper", {("topic", "logs", "Write")}),
    ("a receiver", "receiver", {("topic", "pushes", "Write")}),
    (
        "ingest",
        "run",
        {("topic", "logs", "Read"), ("topic", "pushes", "Read"), ("group", "spark-kafka", "Read")},
    ),
    (
        "capture",
        "capture",
        {("cluster", "kafka-cluster", "AlterConfigs"), ("topic", "logs", "Read")},
    ),
)
def test_a_role_has_the_topics_of_conf_and_nothing_of_a_way_in_that_is_off(
    role: str, expected: set[tuple[str, str, str]]
) -> None:
    assert rights(role) == expected


@pytest.mark.parametrize("role", acls.ROLES)
def test_only_roles_that_alter_may_alter_and_each_right_stands_once(role: str) -> None:
    needed = acls.needed(role, TOPICS)
    keys = [(a.resource_type, a.name, a.operation) for a in needed]
    assert len(set(keys)) == len(keys)
    must_alter = any(a.operation == acls.ALTER_CONFIGS and not a.is_optional for a in needed)
    assert must_alter == (role in {"apply", "capture", "troubleshoot"})
