"""`replica_offsets`: offsets of each replica by minute, from fetches and their answers."""

from quotaflow.pipelines.engine import texts
from quotaflow.pipelines.incremental.result import LookupTable, Result, Unnamed
from quotaflow.schemas.tables.fetches import FETCHES
from quotaflow.schemas.tables.read_faults import REPLICA_OFFSETS
from quotaflow.schemas.tables.topology import TOPICS
from quotaflow.schemas.tables.traffic import TOPIC_NAMES


def result() -> Result:
    """The declaration of the result."""
    return Result(
        table=REPLICA_OFFSETS,
        rule=texts.rule(REPLICA_OFFSETS, "reads/replica_offsets.sql"),
        facts=FETCHES,
        bucket_s=60,
        lookback_s=0,
        lookups=(
            LookupTable(TOPIC_NAMES, valid_from=None),
            LookupTable(TOPICS, reaches_back=True),
        ),
        unnamed=(Unnamed(REPLICA_OFFSETS),),
    )
