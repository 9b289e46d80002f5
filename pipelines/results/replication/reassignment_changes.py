"""`reassignment_changes`: requested replicas and in-sync replicas, from requests' bodies."""

from quotaflow.pipelines.engine import texts
from quotaflow.pipelines.incremental.result import Result, Unnamed
from quotaflow.pipelines.results import named_topics
from quotaflow.schemas.tables.reassignments import REASSIGNMENT_CHANGES
from quotaflow.schemas.tables.requests import REQUESTS


def result() -> Result:
    """The declaration of the result."""
    return Result(
        table=REASSIGNMENT_CHANGES,
        rule=texts.rule(REASSIGNMENT_CHANGES, "replication/reassignment_changes.sql"),
        facts=REQUESTS,
        relevant="api IN ('ALTER_PARTITION', 'ALTER_PARTITION_REASSIGNMENTS')",
        bucket_s=60,
        lookback_s=0,
        lookups=named_topics.LOOKUPS,
        unnamed=(Unnamed(REASSIGNMENT_CHANGES),),
    )
