"""Addresses of clients: one text for each, and networks of them. Names of hosts are none."""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

LOOPBACK = "loopback"
_BROADCAST = IPv4Address("255.255.255.255")


def normalized(text: str) -> str | None:
    """The usual text of an IPv4 or IPv6 address; None for any other text, as of a host.

    Brokers log IPv6 without abbreviation (2001:db8:0:0:0:0:0:1), and keep quotas of addresses by
    their text. An IPv4 address in IPv6 is the IPv4 address, as in Java. An address with a zone is
    one only within its own machine.
    """
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return None
        return str(address.ipv4_mapped or address)
    return str(address)


def texts(text: str) -> tuple[str, ...]:
    """An address as users write it and as brokers log it; nothing for any other text."""
    usual = normalized(text)
    if usual is None:
        return ()
    if ":" not in usual:
        return (usual,)
    groups = IPv6Address(usual).exploded.split(":")
    return (usual, ":".join(f"{int(group, 16):x}" for group in groups))


def network(text: str) -> str:
    """A network as CIDR, of its text or of one address. Raises ValueError for any other text."""
    try:
        usual = str(ip_network(text, strict=False))
    except ValueError:
        raise ValueError(f"{text!r} is no network such as 10.1.0.0/16") from None
    if "/" in text and usual != text.lower():
        raise ValueError(f"write {usual} instead of {text}")
    return usual


def bounds(of_network: str) -> tuple[str, str]:
    """The first and the last address of a network as hex digits: 8 of IPv4, 32 of IPv6.

    Texts of one length compare as addresses do.
    """
    addresses = ip_network(of_network)
    return addresses.network_address.packed.hex(), addresses.broadcast_address.packed.hex()


def is_within(address: str | None, networks: Iterable[str]) -> bool:
    """Whether an address is in one of the networks; False for a text that is no address."""
    usual = normalized(address or "")
    return usual is not None and any(ip_address(usual) in ip_network(each) for each in networks)


def special_kind(text: str) -> str | None:
    """The kind of an address that no one client has, such as multicast; None for other texts."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    kinds = {
        "unspecified": address.is_unspecified,
        "multicast": address.is_multicast,
        "broadcast": address == _BROADCAST,
        "link-local": address.is_link_local,
        LOOPBACK: address.is_loopback,
    }
    return next((kind for kind, is_of_kind in kinds.items() if is_of_kind), None)
