"""A connection that speaks Kafka's protocol by hand: it can do what no client library does.

It also connects from a chosen address: one machine can play a fleet on many hosts, because it has
all of 127.0.0.0/8.
"""

import socket
import struct
import time
from collections.abc import Mapping
from typing import Self

from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines.errors import KafkaError

_SASL_HANDSHAKE, _SASL_AUTHENTICATE = 17, 36
_LOGIN_VERSION = 1
_TIMEOUT_S = 30.0
_NO_TAGS = b"\0"


class RawConnection:
    """One login with SASL PLAIN at one broker. Raises KafkaError where the broker refuses it."""

    def __init__(
        self, cluster: LocalCluster, user: str, client_id: str, broker: int = 0, host: str = ""
    ) -> None:
        """Connect to the `broker`-th bootstrap server, from the address `host` if it is given."""
        address, port = cluster.bootstrap_servers.split(",")[broker].rsplit(":", 1)
        source = (host, 0) if host else None
        self._socket = socket.create_connection((address, int(port)), _TIMEOUT_S, source)
        self.client_id = client_id
        self._correlation_id = 0
        try:
            self._log_in(cluster.librdkafka_properties(user))
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._socket.close()

    def call(self, api: int, version: int, body: bytes, *, is_flexible: bool = False) -> bytes:
        """The body of the answer. `is_flexible`: the version has tagged fields (KIP-482)."""
        self._correlation_id += 1
        header = struct.pack(">hhi", api, version, self._correlation_id) + string(self.client_id)
        message = header + (_NO_TAGS + body + _NO_TAGS if is_flexible else body)
        self._socket.sendall(struct.pack(">i", len(message)) + message)
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)[5 if is_flexible else 4 :]

    def _log_in(self, login: Mapping[str, str]) -> None:
        user = login["sasl.username"]
        self.call(_SASL_HANDSHAKE, _LOGIN_VERSION, string("PLAIN"))
        token = f"\0{user}\0{login['sasl.password']}".encode()
        sized = struct.pack(">i", len(token)) + token
        if self.call(_SASL_AUTHENTICATE, _LOGIN_VERSION, sized)[:2] != b"\0\0":
            raise KafkaError(f"{self.client_id}: {user} could not log in")

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise KafkaError(f"{self.client_id}: the broker closed the connection")
            data += more
        return data


def string(text: str | None) -> bytes:
    """A nullable string as versions without tagged fields have it."""
    if text is None:
        return struct.pack(">h", -1)
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded


_INIT_PRODUCER_ID, _VERSION = 22, 1
_RETRY_S = 0.1
_TRANSACTION_TIMEOUT_MS = 60_000
_NOT_COORDINATOR = 16
# Coordinator loading, not available; a transaction of the id is being ended.
_TRY_AGAIN = frozenset({14, 15, 51})


class RawProducer(RawConnection):
    """One login with SASL PLAIN at one broker; `init` can be called again and again."""

    def init(self, transactional_id: str | None = None) -> int | None:
        """The new producer id; None if another broker coordinates the transactional id."""
        deadline_s = time.monotonic() + _TIMEOUT_S
        body = string(transactional_id) + struct.pack(">i", _TRANSACTION_TIMEOUT_MS)
        while True:
            response = self.call(_INIT_PRODUCER_ID, _VERSION, body)
            _throttle_ms, error, producer_id = struct.unpack(">ihq", response[:14])
            if error == 0:
                return int(producer_id)
            if error == _NOT_COORDINATOR:
                return None
            if error not in _TRY_AGAIN or time.monotonic() > deadline_s:
                raise KafkaError(f"{self.client_id}: no producer id, error {error}")
            time.sleep(_RETRY_S)
