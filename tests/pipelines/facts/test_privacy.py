"""Planted names of clients and machines are in no file of any table, and tables still join."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from quotaflow.pipelines import config
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.facts import ingest
from quotaflow.pipelines.facts.client_metrics import PointIngest
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.table import sql_columns
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.facts import task
from quotaflow.udfs.rules.pseudonym import ADDRESS, CLIENT_ID

from ...planted import files_with
from ...pushes import encoded, pushing
from ...udfs.otlp.otlp_made import attribute, gauge, payload, point

pytestmark = pytest.mark.spark

NAME, MACHINE = "ann-laptop-7f3e9", "203.0.113.77"
KEY = "never-in-any-table-0123456789abcdef"
FILLED = (
    *("requests", "telemetry_pushes", "telemetry_subscriptions", "quarantine"),
    *("pipeline_progress", "client_metrics"),
)
MEMBER = f"{NAME}-0a1b2c3d-4e5f-6789-abcd-ef0123456789"
PAYLOAD = payload(
    gauge(
        point(as_double=1.0, attributes=[attribute("note", string_value=NAME)]),
        name="org.apache.kafka.consumer.x",
    ),
    resource=[
        attribute("group_member_id", string_value=MEMBER),
        attribute("client_source_address", string_value=MACHINE),
    ],
)


@pytest.fixture
def conf(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Conf:
    monkeypatch.setenv("PRIVACY_TEST_KEY", KEY)
    folder = f"warehouse.path={tmp_path / 'warehouse'}"
    return config.load(overrides=[folder, "privacy.key=env:PRIVACY_TEST_KEY"])


def lines(golden: Path, push: dict[str, Any]) -> list[bytes]:
    """Every line of a real cluster as if one client had sent all, and lines nobody can read."""
    files = sorted((golden / "lines").glob("*.jsonl"))
    parsed = [json.loads(line) for file in files for line in file.read_bytes().splitlines()]
    mine = [_of_ann(line.get("r", line)) for line in parsed]
    joined = {"memberId": MEMBER, "members": [{"memberId": MEMBER}]}
    header = mine[0]["requestHeader"] | {"requestApiKeyName": "JOIN_GROUP"}
    join = mine[0] | {"requestHeader": header, "request": joined, "response": joined}
    header = _of_ann(push)["requestHeader"]
    # A request that comes again counts once: each push is a request of its own.
    pushes = [_of_ann(push) | {"requestHeader": header | {"correlationId": -n}} for n in (1, 2, 3)]
    return [
        *map(encoded, mine),
        encoded(join),
        pushing(pushes[0], PAYLOAD),
        pushing(pushes[1], f"%%%{NAME}"),
        pushing(pushes[2], f"\xff{NAME}".encode("latin-1")),
        f"torn {NAME} {MACHINE}".encode(),
    ]


def _of_ann(line: dict[str, Any]) -> dict[str, Any]:
    header = line["requestHeader"] | {"clientId": NAME}
    return line | {"requestHeader": header, "connection": f"127.0.0.1:9092-{MACHINE}:5-0-1"}


def assert_hidden(conf: Conf) -> None:
    assert files_with(conf.warehouse.folder, [NAME, MACHINE, KEY]) == []


def clients(spark: SparkSession, warehouse: Warehouse, table: str) -> set[tuple[str, str]]:
    rows = warehouse.read(spark, table).select(CLIENT_ID, ADDRESS).distinct().collect()
    return {(row[0], row[1]) for row in rows}


def ann(conf: Conf) -> tuple[str, str]:
    hidden = conf.privacy.pseudonyms()
    assert hidden is not None
    return hidden.pseudonym(CLIENT_ID, NAME), hidden.pseudonym(ADDRESS, MACHINE)


def test_no_name_of_a_client_or_machine_is_in_a_file_of_the_request_log_s_tables(
    spark: SparkSession,
    conf: Conf,
    topic: Callable[..., DataFrame],
    golden: Path,
    push_lines: list[dict[str, Any]],
) -> None:
    warehouse = Warehouse(conf.warehouse)
    warehouse.ensure(lambda: spark, [TABLES[name] for name in FILLED])
    records = topic(lines(golden, push_lines[0]))
    ingest.of_request_log(conf, "c1").write(records, Batch(warehouse, "ingest", "q1", 0))
    assert_hidden(conf)
    assert clients(spark, warehouse, "requests") == {ann(conf)}
    heads = warehouse.read(spark, "quarantine").select("head", "detail").distinct().collect()
    assert [tuple(row) for row in heads] == [(None, None)]


def test_the_key_is_in_no_plan(
    conf: Conf, topic: Callable[..., DataFrame], capsys: pytest.CaptureFixture[str]
) -> None:
    source = ingest.of_request_log(conf, "c1").source
    topic([]).mapInArrow(task.to_rows(source), sql_columns(task.PACKED)).explain("extended")
    printed = capsys.readouterr().out
    assert "MapInArrow" in printed
    assert KEY not in printed


@pytest.mark.faults
def test_the_same_client_has_one_name_in_every_table_and_way_in(
    spark: SparkSession,
    conf: Conf,
    topic: Callable[..., DataFrame],
    golden: Path,
    push_lines: list[dict[str, Any]],
) -> None:
    warehouse = Warehouse(conf.warehouse)
    warehouse.ensure(lambda: spark, [TABLES[name] for name in FILLED])
    records = topic(lines(golden, push_lines[0]))
    ingest.of_request_log(conf, "c1").write(records, Batch(warehouse, "ingest", "q1", 0))
    headers = {
        **{"client_id": NAME, "client_source_address": MACHINE, "broker_id": "1"},
        "connection_id": f"127.0.0.1:9092-{MACHINE}:5-0-1",
        "client_instance_id": push_lines[0]["request"]["clientInstanceId"],
    }
    received = topic([(PAYLOAD, headers), (f"\xff{NAME}".encode("latin-1"), headers)], "telemetry")
    receiver = ingest.of_receiver(conf, "c1")
    receiver.write(received, Batch(warehouse, "receive", "q2", 0))
    pushes = warehouse.read(spark, "telemetry_pushes")
    readable = pushes.where("unreadable_reason IS NULL")
    PointIngest(conf).write(readable, Batch(warehouse, "points", "q3", 0))

    assert_hidden(conf)
    for name in ("requests", "telemetry_pushes", "telemetry_subscriptions", "client_metrics"):
        assert clients(spark, warehouse, name) == {ann(conf)}, name
    # The same push on two ways is known by what came, not by what is kept.
    both = F.col("payload_sha256") == hashlib.sha256(PAYLOAD).hexdigest()
    assert pushes.where(both).count() == 2
    points = warehouse.read(spark, "client_metrics").where(both).select("attributes").collect()
    assert [row["attributes"]["note"] for row in points] == [ann(conf)[0]] * 2
