"""What the cluster says of itself just before a write: addresses of brokers, default quotas."""

import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from quotaflow.schemas.configs import CLIENT_ID, IP, USER
from quotaflow.udfs.rules.address import normalized

if TYPE_CHECKING:
    # Commands that only read would import Kafka's client with it.
    from quotaflow.pipelines.kafka.cluster_state import ClusterState

Resolve = Callable[[str], Iterable[str]]
_DEFAULTS = {
    # With a quota of its own a user leaves the defaults of all levels below it (KIP-55).
    frozenset({(USER, None)}): USER,
    frozenset({(USER, None), (CLIENT_ID, None)}): USER,
    frozenset({(CLIENT_ID, None)}): USER,
    frozenset({(IP, None)}): IP,
}


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What the cluster says of itself just before a write.

    `broker_addresses` are those of its advertised hosts. `default_quotas`: type of entity and key
    -> the least default that binds each entity of the type which has no quota of its own.
    """

    broker_addresses: frozenset[str] = frozenset()
    default_quotas: Mapping[tuple[str, str], float] = field(default_factory=dict)


NO_FACTS = ClusterFacts()
"""For a plan, which asks no cluster: apply does, before it writes."""


def resolved(host: str) -> Iterable[str]:
    """The addresses of a host; none if its name does not resolve."""
    with suppress(OSError, UnicodeError):
        return {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
    return ()


def read(state: "ClusterState", resolve: Resolve = resolved) -> ClusterFacts:
    """Ask the cluster now. Raises UnansweredError.

    The addresses are those of the listener that we use, as far as its hosts resolve here.
    """
    hosts = {str(broker["host"]) for broker in state.brokers()}
    addresses = (normalized(text) for host in hosts for text in resolve(host))
    return ClusterFacts(
        frozenset(address for address in addresses if address), _defaults(state.client_quotas())
    )


def _defaults(entries: Iterable[Any]) -> dict[tuple[str, str], float]:
    least: dict[tuple[str, str], float] = {}
    for entry in entries:
        parts = frozenset((part.entity_type, part.entity_name) for part in entry.entity)
        entity_type = _DEFAULTS.get(parts)
        if entity_type is None:
            continue
        for value in entry.values:
            key = (entity_type, value.key)
            least[key] = min(float(value.value), least.get(key, float(value.value)))
    return least
