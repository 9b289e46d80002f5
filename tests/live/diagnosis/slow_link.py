"""A network between a client and a broker that is slow: a proxy that delays, or passes little."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread

from quotaflow.demo.cluster import LocalCluster

CHUNK_BYTES = 16 << 10


@dataclass(frozen=True)
class Link:
    """A cluster as a client sees it behind the link."""

    cluster: LocalCluster
    bootstrap_servers: str

    def librdkafka_properties(self, user: str) -> dict[str, str]:
        """The cluster's own logins."""
        return self.cluster.librdkafka_properties(user)


@contextmanager
def link(
    cluster: LocalCluster, server: str, *, delay_s: float = 0.0, bytes_per_s: float = 0.0
) -> Iterator[Link]:
    """One connection to this broker, whose answers are late, or come at this rate."""
    address, port = server.rsplit(":", 1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = listener.getsockname()[1]

        def serve() -> None:
            client, _ = listener.accept()
            with client, socket.socket() as broker:
                # Else the kernel takes a whole answer at once.
                client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, CHUNK_BYTES)
                broker.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, CHUNK_BYTES)
                broker.connect((address, int(port)))
                Thread(target=_pump, args=(client, broker), daemon=True).start()
                _pump(broker, client, delay_s, bytes_per_s)

        Thread(target=serve, daemon=True).start()
        yield Link(cluster, f"127.0.0.1:{near}")


def _pump(
    source: socket.socket, sink: socket.socket, delay_s: float = 0.0, bytes_per_s: float = 0.0
) -> None:
    try:
        while data := source.recv(CHUNK_BYTES):
            time.sleep(delay_s + (len(data) / bytes_per_s if bytes_per_s else 0.0))
            sink.sendall(data)
    except OSError:
        return
