"""Ports on the loopback address that nobody listens on."""

import random
import socket
from contextlib import ExitStack
from dataclasses import dataclass

LOOPBACK = "127.0.0.1"
_FIRST, _END = 20_000, 32_000
"""Below the ranges Linux and macOS lend to outgoing connections: a stopped broker's ports
cannot be taken by somebody's client before it is started again."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Where one node listens: clients, other brokers, controllers, JMX."""

    client: int
    internal: int
    controller: int
    jmx: int


def free_ports(nodes: int, choice: random.Random) -> list[Ports]:
    """Four free ports per node, all held at once while they are chosen."""
    with ExitStack() as held:
        found: list[int] = []
        while len(found) < 4 * nodes:
            probe = held.enter_context(socket.socket())
            try:
                probe.bind((LOOPBACK, choice.randrange(_FIRST, _END)))
            except OSError:
                continue
            found.append(probe.getsockname()[1])
    return [Ports(*found[i : i + 4]) for i in range(0, len(found), 4)]
