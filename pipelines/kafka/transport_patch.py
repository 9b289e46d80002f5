"""Keeps a broker's last answer, which kafka-python drops when the connection closes with it.

A broker answers a refused login and closes the connection. On a busy machine a client reads the
answer and the end together, and kafka-python (3.0) drops the answer: a wrong password then looks
like a cluster that does not answer.
"""

from collections.abc import Callable
from functools import wraps

from kafka.net import transport as transports

Received = tuple[bytes, Exception | None]
_CLASSES, _RECEIVE = ("KafkaTCPTransport", "KafkaSSLTransport"), "_sock_recv"


def patch() -> None:
    """Let connections return the bytes they received before they report the end.

    A release of kafka-python without these private names is left as it is: logins work there too.
    """
    for transport in filter(None, (getattr(transports, name, None) for name in _CLASSES)):
        receive = getattr(transport, _RECEIVE, None)
        if receive is not None and not hasattr(receive, "__wrapped__"):
            setattr(transport, _RECEIVE, _data_first(receive))


def _data_first(receive: Callable[[object], Received]) -> Callable[[object], Received]:
    @wraps(receive)
    def received(transport: object) -> Received:
        data, error = receive(transport)
        # A closed socket reports its end again at the next read.
        return (data, None) if data else (data, error)

    return received
