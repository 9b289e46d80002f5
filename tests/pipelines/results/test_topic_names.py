"""Ids of topics in what brokers answered, whole and capped."""

import json
from pathlib import Path
from typing import Any

from quotaflow.pipelines.results.declared import result_of
from quotaflow.schemas.events import NO_TOPIC_ID

from ... import rows
from ...rows import Row, minute
from ...rule_rows import compute


def request(second: float, api: str, body: str | None) -> Row:
    return rows.request(second, api, body=body)


def body(topics: list[tuple[str | None, str | None]] | None, **request: Any) -> str:
    answered = topics and [{"name": name, "topicId": id_, "errorCode": 0} for name, id_ in topics]
    return json.dumps({"request": request, "response": {"topics": answered}})


def captured(golden: Path, api: str) -> list[str]:
    lines = (golden / "lines" / f"{api.lower()}.jsonl").read_text(encoding="utf-8").splitlines()
    parts = [{key: json.loads(line)[key] for key in ("request", "response")} for line in lines]
    return [json.dumps(part) for part in parts]


NAMED = [
    request(1, "METADATA", body([("orders", "id1"), ("clicks", "id2")])),
    request(59, "METADATA", body([("orders", "id1")])),
    request(60, "CREATE_TOPICS", body([("new", "id3")], validateOnly=False)),
    request(61, "CREATE_TOPICS", body([("asked", "id4")], validateOnly=True)),
    request(62, "DESCRIBE_TOPIC_PARTITIONS", body([("orders", "id9")])),
    request(
        63, "METADATA", body([("unknown", NO_TOPIC_ID), (None, "id5"), ("of old versions", None)])
    ),
    request(64, "METADATA", body([])),
    request(65, "METADATA", '{"omitted_bytes":300000}'),
    request(66, "CREATE_TOPICS", body(None)),
    request(67, "METADATA", None),
    request(67, "METADATA", "{cut"),
    request(68, "DELETE_TOPICS", body([("gone", "id6")])),
]
EXPECTED = {
    (0, "id1", "orders", 2),
    (0, "id2", "clicks", 1),
    (1, "id3", "new", 1),
    (1, "id9", "orders", 1),
    (1, None, None, 4),
}


def named(*requests: Row) -> set[tuple[Any, ...]]:
    named_topics = compute(result_of("topic_names"), requests=list(requests))
    got = {(minute(row), row["topic_id"], row["topic"], row["requests"]) for row in named_topics}
    assert len(named_topics) == len(got)
    return got


def test_names_and_ids_in_answers() -> None:
    assert named(*NAMED) == EXPECTED


def test_names_in_lines_of_a_real_cluster(golden: Path) -> None:
    real = [
        request(1, api, text)
        for api in ("METADATA", "CREATE_TOPICS")
        for text in captured(golden, api)
    ]
    names = {row[1:3] for row in named(*real)}
    assert ("6VfFl0gvSJWn0M2FhjxChg", "orders") in names
    assert ("ap-5Jo8fQkugA563kxW05w", "_client_telemetry") in names
    assert (None, None) not in names
