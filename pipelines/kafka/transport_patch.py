"""What a broker says before it hangs up, which kafka-python drops when it reads both at once.

A broker answers a refused login and closes the connection. On a busy machine a client finds answer
and end together, and kafka-python (3.0) throws the answer away: a wrong password was a cluster that
does not answer.
"""

from collections.abc import Callable
from functools import wraps

from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport

Received = tuple[bytes, Exception | None]


def patch() -> None:
    """Have connections hand over what they received before they tell of the end."""
    for transport in (KafkaTCPTransport, KafkaSSLTransport):
        if not hasattr(transport._sock_recv, "__wrapped__"):
            transport._sock_recv = _data_first(transport._sock_recv)


def _data_first(receive: Callable[[object], Received]) -> Callable[[object], Received]:
    @wraps(receive)
    def received(transport: object) -> Received:
        data, error = receive(transport)
        # A socket that is at its end says so again at the next look.
        return (data, None) if data else (data, error)

    return received
