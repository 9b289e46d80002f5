"""What a broker said is heard though it hung up at once."""

import socket

import pytest
from kafka.net import transport as transports
from kafka.net.transport import KafkaTCPTransport

from quotaflow.pipelines.kafka import transport_patch


def test_what_came_with_the_end_is_handed_over_before_it() -> None:
    transport_patch.patch()
    ours, broker = socket.socketpair()
    with ours, broker:
        ours.setblocking(False)
        transport = KafkaTCPTransport(None, ours)
        broker.sendall(b"refused")
        broker.close()
        assert transport._sock_recv() == (b"refused", None)
        nothing, error = transport._sock_recv()
        assert (nothing, str(error)) == (b"", "KafkaConnectionError: socket disconnected")


@pytest.mark.parametrize("name", ["_sock_recv", "KafkaTCPTransport"])
def test_a_release_without_the_private_name_is_left_as_it_is(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(KafkaTCPTransport if name.startswith("_") else transports, name)
    transport_patch.patch()
