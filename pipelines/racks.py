"""Where clients are that tell no rack: a section of conf."""

from ipaddress import ip_network
from typing import Annotated

from pydantic import AfterValidator, Field


def _by_network(racks: dict[str, str]) -> dict[str, str]:
    found = dict[str, str]()
    for cidr, rack in racks.items():
        try:
            network = str(ip_network(cidr, strict=False))
        except ValueError:
            raise ValueError(f"{cidr!r} is no network such as 10.1.0.0/16") from None
        if "/" in cidr and network != cidr.lower():
            raise ValueError(f"write {network} instead of {cidr}")
        if network in found:
            raise ValueError(f"{network} is there twice")
        found[network] = rack
    return found


Racks = Annotated[dict[str, Annotated[str, Field(min_length=1)]], AfterValidator(_by_network)]
"""Rack by network (CIDR): of the networks that hold a client's address the narrowest counts."""
