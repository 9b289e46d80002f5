"""A batch of records fills every table it feeds once, however often it is replayed."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession

from quotaflow.pipelines import config
from quotaflow.pipelines.facts import ingest
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse.warehouse import OpenSession, Warehouse
from quotaflow.schemas import events
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import BROKERS

from ...cases import first_of
from ...pushes import encoded, pushing

pytestmark = pytest.mark.spark

FILLED = ("requests", "telemetry_pushes", "telemetry_subscriptions", "quarantine")
Topic = Callable[..., DataFrame]
Content = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class Interrupted(Batch):
    """A batch whose process dies when it is to append to this table."""

    at: str = ""

    def append_files(
        self, open_session: OpenSession, files: Sequence[Mapping[str, Any]], table: Table
    ) -> None:
        if table.name == self.at:
            raise InterruptedError
        # super() without arguments is not possible in a class with slots.
        Batch.append_files(self, open_session, files, table)

    def append_rows(self, open_session: OpenSession, rows: pa.Table, table: Table) -> None:
        if table.name == self.at:
            raise InterruptedError
        Batch.append_rows(self, open_session, rows, table)


class OfRows(Batch):
    """A batch whose rows Spark writes, as in a catalog."""

    @property
    def takes_files(self) -> bool:
        return False


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Warehouse:
    warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path)))
    warehouse.ensure(lambda: spark, [TABLES[name] for name in (*FILLED, "pipeline_progress")])
    return warehouse


def content(warehouse: Warehouse) -> dict[str, list[dict[str, Any]]]:
    """Rows of every table that ingest fills. Spark plans longer than this reads."""
    return {
        name: DeltaTable(warehouse.folder(name)).to_pyarrow_table().to_pylist()
        for name in (*FILLED, "pipeline_progress")
    }


def comparable(tables_: dict[str, list[dict[str, Any]]]) -> Content:
    return {name: sorted(map(repr, rows)) for name, rows in tables_.items()}


def offsets(rows: list[dict[str, Any]]) -> list[int]:
    return sorted(row["source_offset"] for row in rows)


def counted(rows: list[dict[str, Any]]) -> dict[tuple[str, str | None, str | None], int]:
    keys = [(row["outcome"], row["target"], row["reason"]) for row in rows]
    assert len(keys) == len(set(keys))
    return dict(zip(keys, (row["row_count"] for row in rows), strict=True))


def with_number(line: dict[str, Any], correlation_id: int) -> dict[str, Any]:
    """The line of another request on the same connection."""
    return line | {"requestHeader": line["requestHeader"] | {"correlationId": correlation_id}}


def lines_of(golden: Path, push: dict[str, Any]) -> tuple[list[bytes], dict[int, str]]:
    """All golden lines, then bad ones; with the reasons by offset."""
    files = sorted((golden / "lines").glob("*.jsonl"))
    good = [line for file in files for line in file.read_bytes().splitlines()]
    bad = [
        (b"hello", "not_json"),
        (b'torn ALTER_USER_SCRAM_CREDENTIALS {"saltedPassword":"hunter2', "not_json"),
        (b"", "empty_line"),
        (b'{"level":"INFO"}', "not_a_request_line"),
        (pushing(with_number(push, 1_001), "%%%"), "bad_base64"),
        (pushing(with_number(push, 1_002), b"\xff\xff"), "not_otlp"),
    ]
    reasons = {len(good) + i: reason for i, (_, reason) in enumerate(bad)}
    return good + [line for line, _ in bad], reasons


def test_a_batch_of_lines_is_exactly_once_in_every_table(
    warehouse: Warehouse,
    topic: Topic,
    golden: Path,
    push_lines: list[dict[str, Any]],
) -> None:
    lines, reasons = lines_of(golden, push_lines[0])
    records, log = topic(lines), ingest.of_request_log(config.Conf(), "cluster")
    again = partial(Batch, warehouse, "ingest", "q1", 0, replayed=True)
    for replayed, at in enumerate(("telemetry_subscriptions", "quarantine", "pipeline_progress")):
        torn = Interrupted(warehouse, "ingest", "q1", 0, replayed=bool(replayed), at=at)
        with pytest.raises(InterruptedError):
            log.write(records, torn)
    log.write(records, again())
    filled = content(warehouse)
    log.write(records, again())
    assert comparable(content(warehouse)) == comparable(filled)

    assert_lines_are_where_they_belong(filled, lines, reasons)
    log.write(topic([]), Batch(warehouse, "ingest", "q1", 1))
    log.write(topic(lines[:1], partition=1), Batch(warehouse, "ingest", "q1", 2))
    grown = content(warehouse)
    more = {name: len(grown[name]) - len(filled[name]) for name in grown}
    assert (more["requests"], more["quarantine"], more["pipeline_progress"]) == (0, 0, 2)


@pytest.mark.parametrize("kind", first_of([Batch, OfRows]))
def test_a_request_counts_once_however_often_its_line_comes(
    warehouse: Warehouse,
    topic: Topic,
    push_lines: list[dict[str, Any]],
    kind: type[Batch],
) -> None:
    """In one record or two, batch or partition, with a replay between."""
    payloads = (b"", b"\xff\xff", b"", b"\xff")
    lines = [pushing(with_number(push_lines[0], i), each) for i, each in enumerate(payloads)]
    log = ingest.of_request_log(config.Conf(), "cluster")
    first = topic([*lines[:3], lines[1]]).union(topic(lines[2:3], partition=1))
    log.write(first, kind(warehouse, "ingest", "q1", 0))
    filled = content(warehouse)
    for _ in range(2):
        log.write(first, kind(warehouse, "ingest", "q1", 0, replayed=True))
    assert comparable(content(warehouse)) == comparable(filled)
    log.write(topic(lines, partition=2), kind(warehouse, "ingest", "q1", 1))
    log.write(topic(reversed(lines), partition=3), kind(warehouse, "ingest", "q1", 2))

    grown = content(warehouse)
    ids = [row["correlation_id"] for row in grown["requests"]]
    assert sorted(ids) == [0, 1, 2, 3]
    for name in ("telemetry_pushes", "telemetry_subscriptions"):
        places = {(row["source_partition"], row["source_offset"]) for row in grown[name]}
        assert len(places) == len(grown[name])
        assert places <= {(r["source_partition"], r["source_offset"]) for r in grown["requests"]}
    progress = grown["pipeline_progress"]
    by_batch = Counter[tuple[int, str, str | None]]()
    for row in progress:
        if row["target"] == "requests":
            by_batch[row["batch_id"], row["outcome"], row["reason"]] += row["row_count"]
    assert by_batch == {
        (0, "out", None): 3,
        (0, "left_out", "duplicate"): 2,
        (1, "out", None): 1,
        (1, "left_out", "duplicate"): 3,
        (2, "left_out", "duplicate"): 4,
    }


def test_requests_that_a_client_numbers_alike_stay_apart(
    warehouse: Warehouse, topic: Topic, push_lines: list[dict[str, Any]]
) -> None:
    """A client chooses its correlation ids: it must not hide requests by them."""
    push = push_lines[0]
    lines = [json.dumps(push | {"totalTimeMs": push["totalTimeMs"] + i}).encode() for i in range(5)]
    log = ingest.of_request_log(config.Conf(), "cluster")
    log.write(topic(lines), Batch(warehouse, "ingest", "q1", 0))
    assert len(content(warehouse)["requests"]) == 5


def lines_by_host(
    push: dict[str, Any], *hosts: str, first: int = 0
) -> list[tuple[bytes, dict[str, str]]]:
    """A push's line by each of these hosts, which alone name its broker."""
    return [
        (
            encoded(
                {
                    "message": f"Completed request:{json.dumps(with_number(push, first + place))}",
                    "host": {"name": host},
                }
            ),
            {},
        )
        for place, host in enumerate(hosts)
    ]


def take_snapshot(warehouse: Warehouse, rows: Iterable[tuple[str, int, int, bool]]) -> None:
    """Rows of brokers: cluster, broker, minute, is it removed."""
    warehouse.ensure(lambda: pytest.fail("no session is needed"), [BROKERS])
    at = datetime(2026, 11, 21, tzinfo=UTC)
    given = [
        {
            "cluster_id": cluster,
            "broker_id": broker,
            "event_time": at + timedelta(minutes=minute),
            "is_removed": is_removed,
        }
        for cluster, broker, minute, is_removed in rows
    ]
    write_deltalake(
        warehouse.folder(BROKERS.name),
        pa.Table.from_pylist(given, schema=BROKERS.arrow),
        mode="append",
    )


def brokers_by_host(rows: list[dict[str, Any]], batch: int) -> list[int | None]:
    of_batch = (row for row in rows if row["source_partition"] == batch)
    return [row["broker_id"] for row in sorted(of_batch, key=lambda row: row["source_offset"])]


def test_names_give_the_brokers_of_the_last_snapshot_before_the_batch(
    warehouse: Warehouse, topic: Topic, push_lines: list[dict[str, Any]]
) -> None:
    hosts = ("kafka-1", "kafka-3", "kafka-5", "kafka-7", "worker-3", "web")
    log = ingest.of_request_log(config.Conf(), "cluster")
    records = lines_by_host(push_lines[0], *hosts)
    log.write(topic(records, partition=0), Batch(warehouse, "ingest", "q1", 0))
    take_snapshot(warehouse, [("cluster", 1, 0, False), ("cluster", 5, 0, False)])
    take_snapshot(warehouse, [("cluster", 3, 1, False), ("cluster", 5, 1, True)])
    take_snapshot(warehouse, [("other", 7, 1, False)])
    records = lines_by_host(push_lines[0], *hosts, first=len(hosts))
    log.write(topic(records, partition=1), Batch(warehouse, "ingest", "q1", 1))

    filled = content(warehouse)
    for table in ("requests", "telemetry_pushes"):
        assert brokers_by_host(filled[table], 0) == [None] * 6
        assert brokers_by_host(filled[table], 1) == [1, 3, None, None, None, None]
    doubtful = {
        row["batch_id"]: row["row_count"]
        for row in filled["pipeline_progress"]
        if row["reason"] == "unknown_broker"
    }
    assert doubtful == {0: 5, 1: 3}


def test_a_replay_that_knows_more_brokers_repeats_no_row(
    warehouse: Warehouse, topic: Topic, push_lines: list[dict[str, Any]]
) -> None:
    """Tables that the first try filled keep their rows; the others have what is known now."""
    records = topic(lines_by_host(push_lines[0], "kafka-3"))
    log = ingest.of_request_log(config.Conf(), "cluster")
    with pytest.raises(InterruptedError):
        log.write(records, Interrupted(warehouse, "ingest", "q1", 0, at="telemetry_pushes"))
    take_snapshot(warehouse, [("cluster", 3, 0, False)])
    for _ in range(2):
        log.write(records, Batch(warehouse, "ingest", "q1", 0, replayed=True))
    filled = content(warehouse)
    assert [row["broker_id"] for row in filled["requests"]] == [None]
    assert [row["broker_id"] for row in filled["telemetry_pushes"]] == [3]
    assert counted(filled["pipeline_progress"])["in", None, None] == 1


def assert_lines_are_where_they_belong(
    filled: dict[str, list[dict[str, Any]]], lines: list[bytes], reasons: dict[int, str]
) -> None:
    lines_bad = {at for at, reason in reasons.items() if reason not in {"bad_base64", "not_otlp"}}
    by_line = {at: parsed_line(line) for at, line in enumerate(lines) if at not in lines_bad}
    kept = {at: line for at, line in by_line.items() if not left_out(line)}
    api = {at: line["requestHeader"]["requestApiKeyName"] for at, line in kept.items()}
    pushes = [at for at in api if api[at] == "PUSH_TELEMETRY"]
    answers = [at for at in api if api[at] == "GET_TELEMETRY_SUBSCRIPTIONS"]
    assert offsets(filled["requests"]) == sorted(kept)
    assert offsets(filled["telemetry_pushes"]) == pushes
    assert offsets(filled["telemetry_subscriptions"]) == answers
    refused = {76: "unknown_codec", 87: "corrupt_payload"}
    for at in pushes:
        if (error := kept[at]["response"]["errorCode"]) in refused:
            reasons[at] = refused[error]
    bad = {row["source_offset"]: row["reason"] for row in filled["quarantine"]}
    assert (bad, len(filled["quarantine"])) == (reasons, len(reasons))
    assert "hunter2" not in str(filled)

    counts = counted(filled["pipeline_progress"])
    outcomes = Counter[str]()
    for (outcome, target, reason), rows in counts.items():
        if target in {None, "requests"}:
            outcomes[outcome] += rows
        if outcome == "quarantined":
            assert list(bad.values()).count(str(reason)) == rows
    assert outcomes["in"] == len(lines)
    assert outcomes["in"] == outcomes["out"] + outcomes["left_out"] + outcomes["quarantined"]
    assert counts["out", "telemetry_pushes", None] == len(pushes)
    assert counts["out", "telemetry_subscriptions", None] == len(answers)


def parsed_line(line: bytes) -> dict[str, Any]:
    whole: dict[str, Any] = json.loads(line)
    fields: dict[str, Any] = whole.get("r", whole)
    return fields


def left_out(line: dict[str, Any]) -> bool:
    """Lines that are left out of requests: copies, and the metadata quorum."""
    api = line["requestHeader"]["requestApiKeyName"]
    topics = line["request"].get("topics") or [] if api == "FETCH" else []
    is_raft = topics and all(topic.get("topicId") == events.RAFT_TOPIC_ID for topic in topics)
    is_quorum = line["listener"] == "CONTROLLER" and (is_raft or api in events.RAFT_APIS)
    return bool(line["isForwarded"] or is_quorum)


@pytest.mark.faults
def test_rows_that_spark_writes_are_those_of_files(
    spark: SparkSession,
    warehouse: Warehouse,
    topic: Topic,
    golden: Path,
    push_lines: list[dict[str, Any]],
) -> None:
    """As a catalog has them, where tasks cannot write."""
    lines, _ = lines_of(golden, push_lines[0])
    other = Warehouse(config.WarehouseSection(path=str(warehouse.conf.folder / "rows")))
    other.ensure(lambda: spark, [TABLES[name] for name in (*FILLED, "pipeline_progress")])
    log = ingest.of_request_log(config.Conf(), "cluster")
    log.write(topic(lines), Batch(warehouse, "ingest", "q1", 0))
    for _ in range(2):
        log.write(topic(lines), OfRows(other, "ingest", "q1", 0))
    assert comparable(content(other)) == comparable(content(warehouse))


def test_a_batch_of_received_pushes_is_exactly_once_in_every_table(
    warehouse: Warehouse, topic: Topic, golden: Path
) -> None:
    headers = json.loads((golden / "plugin_headers.json").read_text(encoding="utf-8"))
    payload = (golden / "otlp" / "rdk-idem-alice.data.bin").read_bytes()
    good = [(payload, given) for given in headers]
    bad_name = payload.replace(b"producer.connection.creation.rate", b"\xff" * 33)
    bad_payloads = (b"\xff\xff", payload * 9, bad_name)
    records = topic([*good, *((each, headers[0]) for each in bad_payloads)], "telemetry")
    conf = config.Conf(ingest=config.IngestSection(max_line_bytes=8 * len(payload)))
    receiver = ingest.of_receiver(conf, "cluster")
    for at in ("quarantine", "pipeline_progress"):
        with pytest.raises(InterruptedError):
            receiver.write(records, Interrupted(warehouse, "receive", "q1", 0, at=at))
    for _ in range(2):
        receiver.write(records, Batch(warehouse, "receive", "q1", 0))
    receiver.write(topic([]), Batch(warehouse, "receive", "q1", 1))

    filled = content(warehouse)
    assert offsets(filled["telemetry_pushes"]) == list(range(len(good) + 3))
    bad = {row["source_offset"]: row["reason"] for row in filled["quarantine"]}
    reasons = ["not_otlp", "payload_too_large", "metric_not_utf8"]
    assert bad == dict(enumerate(reasons, start=len(good)))
    assert offsets(filled["quarantine"]) == sorted(bad)
    assert counted(filled["pipeline_progress"]) == {
        ("in", None, None): len(good) + 3,
        ("out", "telemetry_pushes", None): len(good) + 3,
        ("quarantined", "client_metrics", "metric_not_utf8"): 1,
        ("quarantined", "client_metrics", "not_otlp"): 1,
        ("quarantined", "client_metrics", "payload_too_large"): 1,
    }
