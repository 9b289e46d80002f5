"""`replication_traffic`: bytes that followers read and clients produced, from requests."""

from quotaflow.pipelines.engine import texts
from quotaflow.pipelines.incremental.result import Result
from quotaflow.pipelines.results.replication import replication_inputs
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.schemas.tables.throttles import REPLICATION_TRAFFIC


def result() -> Result:
    """The declaration of the result."""
    return Result(
        table=REPLICATION_TRAFFIC,
        rule=texts.rule(REPLICATION_TRAFFIC, "replication/replication_traffic.sql"),
        facts=REQUESTS,
        relevant=replication_inputs.RELEVANT,
        bucket_s=replication_inputs.BUCKET_S,
        lookback_s=0,
        runs_forward=True,
        lookups=replication_inputs.LOOKUPS,
        unnamed=replication_inputs.UNNAMED,
    )
