"""Alterations in requests' bodies: done, refused, implied, secret, too large, and as captured."""

import json
from pathlib import Path
from typing import Any

import pytest

from quotaflow.pipelines.results.declared import result_of
from quotaflow.schemas import configs

from ...oracle.rules.throttled_replicas import OPERATIONS
from ...rows import HOSTILE, Row
from ...rule_rows import compute
from .replication.throttle_rows import FOLLOWERS, LEADER_RATE, LEADERS, request

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)
LOG_DIRS = "replica.alter.log.dirs.io.max.bytes.per.second"


def alter(
    second: float, kind: int, name: str, *configs: tuple[str, int, str | None], **others: Any
) -> Row:
    """An INCREMENTAL_ALTER_CONFIGS of one resource."""
    answer = {"errorCode": others.pop("code", 0), "errorMessage": others.pop("message", None)}
    resource = {"resourceType": kind, "resourceName": name}
    changes = [{"name": key, "configOperation": op, "value": value} for key, op, value in configs]
    requested = {"resources": [resource | {"configs": changes}]}
    body = {
        "request": requested | {"validateOnly": others.pop("validate", False)},
        "response": {"responses": [resource | answer]},
    }
    return request(second, "INCREMENTAL_ALTER_CONFIGS", body, **others)


def replaced(second: float, kind: int, name: str, **configs: str) -> Row:
    """An ALTER_CONFIGS: what it does not name is deleted."""
    resource = {"resourceType": kind, "resourceName": name}
    changes = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    body = {
        "request": {"resources": [resource | {"configs": changes}], "validateOnly": False},
        "response": {"responses": [resource | {"errorCode": 0, "errorMessage": None}]},
    }
    return request(second, "ALTER_CONFIGS", body)


def limits(second: float, *entries: tuple[Row, Row], **others: Any) -> Row:
    """An ALTER_CLIENT_QUOTAS: parts of entities, and what is set or, with None, removed."""
    requested, answers = list[Row](), list[Row]()
    for parts, quotas in entries:
        entity = [{"entityType": part, "entityName": name} for part, name in parts.items()]
        ops = [{"key": k, "value": v or 0.0, "remove": v is None} for k, v in quotas.items()]
        requested.append({"entity": entity, "ops": ops})
        # A broker names the parts in an order of its own, and the entities too.
        answers.append({"entity": entity[::-1], "errorCode": others.get("code", 0)})
    body = {
        "request": {"entries": requested, "validateOnly": others.get("validate", False)},
        "response": {"entries": answers[::-1]},
    }
    return request(second, "ALTER_CLIENT_QUOTAS", body)


MADE = {
    "request": {
        "topics": [
            {"name": "made", "configs": [{"name": LEADERS, "value": "*"}]},
            {"name": "plain", "configs": [{"name": "retention.ms", "value": "1"}]},
            {"name": "bare", "configs": []},
        ],
        "validateOnly": False,
    },
    "response": {"topics": [{"name": "made", "errorCode": 0}, {"name": "plain", "errorCode": 36}]},
}
DELETED = {
    "request": {"topics": [{"name": "gone"}, {"name": None}]},
    "response": {"responses": [{"name": "gone", "errorCode": 0}, {"name": "kept", "errorCode": 3}]},
}
KEYSTORE = "listener.name.internal.ssl.keystore.password"
REQUESTED = [
    alter(1, TOPIC, "orders", (LEADERS, SET, "0:1"), (FOLLOWERS, APPEND, "0:2")),
    alter(2, TOPIC, "orders", (LEADERS, SUBTRACT, "0:1"), ("retention.ms", SET, "1")),
    alter(3, BROKER, "", (LEADER_RATE, SET, "5"), (LOG_DIRS, DELETE, None)),
    alter(4, BROKER, "2", (LEADER_RATE, SET, "abc"), code=42, message="Invalid value abc" * 100),
    alter(5, TOPIC, "orders", (LEADERS, SET, "1:1"), validate=True),
    alter(6, 16, "sub", ("metrics", SET, "*"), ("interval.ms", SET, "[hidden]")),
    replaced(7, TOPIC, "orders", retention_ms="1", leader_replication_throttled_replicas="*"),
    request(8, "CREATE_TOPICS", MADE),
    request(9, "DELETE_TOPICS", DELETED),
    request(10, "INCREMENTAL_ALTER_CONFIGS", '{"omitted_bytes":300000}'),
    request(11, "METADATA", '{"request":{}}'),
    alter(
        12,
        BROKER,
        "1",
        (KEYSTORE, SET, "hunter2"),
        (LEADER_RATE, SET, "7"),
        code=42,
        message="no hunter2",
    ),
    alter(13, 8, "1", ("kafka.request.logger", SET, "DEBUG")),
    alter(14, 32, HOSTILE, ("consumer.session.timeout.ms", SET, "x" * 40_000)),
    alter(15, 77, "?", (HOSTILE, 9, HOSTILE)),
    limits(
        16,
        ({"user": "alice"}, {"producer_byte_rate": 1e6, "request_percentage": 12.5}),
        ({"user": None}, {"producer_byte_rate": 1e8}),
        ({"user": "alice", "client-id": None}, {"producer_byte_rate": None}),
        ({"client-id": "x", "user": "alice"}, {"producer_byte_rate": 2e15}),
        ({"client-id": None}, {"consumer_byte_rate": 1.0}),
        ({"ip": "10.0.0.1"}, {"connection_creation_rate": 3.0}),
        ({HOSTILE: HOSTILE}, {HOSTILE: 1.0}),
        ({}, {"producer_byte_rate": 1.0}),
    ),
    limits(17, ({"user": "alice"}, {"producer_ids_rate": 5.0}), code=42),
    limits(18, ({"user": "alice"}, {"producer_byte_rate": 5.0}), validate=True),
    request(19, "ALTER_CLIENT_QUOTAS", None),
    request(20, "ALTER_CLIENT_QUOTAS", "{cut"),
]
ALL, LOST = None, (None,) * 7
EXPECTED = [
    ("topic", "orders", None, LEADERS, "SET", "0:1", 0),
    ("topic", "orders", None, FOLLOWERS, "APPEND", "0:2", 0),
    ("topic", "orders", None, LEADERS, "SUBTRACT", "0:1", 0),
    ("topic", "orders", None, "retention.ms", "SET", "1", 0),
    ("broker", "", None, LEADER_RATE, "SET", "5", 0),
    ("broker", "", None, LOG_DIRS, "DELETE", None, 0),
    ("broker", "2", None, LEADER_RATE, "SET", "abc", 42),
    ("client-metrics", "sub", None, "metrics", "SET", "*", 0),
    ("client-metrics", "sub", None, "interval.ms", "SET", None, 0),
    ("topic", "orders", None, ALL, "DELETE", None, 0),
    ("topic", "orders", None, "retention.ms", "SET", "1", 0),
    ("topic", "orders", None, LEADERS, "SET", "*", 0),
    ("topic", "made", None, LEADERS, "SET", "*", 0),
    ("topic", "plain", None, "retention.ms", "SET", "1", 36),
    ("topic", "gone", None, ALL, "DELETE", None, 0),
    ("topic", "kept", None, ALL, "DELETE", None, 3),
    LOST,
    ("broker", "1", None, KEYSTORE, "SET", None, 42),
    ("broker", "1", None, LEADER_RATE, "SET", "7", 42),
    ("broker-logger", "1", None, "kafka.request.logger", "SET", "DEBUG", 0),
    ("group", HOSTILE, None, "consumer.session.timeout.ms", "SET", "x" * 32_767, 0),
    ("77", "?", None, HOSTILE, None, None, 0),
    ("user", "alice", None, "producer_byte_rate", "SET", "1000000", 0),
    ("user", "alice", None, "request_percentage", "SET", "12.5", 0),
    ("user", "", None, "producer_byte_rate", "SET", "100000000", 0),
    ("user", "alice", "", "producer_byte_rate", "DELETE", None, 0),
    ("user", "alice", "x", "producer_byte_rate", "SET", "2000000000000000", 0),
    ("client-id", "", None, "consumer_byte_rate", "SET", "1", 0),
    ("ip", "10.0.0.1", None, "connection_creation_rate", "SET", "3", 0),
    (HOSTILE, "", None, HOSTILE, "SET", "1", 0),
    ("", "", None, "producer_byte_rate", "SET", "1", 0),
    ("user", "alice", None, "producer_ids_rate", "SET", "5", 42),
    LOST,
    LOST,
]
"""In the order of the requests, and of what each asks."""
NAMES = ("entity_type", "entity_name", "entity_client_id", "config_key", "operation")
NAMES += ("config_value", "error_code")


def captured(golden: Path, api: str) -> list[Row]:
    text = (golden / "lines" / f"{api.lower()}.jsonl").read_text()
    read = [json.loads(line) for line in text.splitlines()]
    return [
        request(100 + n, api, {k: line[k] for k in ("request", "response")})
        for n, line in enumerate(line for line in read if not line["isForwarded"])
    ]


def altered(requests: list[Row]) -> list[Row]:
    """Alterations by requests, which are in the log in this order."""
    result = result_of("config_alterations")
    lines = [
        line | {"cluster_id": "c", "source_offset": offset} for offset, line in enumerate(requests)
    ]
    rows = compute(result, requests=lines)
    keys = {tuple(row[name] for name in result.table.key) for row in rows}
    assert len(keys) == len(rows)
    return sorted(rows, key=lambda row: (row["source_offset"], row["position"] or 0))


def picked(rows: list[Row]) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in NAMES) for row in rows]


def test_what_requests_alter() -> None:
    rows = altered(REQUESTED)
    assert picked(rows) == EXPECTED
    assert "hunter2" not in repr(rows)
    assert {row["principal"] for row in rows} == {"User:admin"}
    (refused,) = [row for row in rows if row["error_message"] == ("Invalid value abc" * 100)[:300]]
    assert (refused["entity_name"], refused["config_value"]) == ("2", "abc")


def test_positions_are_the_order_in_a_request() -> None:
    rows = altered([replaced(1, TOPIC, "orders", retention_ms="1", segment_ms="2"), REQUESTED[2]])
    assert [row["position"] for row in rows] == [0, 1, 2, 0, 1]


def test_what_lines_of_a_real_cluster_alter(golden: Path) -> None:
    apis = ("INCREMENTAL_ALTER_CONFIGS", "ALTER_CLIENT_QUOTAS")
    real = set(picked(altered([row for api in apis for row in captured(golden, api)])))
    assert ("topic", "bulk", None, LEADERS, "SET", "0:1,1:1", 0) in real
    assert ("topic", "bulk", None, LEADERS, "DELETE", None, 0) in real
    assert ("broker", "1", None, LEADER_RATE, "SET", "1500000", 0) in real
    assert ("user", "alice", None, "consumer_byte_rate", "SET", "2000000", 0) in real
    assert ("user", "alice", None, "producer_ids_rate", "SET", "5", 42) in real


@pytest.mark.parametrize(("number", "operation"), [*enumerate(OPERATIONS)])
def test_operations_have_the_numbers_of_kafka(number: int, operation: str) -> None:
    (row,) = altered([alter(1, TOPIC, "orders", ("retention.ms", number, "1"))])
    assert row["operation"] == operation


@pytest.mark.parametrize(
    ("number", "entity_type"),
    [
        (2, configs.TOPIC),
        (4, configs.BROKER),
        (8, configs.BROKER_LOGGER),
        (16, configs.CLIENT_METRICS),
        (32, "group"),
    ],
)
def test_resources_have_the_types_of_config_resource(number: int, entity_type: str) -> None:
    (row,) = altered([alter(1, number, "1", ("retention.ms", SET, "1"))])
    assert row["entity_type"] == entity_type


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (0.0, "0"),
        (12.5, "12.5"),
        (12_345_678.25, "12345678.25"),
        (2e15, "2000000000000000"),
        (1e22, "1e+22"),
        (1e-7, "1e-07"),
    ],
)
def test_quotas_have_no_needless_digits(value: float, text: str) -> None:
    (row,) = altered([limits(1, ({"user": "alice"}, {"producer_byte_rate": value}))])
    assert row["config_value"] == text
    assert float(text) == value


def test_a_resource_without_configs_costs_no_other() -> None:
    """Kafka's own clients send none of these."""
    line = json.loads(REQUESTED[0]["body"])
    line["request"]["resources"] += [
        {"resourceType": 2, "resourceName": "x", "configs": None},
        None,
    ]
    rows = altered([request(1, "INCREMENTAL_ALTER_CONFIGS", line)])
    assert picked(rows) == EXPECTED[:2]
