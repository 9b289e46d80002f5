"""A client that speaks KIP-714 by hand, so that it can do what no library does."""

import socket
import struct
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from uuid import UUID

import pyarrow as pa
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from quotaflow.demo.cluster import LocalCluster

_GET_TELEMETRY_SUBSCRIPTIONS, _PUSH_TELEMETRY = 71, 72
_SASL_HANDSHAKE, _SASL_AUTHENTICATE = 17, 36
_NO_TAGS = b"\0"
NONE, ZSTD = 0, 4
METRIC = "org.apache.kafka.raw.test"


@dataclass(frozen=True)
class Subscription:
    instance: UUID
    subscription_id: int


class RawClient:
    """One connection to the first bootstrap server, logged in as alice."""

    def __init__(self, cluster: LocalCluster, client_id: str) -> None:
        host, port = cluster.bootstrap_servers.split(",")[0].rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), timeout=30)
        self._client_id = client_id
        self._correlation_id = 0
        login = cluster.librdkafka_properties("alice")
        self._call(_SASL_HANDSHAKE, 1, _string("PLAIN"), is_flexible=False)
        token = f"\0{login['sasl.username']}\0{login['sasl.password']}".encode()
        body = struct.pack(">i", len(token)) + token
        self._call(_SASL_AUTHENTICATE, 1, body, is_flexible=False)

    def close(self) -> None:
        self._socket.close()

    def subscribe(self) -> Subscription:
        """A new client instance and its subscription."""
        response = self._call(_GET_TELEMETRY_SUBSCRIPTIONS, 0, bytes(16) + _NO_TAGS)
        _throttle_ms, error = struct.unpack(">ih", response[:6])
        assert error == 0
        return Subscription(UUID(bytes=response[6:22]), struct.unpack(">i", response[22:26])[0])

    def push(
        self,
        to: Subscription,
        payload: bytes,
        *,
        compression: int = NONE,
        terminating: bool = False,
        off_by: int = 0,
    ) -> int:
        """The error code the broker answers."""
        body = to.instance.bytes + struct.pack(">i", to.subscription_id ^ off_by)
        body += struct.pack(">?b", terminating, compression) + _varint(len(payload) + 1) + payload
        response = self._call(_PUSH_TELEMETRY, 0, body + _NO_TAGS)
        error: int = struct.unpack(">h", response[4:6])[0]
        return error

    def _call(self, api: int, version: int, body: bytes, *, is_flexible: bool = True) -> bytes:
        self._correlation_id += 1
        header = struct.pack(">hhi", api, version, self._correlation_id) + _string(self._client_id)
        message = header + (_NO_TAGS if is_flexible else b"") + body
        self._socket.sendall(struct.pack(">i", len(message)) + message)
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)[5 if is_flexible else 4 :]

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            assert more, "the broker closed the connection"
            data += more
        return data


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _varint(number: int) -> bytes:
    data = b""
    while number > 0x7F:
        data += bytes([number & 0x7F | 0x80])
        number >>= 7
    return data + bytes([number])


def _payload(value: float = 1.0) -> bytes:
    made = MetricsData()
    metric = made.resource_metrics.add().scope_metrics.add().metrics.add()
    metric.name = METRIC
    metric.gauge.data_points.add().as_double = value
    return made.SerializeToString()


def _too_early(client: RawClient, to: Subscription) -> int:
    assert client.push(to, _payload()) == 0
    return client.push(to, _payload(2.0))


def _after_its_end(client: RawClient, to: Subscription) -> int:
    assert client.push(to, _payload(), terminating=True) == 0
    return client.push(to, _payload(2.0))


def _compressed(client: RawClient, to: Subscription) -> int:
    packed = pa.compress(_payload(), codec="zstd", asbytes=True)
    return client.push(to, packed, compression=ZSTD)


@dataclass(frozen=True)
class Wrong:
    """A push as no library makes it: what the broker answers, and whether it can be decoded."""

    push: Callable[[RawClient, Subscription], int]
    error_code: int
    is_readable: bool = True


PUSHES = {
    "raw-good": Wrong(_compressed, 0),
    "raw-too-early": Wrong(_too_early, 89),
    "raw-after-its-end": Wrong(_after_its_end, 42),
    "raw-other-subscription": Wrong(lambda c, to: c.push(to, _payload(), off_by=1), 117),
    "raw-too-large": Wrong(lambda c, to: c.push(to, bytes(1_100_000)), 118, is_readable=False),
    "raw-no-zstd": Wrong(
        lambda c, to: c.push(to, b"no zstd", compression=ZSTD), 87, is_readable=False
    ),
    "raw-unknown-codec": Wrong(
        lambda c, to: c.push(to, _payload(), compression=9), 76, is_readable=False
    ),
}


def push_all(cluster: LocalCluster) -> dict[str, int]:
    """Every push of PUSHES, each by a client of its own; the error codes by client id."""
    answered = {}
    for client_id, wrong in PUSHES.items():
        with closing(RawClient(cluster, client_id)) as client:
            answered[client_id] = wrong.push(client, client.subscribe())
    return answered
