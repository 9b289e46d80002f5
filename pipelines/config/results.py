"""Sections of conf that results use: lateness, prices of traffic, racks of networks."""

from ipaddress import ip_network
from typing import Annotated

from pydantic import AfterValidator, Field

from quotaflow.pipelines.config.base import Positive, Section, matches

Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class PricesSection(Section):
    """What a GiB costs: produced, consumed, and on top of that between racks."""

    currency: Annotated[str, matches("[A-Z]{3}", "write three letters, such as EUR")] = "USD"
    produced_per_gib: Price = 0.0
    consumed_per_gib: Price = 0.0
    cross_rack_per_gib: Price = 0.0


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


class ResultsSection(Section):
    """How long facts may be late and still correct a result, and when a plan may trust one."""

    max_lateness_s: Positive = 3_600
    settle_s: Positive = 30
    max_bytes_per_trigger: Positive = 512 * 1024 * 1024
