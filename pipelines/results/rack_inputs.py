"""What conf says of clients' racks, as the relations `racks` and `rack_patterns` of rules.

The macro inferred_racks (pipelines/results/shared/macros.sql) reads them.
"""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from quotaflow.schemas.table import INT, STRING
from quotaflow.udfs.rules.client_rack import ranges

_NETWORKS = pa.schema(
    [
        pa.field("first", STRING),
        pa.field("last", STRING),
        pa.field("length", INT),
        pa.field("rack", STRING),
        pa.field("place", INT),
    ]
)
_PATTERNS = pa.schema([pa.field("pattern", STRING), pa.field("place", INT)])


def networks(racks: Mapping[str, str]) -> pa.Table:
    """A row per network: its first and last address as hex digits, how many, and its rack.

    Of those that contain an address, the one with the least `place` counts: the narrowest one.
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
    return pa.Table.from_pylist(rows, schema=_NETWORKS)


def patterns(rack_patterns: Sequence[str]) -> pa.Table:
    """A row per pattern of client ids; of those that match, the one with the least `place` counts.

    That is the first one.
    """
    rows = [{"pattern": each, "place": place} for place, each in enumerate(rack_patterns)]
    return pa.Table.from_pylist(rows, schema=_PATTERNS)
