"""A cluster of brokers whose clocks differ, made of recorded lines."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from . import recorded, storm

STEP = timedelta(milliseconds=500)
SHIPPING = timedelta(seconds=1)
FAR, FAR_TIME = "far", datetime(2100, 5, 26, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker and how wrong its clock is; `fixed_ms`: its clock stays there.

    `ships`: its records' times are by its clock too, for its own machine writes them.
    """

    number: int
    name: str = ""
    ahead: timedelta = timedelta()
    fixed_ms: int | None = None
    ships: bool = False

    def ts(self, now: datetime) -> int:
        """What its clock says, in milliseconds since the epoch."""
        if self.fixed_ms is not None:
            return self.fixed_ms
        return round((now + self.ahead).timestamp() * 1_000)


SANE = (Broker(1), Broker(2))
SKEWED = (
    Broker(3, "ahead", timedelta(hours=1)),
    Broker(4, "behind", timedelta(days=-1)),
    Broker(5, "last", fixed_ms=4_102_444_799_000),
    Broker(6, "wild", fixed_ms=10**18),
    Broker(7, "alone", timedelta(days=1), ships=True),
)
EVERYONE = SANE + SKEWED


@cache
def start() -> datetime:
    """The first of some minutes that are just over: what is ahead of a broker is ahead of us too.

    By the first call, and not by the import: other tests of a run may take hours before this one.
    """
    return datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=40)


def happened(offset: int) -> datetime:
    """When the request of this offset was completed, by a right clock."""
    return start() + offset * STEP


def record_time(offset: int) -> datetime:
    """When its record was written, by the clock of its writer."""
    broker = EVERYONE[offset % len(EVERYONE)]
    return happened(offset) + SHIPPING + (broker.ahead if broker.ships else timedelta())


def requests() -> list[Any]:
    """Recorded requests without an envelope, in an order that has some of all in each third."""
    lines = [json.loads(line) for line in recorded.golden_lines()]
    lines_read = [line.get("r", line) for line in lines if "level" not in line]
    return [*lines_read[::3], *lines_read[1::3], *lines_read[2::3]]


def broker_lines(brokers: tuple[Broker, ...]) -> Iterator[tuple[int, bytes]]:
    """Each recorded request as each of these brokers had it, under the same offsets always."""
    for index, request in enumerate(requests()):
        for place, broker in enumerate(EVERYONE):
            # The sane ones share the requests: a client speaks to one of them.
            if broker not in brokers or (broker in SANE and index % len(SANE) != place):
                continue
            offset = index * len(EVERYONE) + place
            timed = _pushed_at(request, happened(offset)) if _is_push(request) else request
            mine = _renamed(timed, broker.name) if broker.name else timed
            envelope = {"ts": broker.ts(happened(offset)), "broker": broker.number, "r": mine}
            yield offset, json.dumps(envelope, separators=(",", ":")).encode()


def from_the_future() -> Iterator[tuple[int, bytes]]:
    """Pushes that clients of a wrong clock made, and the first broker took after all that."""
    all_ = requests()
    for index, push in enumerate(filter(_is_push, all_), start=len(all_)):
        offset = index * len(EVERYONE)
        line = _renamed(_pushed_at(push, FAR_TIME), FAR)
        envelope = {"ts": SANE[0].ts(happened(offset)), "broker": 1, "r": line}
        yield offset, json.dumps(envelope, separators=(",", ":")).encode()


def _is_push(request: Any) -> bool:
    named = request["requestHeader"]["requestApiKeyName"] == "PUSH_TELEMETRY"
    return named and request["request"]["metrics"].startswith("KLUv")


def _pushed_at(push: Any, now: datetime) -> Any:
    """The push of a client whose clock says so."""
    sent = MetricsData.FromString(storm.opened(push))
    for point in _points(sent):
        point.time_unix_nano = round(now.timestamp()) * 10**9
    return json.loads(storm.pushing(push, sent.SerializeToString(), 0))


def _points(sent: MetricsData) -> Iterator[Any]:
    for resource in sent.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                kind = metric.WhichOneof("data")
                yield from getattr(metric, kind).data_points if kind else ()


def _renamed(request: Any, name: str) -> Any:
    """The same request of another client, with names that tell."""
    mine = json.loads(json.dumps(request))
    mine["principal"] += f"-{name}"
    mine["requestHeader"]["clientId"] += f"-{name}"
    body = mine["request"]
    for key in ("transactionalId", "v3AndBelowTransactionalId", "groupId"):
        if body.get(key):
            body[key] += f"-{name}"
    if instance := body.get("clientInstanceId"):
        body["clientInstanceId"] = name[:4].ljust(4, "-") + instance[4:]
    return mine
