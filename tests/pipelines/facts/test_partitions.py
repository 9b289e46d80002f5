"""Partitions of PRODUCE and FETCH lines of every shape, against a plain reading of both lists."""

import json
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from quotaflow.pipelines.config import IngestSection
from quotaflow.pipelines.facts import lines, partitions

pytestmark = pytest.mark.spark

Fields = dict[str, Any]
_TOPICS = [{"topicId": "a"}, {"topicId": "b"}, {"name": "c"}, {"topic": "d"}, {}]
_FETCH_ASKED = {
    "fetchOffset": "fetch_offset",
    "partitionMaxBytes": "partition_max_bytes",
    "logStartOffset": "follower_log_start_offset",
}
_FETCH_TOLD = {
    "highWatermark": "high_watermark",
    "lastStableOffset": "last_stable_offset",
    "preferredReadReplica": "preferred_read_replica",
}
_TOLD = {"logStartOffset": "log_start_offset", "errorCode": "error_code"}
_NONE = dict.fromkeys([*_FETCH_ASKED.values(), *_FETCH_TOLD.values(), *_TOLD.values()])


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


def answered_alike(random: Random, asked: list[Fields], of: tuple[str, str, str, str]) -> Any:
    """A response to just what was asked, in the same order."""
    parts, index, told_parts, told_index = of
    return [
        {key: value for key, value in topic.items() if key != parts}
        | {
            told_parts: [
                {
                    told_index: part[index],
                    "errorCode": 0,
                    "recordsSizeInBytes": random.randint(0, 9),
                }
                for part in topic[parts]
            ]
        }
        for topic in asked
    ]


def made(random: Random) -> Fields:
    """A line of PRODUCE or FETCH."""
    api = random.choice(["PRODUCE", "FETCH"])
    of = {
        "PRODUCE": ("partitionData", "index", "partitionResponses", "index"),
        "FETCH": ("partitions", "partition", "partitions", "partitionIndex"),
    }[api]
    sizes = ["recordsSizeInBytes"]
    asked = topics(random, *of[:2], [*_FETCH_ASKED, *(sizes if api == "PRODUCE" else [])])
    if random.random() < 0.5:
        told = answered_alike(random, asked, of)
    else:
        told = topics(random, *of[2:], [*_FETCH_TOLD, *_TOLD, *sizes])
    request: Fields = {"topicData" if api == "PRODUCE" else "topics": asked}
    response = random.choice([{"responses": told}] * 9 + [None])
    header = {"requestApiKeyName": api, "requestApiVersion": 13}
    return {"r": {"requestHeader": header, "request": request, "response": response}}


def flat(of: list[Fields], parts: str, index: str) -> list[tuple[tuple[Any, int], Fields, Fields]]:
    """Key, topic and partition, in order."""
    names = [topic.get("topic", topic.get("name")) for topic in of]
    return [
        ((topic.get("topicId", name), part[index]), {"topic": name, **topic}, part)
        for topic, name in zip(of, names, strict=True)
        for part in topic[parts]
    ]


def row(api: str, asked: Any, told: Any) -> Fields:
    """What the table says of one partition."""
    is_fetch = api == "FETCH"
    (key, topic, part) = asked or told
    found: Fields = {"topic": topic["topic"], "topic_id": topic.get("topicId"), "partition": key[1]}
    found |= {"in_request": asked is not None, "in_response": told is not None, **_NONE}
    if asked and is_fetch:
        found |= {name: part.get(field) for field, name in _FETCH_ASKED.items()}
        if part.get("logStartOffset") == -1:
            found["follower_log_start_offset"] = None
    if told:
        fields = _TOLD | (_FETCH_TOLD if is_fetch else {})
        found |= {name: told[2].get(field) for field, name in fields.items()}
    sized = told if is_fetch else asked
    return found | {"bytes": sized[2].get("recordsSizeInBytes") if sized else None}


def expected(line: Fields) -> list[Fields]:
    """In request order, then what only the response names."""
    api, request = line["r"]["requestHeader"]["requestApiKeyName"], line["r"]["request"]
    responses = (line["r"]["response"] or {}).get("responses") or []
    if api == "PRODUCE":
        asked = flat(request["topicData"], "partitionData", "index")
        told = flat(responses, "partitionResponses", "index")
    else:
        asked = flat(request["topics"], "partitions", "partition")
        told = flat(responses, "partitions", "partitionIndex")
    answers = {one[0]: one for one in reversed(told)}
    keys = {one[0] for one in asked}
    return [row(api, one, answers.get(one[0])) for one in asked] + [
        row(api, None, one) for one in told if one[0] not in keys
    ]


def test_partitions_are_those_of_the_request_then_of_the_response(spark: SparkSession) -> None:
    random = Random(227)
    whole = [made(random) for _ in range(1_000)]
    records = spark.createDataFrame(
        [(number, json.dumps(line).encode()) for number, line in enumerate(whole)],
        "offset bigint, value binary",
    )
    parsed = partitions.with_partitions(lines.with_line(records, IngestSection()))
    found = parsed.orderBy("offset").select("partitions").collect()
    for line, told in zip(whole, found, strict=True):
        assert [part.asDict() for part in told["partitions"]] == expected(line), line
