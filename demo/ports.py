"""Ports on the loopback address that nobody listens on."""

import random
import socket
from contextlib import ExitStack
from dataclasses import dataclass

LOOPBACK = "127.0.0.1"
_FIRST, _END = 20_000, 32_000
"""Below the ranges that Linux and macOS use for outgoing connections, so no client can take the
ports of a stopped broker before it starts again."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Where one node listens: clients, other brokers, controllers, JMX."""

    client: int
    internal: int
    controller: int
    jmx: int


def free_ports(nodes: int, choice: random.Random) -> list[Ports]:
    """Four free ports per node, all bound at once while they are chosen."""
    with ExitStack() as sockets:
        ports: list[int] = []
        while len(ports) < 4 * nodes:
            probe = sockets.enter_context(socket.socket())
            try:
                probe.bind((LOOPBACK, choice.randrange(_FIRST, _END)))
            except OSError:
                continue
            ports.append(probe.getsockname()[1])
    return [Ports(*ports[i : i + 4]) for i in range(0, len(ports), 4)]
