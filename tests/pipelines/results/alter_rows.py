"""Requests that alter configs, as rows of `requests` with their bodies."""

import json
from typing import Any

from ...rows import Row, at

LEADERS, FOLLOWERS = (f"{side}.replication.throttled.replicas" for side in ("leader", "follower"))
LEADER_RATE, FOLLOWER_RATE = (
    f"{side}.replication.throttled.rate" for side in ("leader", "follower")
)
TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)


def request(second: float, api: str, body: Row | str | None = None, **others: Any) -> Row:
    """A request of admin that broker 1 completed."""
    text = json.dumps(body) if isinstance(body, dict) else body
    row = {"event_time": at(second), "record_time": at(second), "api": api, "body": text}
    row |= {"broker_id": 1, "principal": "User:admin", "client_id": "tool"}
    row |= {"client_address": "10.0.0.1", "source_topic": "log", "source_partition": 0}
    return row | others


def alter(
    second: float, kind: int, name: str, *configs: tuple[str, int, str | None], **others: Any
) -> Row:
    """An INCREMENTAL_ALTER_CONFIGS of one resource."""
    answer = {"errorCode": others.pop("code", 0), "errorMessage": others.pop("message", None)}
    resource = {"resourceType": kind, "resourceName": name}
    changes = [{"name": key, "configOperation": op, "value": value} for key, op, value in configs]
    body = {
        "request": {
            "resources": [resource | {"configs": changes}],
            "validateOnly": others.pop("validate", False),
        },
        "response": {"responses": [resource | answer]},
    }
    return request(second, "INCREMENTAL_ALTER_CONFIGS", body, **others)
