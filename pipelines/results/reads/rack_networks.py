"""Conf's map from networks to racks, as a relation that rules read as `racks`."""

from collections.abc import Mapping

import pyarrow as pa

from quotaflow.schemas.table import INT, STRING
from quotaflow.udfs.rules.client_rack import ranges

_SCHEMA = pa.schema(
    [
        pa.field("first", STRING),
        pa.field("last", STRING),
        pa.field("length", INT),
        pa.field("rack", STRING),
        pa.field("place", INT),
    ]
)


def rack_networks(racks: Mapping[str, str]) -> pa.Table:
    """A row per network: its first and last address as hex digits, how many, and its rack.

    Of the networks that contain an address the one with the least `place` is the narrowest.
    """
    rows = [
        {
            "first": network.first,
            "last": network.last,
            "length": len(network.first),
            "rack": network.rack,
            "place": place,
        }
        for place, network in enumerate(ranges(racks))
    ]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)
