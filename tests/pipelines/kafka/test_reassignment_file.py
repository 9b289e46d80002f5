"""Files for kafka-reassign-partitions: read as Kafka reads them, and what is wrong said once."""

import json
from pathlib import Path
from typing import Any

import pytest

from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.kafka import reassignment_file

from ...cases import cases

BULK = {"topic": "bulk", "partition": 0, "replicas": [2, 1], "log_dirs": ["any", "any"]}


def write(folder: Path, *partitions: Any, **others: Any) -> Path:
    file = folder / "move.json"
    file.write_text(json.dumps({"version": 1, "partitions": list(partitions)} | others))
    return file


def test_partitions_come_in_their_order(tmp_path: Path) -> None:
    other = {"topic": "orders", "partition": 3, "replicas": [7]}
    partitions = reassignment_file.read(write(tmp_path, BULK, other))
    assert [(one.topic, one.partition, one.replicas) for one in partitions] == [
        ("bulk", 0, [2, 1]),
        ("orders", 3, [7]),
    ]


@cases(
    ("partitions", "others", "message"),
    ("nothing in it", [], {}, "partitions: list should have at least 1 item"),
    ("another version", [BULK], {"version": 2}, "version: input should be 1"),
    ("what Kafka does not know", [BULK], {"topics": []}, "topics: extra inputs"),
    ("no replica", [BULK | {"replicas": []}], {}, "partitions.0.replicas: list should"),
    ("twice", [BULK | {"replicas": [1, 1]}], {}, "gives bulk-0 a replica twice: [1, 1]"),
    ("a partition twice", [BULK, BULK], {}, "names bulk-0 twice"),
    ("text", [BULK | {"partition": "0"}], {}, "partitions.0.partition: input should"),
    ("a long list of errors", [{"topic": str(n)} for n in range(5)], {}, "and 7 more"),
)
def test_what_is_wrong_is_said_once(
    tmp_path: Path, partitions: list[Any], others: dict[str, Any], message: str
) -> None:
    file = write(tmp_path, *partitions, **others)
    with pytest.raises(ConfigError) as raised:
        reassignment_file.read(file)
    assert message in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\x00"])
def test_what_is_no_json_is_said(tmp_path: Path, text: str) -> None:
    file = tmp_path / "move.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match="is no reassignment: in") as raised:
        reassignment_file.read(file)
    assert "it: " not in str(raised.value)


def test_a_text_says_where_it_is_no_json(tmp_path: Path) -> None:
    file = tmp_path / "README.md"
    file.write_text("# Title")
    message = r"README\.md is no reassignment: invalid JSON: expected value at line 1 column 1$"
    with pytest.raises(ConfigError, match=message):
        reassignment_file.read(file)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no\.json cannot be read: No such file"):
        reassignment_file.read(tmp_path / "no.json")
