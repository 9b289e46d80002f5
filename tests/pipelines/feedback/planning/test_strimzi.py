"""Where Strimzi's User Operator writes quotas, a plan prints a KafkaUser and writes nothing."""

import json
import shlex
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
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
    assert any("no KafkaUser can have this" in comment for comment in comments)
    assert any("no KafkaUser has this name" in comment for comment in comments)
    assert all("\n" not in comment for comment in comments)
    (text,) = [text for text in made.fragments if text.startswith("---")]
    assert "remove producerByteRate" in text
    assert yaml.safe_load(text)["spec"] == {"quotas": {"producerByteRate": None}}


FIELDS = {
    "producer_byte_rate": "producerByteRate",
    "consumer_byte_rate": "consumerByteRate",
    "request_percentage": "requestPercentage",
    "controller_mutation_rate": "controllerMutationRate",
}
VALUES = ("0", "0.02", "12.1", "1000", "2147483647", "2147483648", "3000000000", "1e12")


@pytest.mark.parametrize("api", ["v1", "v1beta2"])
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("key", FIELDS)
def test_the_operator_can_read_a_patch(golden: Path, api: str, key: str, value: str) -> None:
    """By the schema of the resource, and by the bounds of Java's Integer that its schema lacks."""
    schema = yaml.safe_load((golden / "strimzi" / f"kafkauser-{api}.yaml").read_text())
    (of_alice,) = planned(desired("alice")).changes
    change = replace(of_alice, value=value, desired=replace(of_alice.desired, config_key=key))
    (text,) = strimzi.fragments([change], api)
    is_whole = key != "controller_mutation_rate"
    if is_whole and float(value) > 2**31 - 1:
        assert text.startswith(f"# a KafkaUser has {FIELDS[key]} in an int, 2147483647 at most")
        return
    document = yaml.safe_load(text)
    assert document["apiVersion"] == f"{schema['group']}/{schema['version']}"
    assert document["kind"] == schema["kind"]
    assert set(document) - {"apiVersion", "kind", "metadata"} == {"spec"}
    assert set(document["spec"]) == {"quotas"}
    declared = schema["openAPIV3Schema"]["properties"]["spec"]["properties"]["quotas"]["properties"]
    ((field, rate),) = document["spec"]["quotas"].items()
    kinds = {"integer": int, "number": (int, float)}
    assert isinstance(rate, kinds[declared[field]["type"]])
    assert rate >= max(declared[field]["minimum"], float(value))


def test_a_patch_is_a_command_that_keeps_the_rest() -> None:
    rows = [desired("alice"), desired("alice", config_value="12.1", **PERCENTAGE)]
    (text,) = operated(*rows).fragments
    words = shlex.split(text.splitlines()[1].removeprefix("# "))
    assert words[:6] == [
        *("kubectl", "patch", "kafkausers.v1.kafka.strimzi.io", "alice", "--type", "merge")
    ]
    assert words[6] == "--patch"
    assert json.loads(words[7]) == {
        "spec": {"quotas": {"producerByteRate": 1000, "requestPercentage": 13}}
    }


@cases(
    ("name", "is_possible"),
    ("plain", "alice", True),
    ("with dots", "a.b-c.1", True),
    ("of a certificate", "CN=alice", True),
    ("capitals", "Alice", False),
    ("an underscore", "a_b", False),
    ("a whole subject", "CN=alice,O=x", False),
    ("a dash at its end", "alice-", False),
    ("an empty part", "a..b", False),
    ("too long", "a" * 254, False),
    ("the longest", "a" * 253, True),
    ("a command", "a; rm -rf /", False),
    ("lines", "a\n---\nkind: Secret", False),
)
def test_a_resource_has_a_name_of_kubernetes(name: str, is_possible: bool) -> None:
    (text,) = operated(desired(name)).fragments
    assert text.startswith("---") is is_possible
    assert is_possible or (text.startswith("# no KafkaUser has this name") and "\n" not in text)


@cases(("api", "version"), ("today", {}, "v1"), ("older", {"strimzi_api": "v1beta2"}, "v1beta2"))
def test_the_version_is_that_of_conf(api: dict[str, str], version: str) -> None:
    bounds = PlanPolicy(user_operator=OPERATOR, **api)  # type: ignore[arg-type]
    (text,) = planned(desired("alice"), bounds=bounds).fragments
    assert yaml.safe_load(text)["apiVersion"] == f"kafka.strimzi.io/{version}"


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
