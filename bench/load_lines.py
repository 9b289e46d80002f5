"""A generated request log of a cluster of three brokers, for any number of clients and lines.

A third of the clients produce, the rest consume: each of those reads six partitions in one fetch
session per broker (KIP-227), which goes on from line to line. Of 99 lines 56 are FETCH, 36 PRODUCE,
4 OFFSET_COMMIT, 2 METADATA and 1 INIT_PRODUCER_ID, about what brokers of the demo write without
their own requests. Every client pushes its metrics every 30 seconds of the brokers'
clocks. Lines are those of tests/golden with other names and numbers in them.
"""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

LINES = Path(__file__).parents[1] / "tests" / "golden" / "lines"
BROKERS = 3
PARTITIONS = 6
CLIENTS_PER_TOPIC = 10
CONSUMERS = "CCP"
_MIX = "".join("FP"[n % 5 in (1, 3)] for n in range(92)) + "OOOOMMI"
_PUSHES, _PUSH_INTERVAL_MS = 24, 30_000
# Kafka has the lowest for itself.
_FIRST_ID = 1_000


def topic_id(number: int) -> str:
    """The id of a topic as Kafka prints it."""
    return base64.urlsafe_b64encode((number + _FIRST_ID).to_bytes(16, "big")).decode().rstrip("=")


def topics(clients: int) -> dict[str, str]:
    """Topic id -> name, of all topics that this number of clients uses."""
    return {topic_id(n + 1): f"t{n}" for n in range(_topics(clients))}


def _topics(clients: int) -> int:
    return max(clients // CLIENTS_PER_TOPIC, 1)


def lines(clients: int, start_ms: int, per_s: float) -> Iterator[bytes]:
    """Lines without end, at a rate per second of the brokers' clocks."""
    shapes = _shapes()
    everybody = [_Client(number, clients, shapes) for number in range(clients)]
    consumers = [c for c in everybody if c.consumes]
    producers = [c for c in everybody if not c.consumes] or consumers
    rounds = {"F": _round(consumers), "P": _round(producers), "O": _round(consumers)}
    rounds |= {kind: _round(everybody) for kind in "MIT"}
    number, pushes, step_ms, push_ms = 0, 0, 1_000 / per_s, _PUSH_INTERVAL_MS / clients
    # Strides share no factor with the mix, so that kinds alternate.
    while True:
        at_ms = (number + pushes) * step_ms
        is_push = at_ms >= (pushes + 1) * push_ms
        kind = "T" if is_push else _MIX[number * 37 % len(_MIX)]
        yield next(rounds[kind]).line(kind, start_ms + int(at_ms))
        number, pushes = number + (not is_push), pushes + is_push


def _round(clients: "list[_Client]") -> "Iterator[_Client]":
    while True:
        yield from clients


@dataclass(slots=True)
class _Client:
    """The state of a client's lines: correlation ids, offsets, epochs of its sessions."""

    number: int
    count: int
    shapes: dict[str, list[str]]
    correlation_id: int = 0
    offset: int = 0
    epochs: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        self.epochs = (0,) * BROKERS

    @property
    def consumes(self) -> bool:
        return CONSUMERS[self.number % len(CONSUMERS)] == "C"

    def line(self, kind: str, ts_ms: int) -> bytes:
        self.correlation_id += 1
        at = self.correlation_id % BROKERS
        values: dict[str, Any] = {
            "ts": ts_ms,
            "broker": at + 1,
            "correlation": self.correlation_id,
            "client": f"client-{self.number}",
            "principal": f"User:team-{self.number // 5}",
            "port": 1_024 + self.number % 60_000,
            "host": self.number % 250,
            "topic": topic_id(self.number % _topics(self.count) + 1),
            "name": f"t{self.number % _topics(self.count)}",
            "id": 1_000 + self.number,
            # A push counts once, so each comes from another instance, or most would be left out.
            "instance": topic_id((self.number << 40) + self.correlation_id),
            "rack": f"az-{'abc'[self.number % 3]}",
        }
        if kind in "FP":
            self.offset += 1
            values |= {"offset": self.offset, "end": self.offset + 3, "first": at, "second": at + 3}
        if kind == "F":
            values |= self._session(at)
        shape = self.shapes[kind]
        return (shape[self.correlation_id % len(shape)] % values).encode()

    def _session(self, at: int) -> dict[str, int]:
        epoch = self.epochs[at]
        self.epochs = (*self.epochs[:at], epoch + 1, *self.epochs[at + 1 :])
        answered = self.number * BROKERS + at + 1
        return {"session": answered if epoch else 0, "epoch": epoch, "answered": answered}


def _shapes() -> dict[str, list[str]]:
    """For each kind of line its golden lines as formats."""
    made = {
        "F": [_fetch(_golden("fetch", 1)[0])],
        "P": [_produce(_golden("produce", 1)[0])],
        "M": [_metadata(_golden("metadata", 1)[0])],
        "I": [_init(_golden("init_producer_id", 1)[0])],
        "T": [_push(line) for line in _golden("push_telemetry", _PUSHES)],
    }
    commit = json.loads(json.dumps(made["I"][0]))
    commit["requestHeader"] |= {"requestApiKey": 8, "requestApiKeyName": "OFFSET_COMMIT"}
    commit["request"], commit["response"] = {"groupId": "g"}, {"throttleTimeMs": 0, "topics": []}
    made["O"] = [commit]
    return {kind: [_format(line) for line in lines] for kind, lines in made.items()}


def _golden(name: str, count: int) -> list[dict[str, Any]]:
    with (LINES / f"{name}.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in islice(file, count)]


def _format(line: dict[str, Any]) -> str:
    line["requestHeader"] |= {"clientId": "%(client)s", "correlationId": "@correlation@"}
    line["principal"] = "%(principal)s"
    line["connection"] = "10.1.0.9:9092-10.0.0.@host@:@port@-1-2"
    text = json.dumps({"ts": "@ts@", "broker": "@broker@", "r": line}, separators=(",", ":"))
    text = text.replace("%(", "\0").replace("%", "%%").replace("\0", "%(")
    names = "ts broker correlation port host offset end first second session epoch answered id"
    for name in names.split():
        text = text.replace(f'"@{name}@"', f"%({name})d").replace(f"@{name}@", f"%({name})d")
    return text


def _fetch(line: dict[str, Any]) -> dict[str, Any]:
    requested = line["request"]["topics"][0]["partitions"][0]
    answered = line["response"]["responses"][0]["partitions"][0]
    answered |= {"highWatermark": "@end@", "lastStableOffset": "@end@", "recordsSizeInBytes": 700}
    answered["preferredReadReplica"] = -1
    line["request"]["topics"] = [
        {
            "topicId": "%(topic)s",
            "partitions": [
                requested | {"partition": f"@{which}@", "fetchOffset": "@offset@"}
                for which in ("first", "second")
            ],
        }
    ]
    line["request"] |= {"sessionId": "@session@", "sessionEpoch": "@epoch@", "rackId": "%(rack)s"}
    line["response"] |= {
        "sessionId": "@answered@",
        "responses": [
            {
                "topicId": "%(topic)s",
                "partitions": [
                    answered | {"partitionIndex": f"@{which}@"} for which in ("first", "second")
                ],
            }
        ],
    }
    return line


def _produce(line: dict[str, Any]) -> dict[str, Any]:
    line["request"]["topicData"][0] |= {
        "topicId": "%(topic)s",
        "partitionData": [{"index": "@first@", "recordsSizeInBytes": 5_000}],
    }
    answered = line["response"]["responses"][0]
    answered["topicId"] = "%(topic)s"
    answered["partitionResponses"][0] |= {"index": "@first@", "baseOffset": "@offset@"}
    return line


def _metadata(line: dict[str, Any]) -> dict[str, Any]:
    line["request"]["topics"][0]["name"] = "%(name)s"
    line["response"]["topics"][0] |= {"name": "%(name)s", "topicId": "%(topic)s"}
    return line


def _init(line: dict[str, Any]) -> dict[str, Any]:
    line["response"]["producerId"] = "@id@"
    return line


def _push(line: dict[str, Any]) -> dict[str, Any]:
    line["request"]["clientInstanceId"] = "%(instance)s"
    return line
