"""`remote_reads`: reads from remote storage, and how long clients wait for them (KIP-405)."""

from quotaflow.pipelines.engine import texts
from quotaflow.pipelines.incremental.result import LookupTable, Result
from quotaflow.pipelines.results import named_topics
from quotaflow.schemas.tables.fetches import FETCHES
from quotaflow.schemas.tables.group_snapshots import PARTITION_OFFSETS
from quotaflow.schemas.tables.remote_reads import REMOTE_READS
from quotaflow.schemas.tables.snapshots import CONFIGS


def result() -> Result:
    """The declaration of the result.

    Empty answers of the minute before a read count, and what the broker read before those. A
    partition that a snapshot saw has a name by then, so no row lacks one.
    """
    return Result(
        table=REMOTE_READS,
        rule=texts.rule(REMOTE_READS, "reads/remote_reads.sql"),
        facts=FETCHES,
        bucket_s=60,
        lookback_s=120,
        lookups=(
            LookupTable(PARTITION_OFFSETS),
            LookupTable(CONFIGS, reaches_back=True),
            *named_topics.LOOKUPS,
        ),
    )
