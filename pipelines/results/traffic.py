"""`traffic`: bytes produced and consumed per principal, client, topic and minute, from requests."""

from quotaflow.pipelines.engine import texts
from quotaflow.pipelines.incremental.result import Result
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.schemas.tables.traffic import TRAFFIC


def result() -> Result:
    """The declaration of the result. Followers' fetches are no client's, so they do not count."""
    return Result(
        table=TRAFFIC,
        rule=texts.rule(TRAFFIC, "traffic.sql"),
        facts=REQUESTS,
        relevant="api IN ('PRODUCE', 'FETCH') AND replica_id IS NULL",
        bucket_s=60,
        lookback_s=0,
    )
