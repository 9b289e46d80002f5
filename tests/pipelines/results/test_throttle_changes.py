"""Changes of throttles in requests' bodies: done, refused, implied, too large, and as captured."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from quotaflow.pipelines.results import throttle_changes
from quotaflow.pipelines.results.result import Known
from quotaflow.schemas import tables

from .throttle_rows import (
    APPEND,
    BROKER,
    DELETE,
    FOLLOWERS,
    LEADER_RATE,
    LEADERS,
    SET,
    SUBTRACT,
    TOPIC,
    Row,
    alter,
    frame,
    request,
)

LOG_DIRS = "replica.alter.log.dirs.io.max.bytes.per.second"


def replaced(second: float, kind: int, name: str, **configs: str) -> Row:
    """An ALTER_CONFIGS: what it does not name is deleted."""
    of = {"resourceType": kind, "resourceName": name}
    told = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    body = {
        "request": {"resources": [of | {"configs": told}], "validateOnly": False},
        "response": {"responses": [of | {"errorCode": 0, "errorMessage": None}]},
    }
    return request(second, "ALTER_CONFIGS", body)


MADE = {
    "request": {
        "topics": [
            {"name": "made", "configs": [{"name": LEADERS, "value": "*"}]},
            {"name": "plain", "configs": [{"name": "retention.ms", "value": "1"}]},
        ],
        "validateOnly": False,
    },
    "response": {"topics": [{"name": "made", "errorCode": 0}, {"name": "plain", "errorCode": 0}]},
}
GONE = {
    "request": {"topics": [{"name": "gone"}, {"name": "kept"}]},
    "response": {"responses": [{"name": "gone", "errorCode": 0}, {"name": "kept", "errorCode": 3}]},
}
ASKED = [
    alter(1, TOPIC, "orders", (LEADERS, SET, "0:1"), (FOLLOWERS, APPEND, "0:2")),
    alter(2, TOPIC, "orders", (LEADERS, SUBTRACT, "0:1"), ("retention.ms", SET, "1")),
    alter(3, BROKER, "", (LEADER_RATE, SET, "5"), (LOG_DIRS, DELETE, None)),
    alter(4, BROKER, "2", (LEADER_RATE, SET, "abc"), code=42),
    alter(5, TOPIC, "orders", (LEADERS, SET, "1:1"), validate=True),
    alter(6, 16, "sub", ("metrics", SET, "*")),
    replaced(7, TOPIC, "orders", retention_ms="1", leader_replication_throttled_replicas="*"),
    request(8, "CREATE_TOPICS", MADE),
    request(9, "DELETE_TOPICS", GONE),
    request(10, "INCREMENTAL_ALTER_CONFIGS", '{"omitted_bytes":300000}'),
    request(11, "METADATA", '{"request":{}}'),
]
EXPECTED = {
    ("topic", "orders", LEADERS, "SET", "0:1", 0),
    ("topic", "orders", FOLLOWERS, "APPEND", "0:2", 0),
    ("topic", "orders", LEADERS, "SUBTRACT", "0:1", 0),
    ("broker", "", LEADER_RATE, "SET", "5", 0),
    ("broker", "", LOG_DIRS, "DELETE", None, 0),
    ("broker", "2", LEADER_RATE, "SET", "abc", 42),
    ("topic", "orders", LEADERS, "SET", "*", 0),
    ("topic", "orders", FOLLOWERS, "DELETE", None, 0),
    ("topic", "made", LEADERS, "SET", "*", 0),
    ("topic", "gone", LEADERS, "DELETE", None, 0),
    ("topic", "gone", FOLLOWERS, "DELETE", None, 0),
    (None, None, None, None, None, None),
}
NAMES = ("entity_type", "entity_name", "config_key", "operation", "config_value", "error_code")


def captured(golden: Path) -> list[Row]:
    lines = (golden / "lines" / "incremental_alter_configs.jsonl").read_text().splitlines()
    read = [json.loads(line) for line in lines]
    return [
        request(100 + n, "INCREMENTAL_ALTER_CONFIGS", {k: of[k] for k in ("request", "response")})
        for n, of in enumerate(of for of in read if not of["isForwarded"])
    ]


@pytest.mark.spark
def test_what_requests_change(spark: SparkSession, golden: Path) -> None:
    real = captured(golden)
    facts = frame(spark, "requests", [row | {"cluster_id": "c"} for row in [*ASKED, *real]])
    result = throttle_changes.result()
    found = result.compute(Known(result.relevant(facts)))
    assert found.columns == tables.THROTTLE_CHANGES.column_names
    rows = [row.asDict() for row in found.collect()]
    key = [tuple(row[name] for name in result.table.key) for row in rows]
    assert len(set(key)) == len(key)
    made = [row for row in rows if row["source_offset"] < len(ASKED)]
    assert {tuple(row[name] for name in NAMES) for row in made} == EXPECTED
    assert len(made) == len(EXPECTED)
    assert {row["principal"] for row in made} == {"User:admin"}
    told = {tuple(row[name] for name in NAMES) for row in rows} - EXPECTED
    assert ("topic", "bulk", LEADERS, "SET", "0:1,1:1", 0) in told
    assert ("topic", "bulk", LEADERS, "DELETE", None, 0) in told
    assert ("broker", "1", LEADER_RATE, "SET", "1500000", 0) in told
    (refused,) = [row for row in rows if row["error_code"] == 42 and row["entity_name"] == "1"]
    assert refused["error_message"].startswith("Invalid value abc for configuration leader.")
