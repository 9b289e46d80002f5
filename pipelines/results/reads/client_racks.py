"""Inferred racks of clients that declare none: `udfs/rules/client_rack.py` in SQL."""

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.udfs.rules.client_rack import ranges

_IPV4 = r"^\d{1,3}(\.\d{1,3}){3}$"


def inferred_rack(address: Column, racks: Mapping[str, str]) -> Column:
    """The rack of the narrowest network that holds an address as brokers print it, else null."""
    digits, rack = _digits(address), F.lit(None).cast("string")
    for network in reversed(list(ranges(racks))):
        is_in = digits.between(network.first, network.last)
        is_alike = F.length(digits) == len(network.first)
        rack = F.when(is_alike & is_in, network.rack).otherwise(rack)
    return rack


def _digits(address: Column) -> Column:
    """Java prints all eight groups of an IPv6 address, without leading zeros, and its zone."""
    bytes_of = F.split(address, r"\.")
    groups_of = F.split(F.substring_index(address, "%", 1), ":")
    padded = F.transform(bytes_of, lambda n: F.lpad(F.hex(n.cast("int")), 2, "0"))
    return F.lower(
        F.when(address.rlike(_IPV4), F.concat_ws("", padded)).otherwise(
            F.concat_ws("", F.transform(groups_of, lambda n: F.lpad(n, 4, "0")))
        )
    )
