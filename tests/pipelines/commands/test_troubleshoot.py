"""The command troubleshoot: which clients it finds, what it refuses, shows and leaves."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quotaflow.pipelines.errors import KafkaError
from quotaflow.pipelines.kafka import admin, client_metrics, tail, temporary_subscription
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.declared import CLIENT_METRICS
from quotaflow.udfs.rules import lease

from ...cases import cases
from ...command_line import Command, Printed
from ...delta_tables import Fill
from ...rows import INSTANCE, Row, push, row
from ...schemas.views.view_tables import make_tables_and_answers

ONE, TWO, ENDED = "vl7CCx68Qw29SsxmLSK4Xg", "-_7CCx68Qw29SsxmLSK4Xg", "gone_x68Qw29SsxmLSK4Xg"
CONSUMER, PRODUCER = "org.apache.kafka.consumer.", "org.apache.kafka.producer."
RECEIVED, LOGGED = "client_telemetry", "broker_request_logs"
OLD = {"client_software_name": "librdkafka", "client_software_version": "2.5.0"}
MS = 1_795_219_200_000


class Kafka:
    """The parts of a cluster that the command needs; `resources` are its client-metrics configs."""

    def __init__(self) -> None:
        self.resources: dict[str, dict[str, str]] = {}
        self.written: list[str] = []
        self.topics = {RECEIVED: 1, LOGGED: 3}
        self.refusals = 0

    def describe(self, _properties: object, names: list[str], _pinned: object) -> admin.Cluster:
        topics = {n: admin.Topic(n, "id", self.topics[n]) for n in names if n in self.topics}
        return admin.Cluster("c1", topics)

    def read(self, _properties: object) -> dict[str, dict[str, str]]:
        return dict(self.resources)

    def write(self, _properties: object, name: str, configs: dict[str, str]) -> None:
        self.written.append(name)
        self.resources[name] = configs

    def delete(self, _properties: object, name: str) -> None:
        if self.refusals:
            self.refusals -= 1
            raise KafkaError("the brokers are away")
        del self.resources[name]


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Kafka:
    made = Kafka()
    monkeypatch.setattr(admin, "describe", made.describe)
    monkeypatch.setattr(temporary_subscription, "_PAUSE_S", 0.0)
    for name in ("read", "write", "delete"):
        monkeypatch.setattr(client_metrics, name, getattr(made, name))
    return made


@dataclass
class Troubleshoot:
    """The command on a fake cluster and tables of the test."""

    kafka: Kafka
    warehouse: Warehouse
    command: Command

    def __call__(self, *words: str, code: int = 0) -> Printed:
        """What it prints, which may not control a terminal."""
        printed = self.command("troubleshoot", *words, code=code)
        assert all(line.isprintable() for line in (printed.out + printed.err).splitlines())
        assert "Traceback" not in printed.err
        return printed


@pytest.fixture
def run(kafka: Kafka, warehouse: Warehouse, table_command: Command) -> Troubleshoot:
    return Troubleshoot(kafka, warehouse, table_command)


def clients(warehouse: Warehouse, *rows: Row) -> None:
    answer = {"error_code": 0, "push_interval_ms": 60_000}
    requests = [row("telemetry_subscriptions", 9, INSTANCE | answer | each) for each in rows]
    ended = push(5, client_instance_id=ENDED, client_id="billing", terminating=True)
    make_tables_and_answers(
        warehouse, {"telemetry_subscriptions": requests, "telemetry_pushes": [ended]}
    )


def record(
    topic: str, value: bytes, headers: dict[str, str] | None = None, key: bytes | None = None
) -> Any:
    pairs = [(key, text.encode()) for key, text in (headers or {}).items()]
    return SimpleNamespace(
        topic=topic, partition=0, offset=0, key=key, value=value, headers=pairs, timestamp=MS
    )


@contextmanager
def arriving(monkeypatch: pytest.MonkeyPatch, *records: Any) -> Iterator[None]:
    """Records that come at once, then Ctrl-C twice."""
    waiting = [list(records)]

    def poll() -> list[Any]:
        if waiting:
            return waiting.pop()
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
        return []

    @contextmanager
    def opened(_properties: object, partitions: dict[str, int]) -> Iterator[Callable[[], Any]]:
        assert set(partitions) <= {RECEIVED, LOGGED}
        yield poll

    with monkeypatch.context() as patch:
        patch.setattr(tail, "follow", opened)
        yield


def received(golden: Path) -> Any:
    headers = json.loads((golden / "plugin_headers.json").read_text())[0]
    payload = (golden / "otlp/rdk-idem-alice.data.bin").read_bytes()
    return record(RECEIVED, payload, headers | {"client_instance_id": ONE})


def logged(golden: Path, instance: str, **others: Any) -> dict[str, Any]:
    line = json.loads((golden / "lines/push_telemetry.jsonl").read_text().splitlines()[0])
    line["request"]["clientInstanceId"] = instance
    return {"ts": MS, "broker": 2, "r": line | others}


def test_without_yes_it_only_says_what_it_would_do(run: Troubleshoot) -> None:
    clients(run.warehouse, {"client_instance_id": ONE, "client_id": "o'b\x1b[2J"})
    out, err = run("o'b\x1b[2J", "--metrics", f"{CONSUMER},{CONSUMER}fetch.")
    assert f"metrics     {CONSUMER}\n" in out
    assert "interval.ms 10000" in out
    assert f"--add-config 'metrics=[{CONSUMER}],interval.ms=10000,match=[client_instance" in out
    assert "--delete-config metrics,interval.ms,match" in out
    assert f"matches     {ONE}  o'b\\x1b[2J  apache-kafka-java 4.3.1  10.0.0.7" in out
    assert "within 450 s" in err
    assert run.kafka.resources == {}


def test_json_names_the_lease_and_all_live_instances_of_a_client_id(run: Troubleshoot) -> None:
    clients(run.warehouse, {"client_instance_id": ONE}, {"client_instance_id": TWO})
    (prepared,) = run("orders", "--metrics", "*", "--for", "1h", "--json").rows
    assert set(prepared["client_instance_ids"]) == {ONE, TWO}
    matches = {f"client_instance_id={'|'.join(ids)}" for ids in ((ONE, TWO), (TWO, ONE))}
    assert prepared["configs"]["match"] in matches
    assert lease.until_s(prepared["name"])


def test_an_instance_id_takes_that_instance_alone(run: Troubleshoot) -> None:
    clients(
        run.warehouse, {"client_instance_id": ONE}, {"client_instance_id": TWO, "client_id": ONE}
    )
    assert run(ONE, "--metrics", "*", "--json").rows[0]["client_instance_ids"] == [ONE]


@pytest.mark.parametrize("name", ["User:arn:aws:iam::1:user/etl", "arn:aws:iam::1:user/etl"])
def test_a_principal_in_any_form_takes_its_instances(run: Troubleshoot, name: str) -> None:
    clients(
        run.warehouse,
        {"client_instance_id": ONE, "principal": "User:arn:aws:iam::1:user/etl"},
        {"client_instance_id": TWO},
    )
    assert run(name, "--metrics", "*", "--json").rows[0]["client_instance_ids"] == [ONE]


def test_at_most_twenty_instances_are_asked(run: Troubleshoot) -> None:
    clients(run.warehouse, *({"client_instance_id": f"{i:022}"} for i in range(23)))
    out, err = run("orders", "--metrics", "*", "--json")
    assert len(json.loads(out)["client_instance_ids"]) == 20
    assert "3 more live instances of orders are left out" in err


@cases(
    ("words", "code", "expected"),
    ("misspelt", ["order"], 1, "no client order (did you mean orders?)"),
    ("a text like SQL", ["'; SELECT 1"], 1, "no client '; SELECT 1 (did"),
    ("gone", ["billing"], 1, "no live client billing: terminated, last seen"),
    ("often", ["orders", "--interval", "100ms"], 2, "--interval 100ms must be 1 to 3600 s"),
    ("too seldom", ["orders", "--interval", "2h"], 2, "1 to 3600 s"),
    ("short", ["orders", "--for", "9s"], 2, "--for 9s must be 10 to 86400 s"),
    ("long", ["orders", "--for", "2d"], 2, "10 to 86400 s"),
    ("no prefix", ["orders", "--metrics", "a b"], 2, "'a b' is not a prefix"),
    ("no metric", ["orders", "--metrics", ""], 2, "'' is not a prefix"),
    (
        "nowhere to look",
        ["orders", "--set", "ingest.receiver_topic=x", "--set", "ingest.request_log_topic=y"],
        1,
        "nor ingest.request_log_topic (x, y)",
    ),
)
def test_what_cannot_be_is_one_error_and_nothing_is_written(
    run: Troubleshoot, words: list[str], code: int, expected: str
) -> None:
    clients(run.warehouse, {"client_instance_id": ONE})
    errors = run("--metrics", "*", *words, "--yes", code=code).err
    assert expected in errors
    assert run.kafka.written == []


def test_what_could_harm_the_client_is_refused(run: Troubleshoot) -> None:
    clients(run.warehouse, {"client_instance_id": ONE, **OLD})
    errors = run(ONE, "--metrics", PRODUCER, "--yes", code=1).err
    assert "nothing was written" in errors
    assert "librdkafka 2.5.0 crashes" in errors
    run(ONE, "--metrics", f"{PRODUCER},{CONSUMER}")
    assert run.kafka.written == []


def test_what_other_resources_do_to_it_is_told(run: Troubleshoot) -> None:
    clients(run.warehouse, {"client_instance_id": ONE, **OLD, "client_software_version": "2.10.0"})
    run.kafka.resources["all"] = {"metrics": f"{CONSUMER},{PRODUCER}", "interval.ms": "2000"}
    left = {"metrics": "a.", "match": "client_id=x"}
    run.kafka.resources["quotaflow-troubleshoot-x-until-5"] = left
    notes = run(ONE, "--metrics", f"{CONSUMER}poll.,{CONSUMER}pol1.").err
    assert "next push or request: within 3 s" in notes
    expected = "the shortest interval applies (other subscriptions match too)"
    assert f"pushes will come every 2000 ms: {expected}" in notes
    assert f"sends twice what both {CONSUMER} and {CONSUMER}poll. match" in notes
    assert (
        f"no metric of the catalogue begins with {CONSUMER}pol1. (nearest: {CONSUMER}poll)" in notes
    )
    assert "left over since 1970-01-01T00:00:05Z" in notes
    assert "--delete-config metrics,match" in notes


def test_points_come_once_whichever_way_and_the_resource_goes(
    run: Troubleshoot, golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients(run.warehouse, {"client_instance_id": ONE}, {"client_instance_id": TWO})
    in_log = json.dumps(logged(golden, TWO)).encode()
    stock = f"[x] DEBUG Completed request:{json.dumps(logged(golden, ENDED)['r'])} (k)".encode()
    other = record(RECEIVED, b"", {"client_instance_id": ENDED})
    once = [received(golden), record(LOGGED, in_log), record(LOGGED, stock), other]
    with arriving(monkeypatch, *once, received(golden), record(LOGGED, in_log)):
        printed = run("orders", "--metrics", "*", "--json", "--yes", code=130)
    rows, err = printed.rows, printed.err
    assert list(rows[0]) == CLIENT_METRICS.column_names
    assert {(r["client_instance_id"], r["principal"], r["cluster_id"]) for r in rows} == {
        (ONE, "User:alice", "c1"),
        (TWO, "User:bob", "c1"),
    }
    assert {r["broker_id"] for r in rows} == {1, 2}
    assert f"2 pushes and {len(rows)} points came" in err
    assert run.kafka.resources == {}
    assert len(run.kafka.written) == 1


@cases(
    ("names", "broker_id"),
    ("a broker that a snapshot has", "kafka-7.kafka.svc", 7),
    ("a broker that no snapshot has", "kafka-8.kafka.svc", None),
)
def test_brokers_are_known_by_names_as_ingest_knows_them(
    run: Troubleshoot,
    golden: Path,
    fill: Fill,
    monkeypatch: pytest.MonkeyPatch,
    *,
    names: str,
    broker_id: int | None,
) -> None:
    clients(run.warehouse, {"client_instance_id": ONE})
    fill("brokers", [row("brokers", 9, {"broker_id": 7})])
    stock = f"[x] DEBUG Completed request:{json.dumps(logged(golden, ONE)['r'])} (k)".encode()
    with arriving(monkeypatch, record(LOGGED, stock, key=names.encode())):
        printed = run("orders", "--metrics", "*", "--json", "--yes", code=130)
    assert {each["broker_id"] for each in printed.rows} == {broker_id}


def test_csv_has_one_head_for_all_pushes_and_the_same_rows(
    run: Troubleshoot, golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients(run.warehouse, {"client_instance_id": ONE}, {"client_instance_id": TWO})
    came = [received(golden), record(LOGGED, json.dumps(logged(golden, TWO)).encode())]
    with arriving(monkeypatch, *came):
        printed = run("orders", "--metrics", "*", "--csv", "--yes", code=130)
    rows, err = printed.csv_rows, printed.err
    assert list(rows[0]) == CLIENT_METRICS.column_names
    # A spreadsheet would run what begins with a minus.
    assert {row["client_instance_id"].removeprefix("'") for row in rows} == {ONE, TWO}
    assert f"2 pushes and {len(rows)} points came" in err
    (shown,) = run("orders", "--metrics", "*", "--csv").csv_rows
    assert {*json.loads(shown["client_instance_ids"])} == {ONE, TWO}
    run("orders", "--metrics", "*", "--csv", "--json", code=2)


def test_lines_for_people_hold_only_what_was_asked_for(
    run: Troubleshoot, golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients(run.warehouse, {"client_instance_id": ONE})
    with arriving(monkeypatch, received(golden)):
        printed = run(ONE, "--metrics", f"{PRODUCER}connection.creation.", "--yes", code=130)
    lines = printed.out.splitlines()
    assert {line.split("  ")[1].split(" = ")[0] for line in lines} == {
        f"{PRODUCER}connection.creation.rate",
        f"{PRODUCER}connection.creation.total",
    }
    assert all(line.endswith(ONE) for line in lines)


def test_rejected_unreadable_and_hostile_records_are_told_or_passed_over(
    run: Troubleshoot, golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients(run.warehouse, {"client_instance_id": ONE})
    empty = logged(golden, ONE, response={"errorCode": 117})
    empty["r"]["request"]["metrics"] = ""
    texts: list[Any] = [
        logged(golden, ONE, response={"errorCode": 89}),
        empty,
        logged(golden, ONE, principal=["User:x"]),
        logged(golden, ONE, response=None),
        logged(golden, ONE, connection="x"),
        {"r": [ONE, "PUSH_TELEMETRY"]},
        [ONE, "PUSH_TELEMETRY"],
    ]
    deep = f'"{ONE}PUSH_TELEMETRY' + "[" * 100_000
    lines = [json.dumps(text).encode() for text in texts] + [deep.encode(), deep[1:].encode()]
    bad = record(RECEIVED, b"\xff\x1b[2J", {"client_instance_id": ONE})
    odd = record(RECEIVED, b"", {"client_instance_id": ONE, "broker_id": "9" * 99})
    name = b"\x0a\x07\x12\x05\x12\x03\x0a\x01\xff"
    spoiled = record(RECEIVED, name, {"client_instance_id": ONE})
    with arriving(monkeypatch, bad, odd, spoiled, *(record(LOGGED, line) for line in lines)):
        err = run(ONE, "--metrics", "*", "--yes", code=130).err
    assert f"a push of {ONE} was rejected with error 89\n" in err
    assert f"a push of {ONE} was rejected with error 117: its subscription changed" in err
    assert f"a push of {ONE} cannot be read: not_otlp" in err
    assert f"a push of {ONE}: metric_not_utf8: metrics left out" in err
    assert "5 pushes and" in err
    assert run.kafka.resources == {}


@pytest.mark.parametrize(("refusals", "is_left"), [(2, False), (3, True)])
def test_a_resource_that_cannot_be_deleted_is_named_with_the_command_that_does(
    run: Troubleshoot, monkeypatch: pytest.MonkeyPatch, refusals: int, is_left: bool
) -> None:
    clients(run.warehouse, {"client_instance_id": ONE})
    run.kafka.refusals = refusals
    with arriving(monkeypatch):
        errors = run(ONE, "--metrics", "*", "--yes", code=1 if is_left else 130).err
    (name,) = run.kafka.written
    removal = f"--entity-name {name} --delete-config metrics,interval.ms,match"
    assert (removal in errors) == is_left
    assert (name in run.kafka.resources) == is_left


def test_a_failure_while_it_follows_takes_the_resource_back(
    run: Troubleshoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def opened(*_: object) -> Iterator[Callable[[], Any]]:
        def poll() -> Any:
            raise KafkaError("the topic is gone")

        yield poll

    clients(run.warehouse, {"client_instance_id": ONE})
    monkeypatch.setattr(tail, "follow", opened)
    assert "error: the topic is gone" in run(ONE, "--metrics", "*", "--yes", code=1).err
    assert run.kafka.resources == {}
    assert len(run.kafka.written) == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_a_broker_refuses_is_told_and_nothing_is_left(
    run: Troubleshoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise KafkaError("the cluster refused client-metrics x: no")

    clients(run.warehouse, {"client_instance_id": ONE})
    monkeypatch.setattr(client_metrics, "write", refuse)
    monkeypatch.setattr(client_metrics, "delete", lambda *_: None)
    with arriving(monkeypatch):
        errors = run(ONE, "--metrics", "*", "--yes", code=1).err
    assert "error: the cluster refused client-metrics x: no" in errors
    assert run.kafka.resources == {}
