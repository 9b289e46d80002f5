"""Pushes of telemetry (KIP-714) as no client library makes them, and what brokers answer."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

import pyarrow as pa
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.raw_connection import RawConnection
from quotaflow.pipelines.errors import KafkaError

METRIC = "org.apache.kafka.raw.test"
"""A metric name that no catalogue has."""

USER = "alice"
_GET_TELEMETRY_SUBSCRIPTIONS, _PUSH_TELEMETRY = 71, 72
_NONE, _ZSTD, _NO_CODEC = 0, 4, 9
_LOW_BITS, _GOES_ON = 0x7F, 0x80
_OVER_MAX_BYTES = 1_100_000
"""More than telemetry.max.bytes, 1 MiB."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """A client instance id, and the id of the subscription that a broker gave it."""

    instance: UUID
    subscription_id: int


class RawPusher(RawConnection):
    """One connection to the first bootstrap server."""

    def subscribe(self) -> Subscription:
        """A new client instance and its subscription."""
        response = self.call(_GET_TELEMETRY_SUBSCRIPTIONS, 0, bytes(16), is_flexible=True)
        _throttle_ms, error = struct.unpack(">ih", response[:6])
        if error:
            raise KafkaError(f"{self.client_id}: no subscription, error {error}")
        return Subscription(UUID(bytes=response[6:22]), struct.unpack(">i", response[22:26])[0])

    def push(
        self,
        to: Subscription,
        payload: bytes,
        *,
        compression: int = _NONE,
        terminating: bool = False,
        off_by: int = 0,
    ) -> int:
        """The error code that the broker answers; `off_by` makes the subscription id wrong."""
        body = to.instance.bytes + struct.pack(">i", to.subscription_id ^ off_by)
        body += struct.pack(">?b", terminating, compression) + _varint(len(payload) + 1) + payload
        response = self.call(_PUSH_TELEMETRY, 0, body, is_flexible=True)
        error: int = struct.unpack(">h", response[4:6])[0]
        return error


def _varint(number: int) -> bytes:
    data = b""
    while number > _LOW_BITS:
        data += bytes([number & _LOW_BITS | _GOES_ON])
        number >>= 7
    return data + bytes([number])


def _payload(value: float = 1.0) -> bytes:
    made = MetricsData()
    metric = made.resource_metrics.add().scope_metrics.add().metrics.add()
    metric.name = METRIC
    metric.gauge.data_points.add().as_double = value
    return made.SerializeToString()


def _too_early(client: RawPusher, to: Subscription) -> int:
    client.push(to, _payload())
    return client.push(to, _payload(2.0))


def _after_its_end(client: RawPusher, to: Subscription) -> int:
    client.push(to, _payload(), terminating=True)
    return client.push(to, _payload(2.0))


def _compressed(client: RawPusher, to: Subscription) -> int:
    packed = pa.compress(_payload(), codec="zstd", asbytes=True)
    return client.push(to, packed, compression=_ZSTD)


@dataclass(frozen=True, slots=True)
class Wrong:
    """A push as no library makes it: what the broker answers, and whether it can be decoded."""

    push: Callable[[RawPusher, Subscription], int]
    error_code: int
    is_readable: bool = True


PUSHES = {
    "raw-good": Wrong(_compressed, 0),
    "raw-too-early": Wrong(_too_early, 89),
    "raw-after-its-end": Wrong(_after_its_end, 42),
    "raw-other-subscription": Wrong(lambda c, to: c.push(to, _payload(), off_by=1), 117),
    "raw-too-large": Wrong(lambda c, to: c.push(to, bytes(_OVER_MAX_BYTES)), 118, False),
    "raw-no-zstd": Wrong(lambda c, to: c.push(to, b"no zstd", compression=_ZSTD), 87, False),
    "raw-unknown-codec": Wrong(
        lambda c, to: c.push(to, _payload(), compression=_NO_CODEC), 76, False
    ),
}
"""Client id -> its push."""


def push_all(cluster: LocalCluster) -> dict[str, int]:
    """Every push of PUSHES, each by a client of its own; the error codes by client id."""
    answered = {}
    for client_id, wrong in PUSHES.items():
        with RawPusher(cluster, USER, client_id) as client:
            answered[client_id] = wrong.push(client, client.subscribe())
    return answered
