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


def racks_of_conf(
    racks: Mapping[str, str], rack_patterns: Sequence[str] = ()
) -> dict[str, pa.Table]:
    """A row per network, and one per pattern of client ids.

    A network has its first and last address as hex digits, how many, and its rack. Of the networks
    that contain an address, and of the patterns that match a client id, the one with the least
    `place` counts: the narrowest network, the first pattern.
    """
    networks = [
        {
            "first": network.first,
            "last": network.last,
            "length": len(network.first),
            "rack": network.rack,
            "place": place,
        }
        for place, network in enumerate(ranges(racks))
    ]
    patterns = [{"pattern": each, "place": place} for place, each in enumerate(rack_patterns)]
    return {
        "racks": pa.Table.from_pylist(networks, schema=_NETWORKS),
        "rack_patterns": pa.Table.from_pylist(patterns, schema=_PATTERNS),
    }
