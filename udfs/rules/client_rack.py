"""The rack of a client that declares none, by the network of its address."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address, ip_network

from quotaflow.udfs.rules.address import bounds


@dataclass(frozen=True, slots=True)
class Range:
    """Addresses of a network, from first to last as hex digits, and the rack they are in."""

    first: str
    last: str
    rack: str


def ranges(racks: Mapping[str, str]) -> Iterator[Range]:
    """The networks of a map from CIDR to rack, the narrowest first."""
    networks = [(ip_network(cidr), rack) for cidr, rack in racks.items()]
    for network, rack in sorted(networks, key=lambda pair: -pair[0].prefixlen):
        yield Range(*bounds(str(network)), rack)


def rack(address: str, racks: Mapping[str, str]) -> str | None:
    """The rack of the narrowest network that contains an address; None if none does."""
    digits = ip_address(address.partition("%")[0]).packed.hex()
    for network in ranges(racks):
        if len(network.first) == len(digits) and network.first <= digits <= network.last:
            return network.rack
    return None
