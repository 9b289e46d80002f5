"""Rights by role, from what brokers tell of a login."""

import pytest

from quotaflow.pipelines.doctor import rights
from quotaflow.pipelines.doctor.rights import Allowed, Granting
from quotaflow.pipelines.feedback.kafka_configs import Connection
from quotaflow.schemas import acls

NAMES = {"request_log_topic": "logs", "receiver_topic": None, "otlp_topic": None}
HOW = Granting("User:it's me", Connection("b:9093", True))
READ, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS = 3, 8, 10, 11
ALL = frozenset({READ, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS})
TOOL = "kafka-acls.sh --bootstrap-server b:9093 --command-config client.properties --add"


@pytest.mark.parametrize(
    ("role", "allowed", "expected"),
    [
        ("run", Allowed(ALL, {"logs": ALL}, True), ("ok", "all there")),
        ("run", Allowed(None, {"logs": ALL}, None), ("ok", "all there, 1 of them not told")),
        ("run", Allowed(ALL, {}, True), ("bad", "lacks Read on topic logs")),
        (
            "run",
            Allowed(ALL, {"logs": frozenset({DESCRIBE})}, False),
            ("bad", "lacks Read on topic logs, Read on group spark-kafka"),
        ),
        (
            "run",
            Allowed(ALL, {}, True, frozenset({"logs"})),
            ("ok", "all there, 1 of them not told"),
        ),
        (
            "snapshot",
            Allowed(frozenset({DESCRIBE}), {"a": ALL, "b": frozenset({DESCRIBE})}),
            (
                "warning",
                "lacks DescribeConfigs on cluster kafka-cluster, DescribeConfigs on topic *",
            ),
        ),
        ("apply", Allowed(ALL, {"a": ALL}), ("ok", "all there")),
    ],
    ids=[
        "all",
        "groups not told",
        "a topic that is hidden",
        "a topic that may be seen, and no group",
        "a topic there is not",
        "configs of one topic hidden",
        "a role of another login",
    ],
)
def test_what_a_role_lacks(role: str, allowed: Allowed, expected: tuple[str, str]) -> None:
    found = rights.of_role(role, acls.needed(role, NAMES), allowed, HOW)
    assert (found.state, found.seen) == expected


def test_the_remedy_is_a_command_per_resource_with_its_words_quoted() -> None:
    found = rights.of_role("run", acls.needed("run", NAMES), Allowed(ALL, {}, False), HOW)
    who = "--allow-principal 'User:it'\"'\"'s me'"
    prefixed = "--resource-pattern-type prefixed"
    assert found.remedy.split(" && ") == [
        f"{TOOL} {who} --operation Read --topic logs",
        f"{TOOL} {who} --operation Read --group spark-kafka {prefixed}",
    ]


def test_what_another_login_may_do_need_not_be_mended() -> None:
    nothing = Allowed(frozenset(), {"logs": frozenset()})
    found = rights.of_role("apply", acls.needed("apply", NAMES), nothing, HOW)
    assert found.state == "ok"
    assert found.remedy.startswith("only if this login is to do that: kafka-acls.sh")
