"""Bodies of requests and responses as JSON, without secrets, and checks of their lists."""

import json
from typing import Any

from quotaflow.schemas import events

# A broker hides secrets that it knows, but prints values of other configs with names like secrets.
_HIDDEN_VALUE = (
    r'(?i)("(?:name|key)":"[^"]*(?:password|secret|jaas|token|credential)[^"]*"'
    r'(?:,"[A-Za-z]+":(?:-?\d+|true|false))*,"value":)"(?:[^"\\]|\\.)*"'
)
BODIES = f"""
SELECT line, CASE
    WHEN strlen(body) > $max_body_bytes THEN '{{"omitted_bytes":' || strlen(body) || '}}'
    -- Few bodies have configs, and the pattern takes as long as parsing the line.
    WHEN contains(body, '"value":"')
        THEN regexp_replace(body, '{_HIDDEN_VALUE}', '\\1"[hidden]"', 'g')
    ELSE body END AS body
FROM (
    SELECT line, '{{"request":' || CAST(b[1] AS VARCHAR)
        || ',"response":' || coalesce(CAST(b[2] AS VARCHAR), 'null') || '}}' AS body
    FROM (
        SELECT line, json_extract(text, ['$.r.request', '$.r.response']) AS b
        FROM parsed
        WHERE list_contains($body_apis, r.requestHeader.requestApiKeyName)
    )
)"""
"""The bodies of APIs without columns of their own; of one that is too long, only its size."""

_LISTS = {
    "FETCH": (("request", "topics", "partitions"), ("response", "responses", "partitions")),
    "PRODUCE": (
        ("request", "topicData", "partitionData"),
        ("response", "responses", "partitionResponses"),
    ),
}


def has_lists(envelope: str, api: str) -> bool:
    """Whether all lists of topics and partitions are missing, null, or lists of objects."""
    line = json.loads(envelope)["r"]
    return all(_is_shaped(line, list(path)) for path in _LISTS[api])


def _is_shaped(node: Any, path: list[str]) -> bool:
    if not isinstance(node, dict):
        return node is None
    inner = node.get(path[0])
    if len(path) == 1 or path[0] not in ("request", "response"):
        return inner is None or (
            isinstance(inner, list)
            and all(isinstance(each, dict) for each in inner)
            and (len(path) == 1 or all(_is_shaped(each, path[1:]) for each in inner))
        )
    return _is_shaped(inner, path[1:])


def apis(without: tuple[str, ...]) -> list[str]:
    """The APIs whose bodies are kept."""
    return [api for api in events.BODY_APIS if api not in without]
