"""`offset_lookups`: requests of clients for offsets, from the bodies of requests."""

from quotaflow.pipelines.engine import texts
from quotaflow.pipelines.incremental.result import Result
from quotaflow.schemas.tables.read_faults import OFFSET_LOOKUPS
from quotaflow.schemas.tables.requests import REQUESTS


def result() -> Result:
    """The declaration of the result."""
    return Result(
        table=OFFSET_LOOKUPS,
        rule=texts.rule(OFFSET_LOOKUPS, "reads/offset_lookups.sql"),
        facts=REQUESTS,
        relevant="api IN ('LIST_OFFSETS', 'OFFSET_FOR_LEADER_EPOCH')",
        bucket_s=60,
        lookback_s=0,
    )
