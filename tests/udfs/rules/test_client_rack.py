"""Racks by networks: the narrowest that holds the address."""

from ipaddress import ip_address, ip_network

from hypothesis import given
from hypothesis import strategies as st

from quotaflow.udfs.rules.client_rack import rack

from ...cases import cases

RACKS = {
    "10.0.0.0/8": "az-a",
    "10.1.0.0/16": "az-b",
    "10.1.2.3/32": "az-c",
    "2001:db8::/32": "az-b",
}


@cases(
    ("address", "expected"),
    ("the first of a network", "10.0.0.0", "az-a"),
    ("the last of it", "10.255.255.255", "az-a"),
    ("the next", "11.0.0.0", None),
    ("the narrower network", "10.1.2.4", "az-b"),
    ("a host", "10.1.2.3", "az-c"),
    ("as Java prints, with its zone", "2001:db8:0:0:0:0:0:7%eth0", "az-b"),
    ("no IPv4 address though as many digits", "0:0:0:0:0:0:a00:1", None),
)
def test_the_rack_of_an_address(address: str, expected: str | None) -> None:
    assert rack(address, RACKS) == expected


@given(st.integers(0, 2**32 - 1))
def test_an_address_is_where_its_narrowest_network_is(number: int) -> None:
    address = ip_address(number)
    holding = [network for network in map(ip_network, RACKS) if address in network]
    narrowest = max(holding, key=lambda network: network.prefixlen, default=None)
    assert rack(str(address), RACKS) == (RACKS[str(narrowest)] if narrowest else None)
