"""Partitions of PRODUCE and FETCH lines of every shape, against a plain reading of both lists."""

import json
from random import Random
from typing import Any

from ...record_batches import parsed

Fields = dict[str, Any]
_TOPICS = [{"topicId": "a"}, {"topicId": "b"}, {"name": "c"}, {"topic": "d"}, {}]
_FETCH_REQUEST = {
    "fetchOffset": "fetch_offset",
    "partitionMaxBytes": "partition_max_bytes",
    "logStartOffset": "follower_log_start_offset",
}
_FETCH_RESPONSE = {
    "highWatermark": "high_watermark",
    "lastStableOffset": "last_stable_offset",
    "preferredReadReplica": "preferred_read_replica",
}
_RESPONSE = {"logStartOffset": "log_start_offset", "errorCode": "error_code"}
_OFFSETS_OR_NONE = (
    "high_watermark",
    "last_stable_offset",
    "log_start_offset",
    "follower_log_start_offset",
)
"""A broker writes -1 for those that it does not have."""
_NONE = dict.fromkeys([*_FETCH_REQUEST.values(), *_FETCH_RESPONSE.values(), *_RESPONSE.values()])


def topics(random: Random, parts: str, index: str, names: list[str]) -> list[Fields]:
    """Up to three topics of up to three partitions with some of these fields, some of them -1."""
    return [
        topic
        | {
            parts: [
                {index: at}
                | {name: random.randint(-1, 2) for name in names if random.random() < 0.8}
                for at in random.sample(range(4), random.randint(0, 3))
            ]
        }
        for topic in random.sample(_TOPICS, random.choice([0, 1, 1, 1, 2, 3]))
    ]


def answered_alike(
    random: Random, requested: list[Fields], names: tuple[str, str, str, str]
) -> Any:
    """A response to exactly the requested partitions, in the same order."""
    parts, index, response_parts, response_index = names
    return [
        {key: value for key, value in topic.items() if key != parts}
        | {
            response_parts: [
                {
                    response_index: part[index],
                    "errorCode": 0,
                    "recordsSizeInBytes": random.randint(0, 9),
                }
                for part in topic[parts]
            ]
        }
        for topic in requested
    ]


def made(random: Random) -> Fields:
    """A line of PRODUCE or FETCH."""
    api = random.choice(["PRODUCE", "FETCH"])
    names = {
        "PRODUCE": ("partitionData", "index", "partitionResponses", "index"),
        "FETCH": ("partitions", "partition", "partitions", "partitionIndex"),
    }[api]
    sizes = ["recordsSizeInBytes"]
    requested = topics(random, *names[:2], [*_FETCH_REQUEST, *(sizes if api == "PRODUCE" else [])])
    if random.random() < 0.5:
        answered = answered_alike(random, requested, names)
    else:
        answered = topics(random, *names[2:], [*_FETCH_RESPONSE, *_RESPONSE, *sizes])
    request: Fields = {"topicData" if api == "PRODUCE" else "topics": requested}
    response = random.choice([{"responses": answered}] * 9 + [None])
    header = {"requestApiKeyName": api, "requestApiVersion": 13}
    return {"r": {"requestHeader": header, "request": request, "response": response}}


def flat(
    listed: list[Fields], parts: str, index: str
) -> list[tuple[tuple[Any, int], Fields, Fields]]:
    """Key, topic and partition, in order."""
    names = [topic.get("topic", topic.get("name")) for topic in listed]
    return [
        ((topic.get("topicId", name), part[index]), {"topic": name, **topic}, part)
        for topic, name in zip(listed, names, strict=True)
        for part in topic[parts]
    ]


def merged_row(api: str, requested: Any, answered: Any) -> Fields:
    """One partition as the table has it."""
    is_fetch = api == "FETCH"
    (key, topic, part) = requested or answered
    merged: Fields = {
        "topic": topic["topic"],
        "topic_id": topic.get("topicId"),
        "partition": key[1],
    }
    merged |= {"in_request": requested is not None, "in_response": answered is not None, **_NONE}
    if requested and is_fetch:
        merged |= {name: part.get(field) for field, name in _FETCH_REQUEST.items()}
    if answered:
        fields = _RESPONSE | (_FETCH_RESPONSE if is_fetch else {})
        merged |= {name: answered[2].get(field) for field, name in fields.items()}
    for name in _OFFSETS_OR_NONE:
        merged[name] = None if merged[name] == -1 else merged[name]
    sized = answered if is_fetch else requested
    return merged | {"bytes": sized[2].get("recordsSizeInBytes") if sized else None}


def expected(line: Fields) -> list[Fields]:
    """In request order, then the partitions that only the response names."""
    api, request = line["r"]["requestHeader"]["requestApiKeyName"], line["r"]["request"]
    responses = (line["r"]["response"] or {}).get("responses") or []
    if api == "PRODUCE":
        requested = flat(request["topicData"], "partitionData", "index")
        answered = flat(responses, "partitionResponses", "index")
    else:
        requested = flat(request["topics"], "partitions", "partition")
        answered = flat(responses, "partitions", "partitionIndex")
    answers = {one[0]: one for one in reversed(answered)}
    keys = {one[0] for one in requested}
    return [merged_row(api, one, answers.get(one[0])) for one in requested] + [
        merged_row(api, None, one) for one in answered if one[0] not in keys
    ]


def test_partitions_are_those_of_the_request_then_of_the_response() -> None:
    random = Random(227)
    whole = [made(random) for _ in range(1_000)]
    for line, row in zip(whole, parsed(json.dumps(each).encode() for each in whole), strict=True):
        assert row["partitions"] == expected(line), line
