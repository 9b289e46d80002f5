"""Which broker a line is of: by its id, or by a name whose number is that of a known broker."""

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from ...record_batches import parsed
from .test_hostile_lines import GOOD
from .test_wrappers import LINE, MS, STOCK

BROKERS = (0, 1, 2, 3, 5, 7, 12)

NAMES: dict[str, int | None] = {
    # Node ids.
    **{"3": 3, "99": 99, " 7 ": 7, "2147483647": 2_147_483_647, "-1": None, "2147483648": None},
    # Names of brokers and of their pods.
    **{"kafka-0": 0, "KAFKA-3": 3, "broker-12": 12, "kafka-3.kafka.svc": 3, "kafka-003": 3},
    **{"kafka-2.kafka-headless.team-7.svc": 2, "kafka-3/kafka/0b1c": 3, "my-cluster-kafka-2": 2},
    **{"b-1.mycluster.abc.kafka.us-east-1.amazonaws.com": 1, "my-cluster-dual-role-1": 1},
    **{"dual-role-1": 1, "pool-a-7": 7, "kafka-node-3": 3, "broker-on-worker-2": 2},
    "kafka-3_kafka_kafka-0b1c2d": 3,
    # A number of no broker.
    **dict.fromkeys(("kafka-4", "my-cluster-kafka-100", "pool-a-8")),
    # Machines, on which any broker may run.
    **dict.fromkeys(("worker-3", "k8s-worker-3.example.com", "node-2", "gke-prod-nodepool1-5")),
    **dict.fromkeys(("k3d-demo-agent-0", "control-plane-1", "ip-10-0-0-1")),
    "ip-10-0-0-1.ec2.internal": None,
    # No number at the end of a name.
    **dict.fromkeys(("kafka", "b1", "kafka3", "10.0.0.3", "2026-11-20", "kafka-1234567890", "")),
    **dict.fromkeys(("627cc493-f310-47de-96bd-71410b7dec03", "orders-3-eu", "kafka-3.7.1")),
}
NUMBERED = {
    *("kafka-4", "my-cluster-kafka-100", "pool-a-8", "worker-3", "k8s-worker-3.example.com"),
    *("node-2", "gke-prod-nodepool1-5", "k3d-demo-agent-0", "control-plane-1"),
}
"""Names that end in a number and are not taken: they count as doubtful."""


VALUES: dict[str, Callable[[str], Any]] = {
    "key": lambda _: {"ts": MS, "r": GOOD},
    "pod": lambda name: {"log": STOCK, "kubernetes": {"pod_name": name}},
    "host": lambda name: {"message": STOCK, "host": {"name": name}},
    "log stream": lambda name: {"logGroup": "g", "logStream": name, "message": STOCK},
}
"""Sources of names, and a record of each."""


def read(values: Iterable[Any], **given: Any) -> list[dict[str, Any]]:
    return parsed([json.dumps(each).encode() for each in values], brokers=BROKERS, **given)


@pytest.mark.parametrize("source", VALUES)
def test_a_name_gives_the_broker_that_a_snapshot_has(source: str) -> None:
    keys = [name.encode() if source == "key" else None for name in NAMES]
    rows = dict(zip(NAMES, read(map(VALUES[source], NAMES), key=keys), strict=True))
    assert {name: row["broker_id"] for name, row in rows.items()} == NAMES
    assert {name for name, row in rows.items() if row["unknown_broker"]} == NUMBERED


def test_a_host_of_syslog_gives_the_broker_that_a_snapshot_has() -> None:
    words = [name for name in NAMES if name == name.strip() != ""]
    texts = [f"<15>Nov 20 10:00:00 {word} kafka: {STOCK}".encode() for word in words]
    rows = dict(zip(words, parsed(texts, brokers=BROKERS), strict=True))
    assert {word: row["broker_id"] for word, row in rows.items()} == {w: NAMES[w] for w in words}
    assert {word for word, row in rows.items() if row["unknown_broker"]} == NUMBERED


def test_without_a_snapshot_only_an_id_counts() -> None:
    keys = [name.encode() for name in NAMES]
    rows = parsed([json.dumps({"ts": MS, "r": GOOD}).encode()] * len(keys), key=keys)
    seen = {name: row["broker_id"] for name, row in zip(NAMES, rows, strict=True)}
    ids = {"3": 3, "99": 99, " 7 ": 7, "2147483647": 2_147_483_647}
    assert {name: broker for name, broker in seen.items() if broker is not None} == ids
    doubtful = {n for n, row in zip(NAMES, rows, strict=True) if row["unknown_broker"]}
    assert doubtful == NUMBERED | {n for n, b in NAMES.items() if b is not None} - {*ids}


def test_what_the_record_itself_says_is_the_broker_counts_as_it_is() -> None:
    """By the envelope, by the record's header, or by the field of a shipper."""
    stated: dict[Any, int | None] = NAMES | {
        **{7: 7, 99: 99, "kafka-4": 4, "my-cluster-kafka-100": 100, "pool-a-8": 8, "worker-3": 3},
        **{"k8s-worker-3.example.com": 3, "node-2": 2, "gke-prod-nodepool1-5": 5},
        **{"k3d-demo-agent-0": 0, "control-plane-1": 1},
    }
    rows = read({"ts": MS, "broker": each, "r": GOOD} for each in stated)
    rows += read({"fields": {"broker_id": each}, "log": STOCK} for each in stated)
    rows += read([GOOD] * len(stated), headers=[{"broker_id": str(each)} for each in stated])
    assert [row["broker_id"] for row in rows] == [*stated.values()] * 3
    assert not any(row["unknown_broker"] for row in rows)


IN_ORDER: list[tuple[str, int]] = [
    ("envelope", 1), ("header", 2), ("field", 3), ("key", 5), ("pod", 7), ("host", 12)
]  # fmt: skip


@pytest.mark.parametrize("first", range(len(IN_ORDER)))
def test_the_record_s_own_word_comes_before_its_key_and_names_last(first: int) -> None:
    given = dict(IN_ORDER[first:])
    message = {"r": json.loads(LINE)} | ({"broker": 1} if "envelope" in given else {})
    record: dict[str, Any] = {"message": json.dumps(message)}
    record |= {"fields": {"broker_id": "3"}} if "field" in given else {}
    record |= {"kubernetes": {"pod": {"name": "pool-a-7"}}} if "pod" in given else {}
    record |= {"host": {"name": "kafka-12"}}
    options: dict[str, Any] = {"key": b"kafka-5"} if "key" in given else {}
    options |= {"headers": {"broker_id": "2"}} if "header" in given else {}
    (row,) = read([record], **options)
    assert row["broker_id"] == IN_ORDER[first][1]


def test_a_name_that_gives_no_broker_leaves_it_to_the_next() -> None:
    record = {"log": STOCK, "kubernetes": {"pod_name": "app-x"}, "host": "worker-3",
              "hostname": "kafka-2"}  # fmt: skip
    (row,) = read([record], key=b"worker-3")
    assert (row["broker_id"], row["unknown_broker"]) == (2, False)


def test_a_line_that_names_nothing_is_not_doubtful() -> None:
    (row,) = read([GOOD])
    assert (row["broker_id"], row["unknown_broker"]) == (None, False)
