"""Keeps a broker's last answer, which kafka-python drops when the connection closes with it.

A broker answers a refused login and closes the connection. On a busy machine a client reads the
answer and the end together, and kafka-python (3.0) drops the answer: a wrong password then looks
like a cluster that does not answer.
"""

from collections.abc import Callable
from functools import wraps

from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport

Received = tuple[bytes, Exception | None]


def patch() -> None:
    """Let connections return the bytes they received before they report the end."""
    for transport in (KafkaTCPTransport, KafkaSSLTransport):
        if not hasattr(transport._sock_recv, "__wrapped__"):
            transport._sock_recv = _data_first(transport._sock_recv)


def _data_first(receive: Callable[[object], Received]) -> Callable[[object], Received]:
    @wraps(receive)
    def received(transport: object) -> Received:
        data, error = receive(transport)
        # A closed socket reports its end again at the next read.
        return (data, None) if data else (data, error)

    return received
