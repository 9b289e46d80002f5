"""doctor on a real cluster: what is wrong is found, and the command that mends it works."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourceType,
)

from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines.__main__ import execute

from ..command_line import in_options
from . import quiet_clients
from .conftest import by_reference

Examined = Callable[[str, str], dict[str, dict[str, str]]]
TOPIC = "unwell-logs"
LINE = {"requestHeader": {"requestApiKeyName": "METADATA"}, "request": {"topics": []}}
RECORDS = [
    json.dumps({"ts": 0, "broker": 1, "r": LINE | {"response": {}}}),
    json.dumps(LINE | {"response": {}}),
    f"[2026] DEBUG Completed request:{json.dumps(LINE)} (kafka.request.logger)",
    "a line of something else",
    json.dumps({"ts": 4_000_000_000_000, "broker": 2, "r": LINE | {"response": {}}}),
]


@pytest.fixture(scope="module")
def topic(cluster: LocalCluster) -> str:
    """A request log of every form that only admin may read."""
    cluster.create_topics([TOPIC], 2, 1)
    producer = quiet_clients.producer(cluster, "admin")
    for number, record in enumerate(RECORDS):
        producer.produce(TOPIC, record, partition=number % 2)
    assert producer.flush(30) == 0
    pattern = ResourcePattern(ResourceType.TOPIC, TOPIC, ACLResourcePatternType.LITERAL)
    allow = ACLPermissionType.ALLOW
    with cluster.admin() as admin:
        admin.create_acls([ACL("User:admin", "*", ACLOperation.READ, allow, pattern)])
    return TOPIC


@pytest.fixture
def examined(
    cluster: LocalCluster,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Examined:
    """What doctor finds for a user whose request log is a topic, by subject."""

    def findings(user: str, topic: str) -> dict[str, dict[str, str]]:
        login = by_reference(cluster, "LIVE_TEST_LOGIN", monkeypatch, user)
        place = [f"ingest.request_log_topic={topic}", f"warehouse.path={tmp_path}"]
        execute(["doctor", "--json", *in_options(*login, *place)])
        rows = map(json.loads, capsys.readouterr().out.splitlines())
        return {row["subject"]: row for row in rows}

    return findings


@pytest.mark.shows(
    "finds broker and time of a line in the envelope, the record or a shipper's fields"
)
def test_lines_of_every_form_are_told_apart(topic: str, examined: Examined) -> None:
    findings = examined("admin", topic)
    states = {subject: row["state"] for subject, row in findings.items()}
    assert (
        "2 envelope, 1 bare, 1 stock layout, 1 unreadable (1 not_json)"
        in findings["log lines"]["observed"]
    )
    assert states["log lines"] == "warning"
    assert (states["log bodies"], states["clocks of brokers"]) == ("bad", "bad")
    assert "broker 2 is" in findings["clocks of brokers"]["observed"]
    well = ("brokers", "version", "receiver", "request logger", "clock", "rights to apply")
    assert findings["raft listeners"]["observed"].startswith("CONTROLLER: ")
    assert {states[subject] for subject in (*well, "raft listeners")} == {"ok"}
    assert "5 not read yet" in findings[f"records of {topic}"]["observed"]


def test_a_login_without_rights_is_told_what_it_lacks(topic: str, examined: Examined) -> None:
    findings = examined("alice", topic)
    assert (
        findings["ingest.request_log_topic"]["observed"] == f"this login may not see topic {topic}"
    )
    rights = findings["rights to run"]
    assert (rights["state"], rights["observed"]) == ("bad", f"lacks Read on topic {topic}")
    assert rights["remedy"].endswith(
        f"--add --allow-principal User:alice --operation Read --topic {topic}"
    )


def test_a_topic_there_is_not_is_no_missing_right(examined: Examined) -> None:
    findings = examined("admin", "never-made")
    assert findings["ingest.request_log_topic"]["observed"] == "topic never-made does not exist"
    assert findings["rights to run"]["state"] == "ok"
