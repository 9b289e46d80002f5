"""Addresses of clients: one text for each. Names of hosts are none."""

from ipaddress import IPv6Address, ip_address


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
