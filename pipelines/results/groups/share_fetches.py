"""`share_fetches`: what members of share groups acquire and acknowledge (KIP-932)."""

from quotaflow.pipelines.config import QuotasSection
from quotaflow.pipelines.engine import texts
from quotaflow.pipelines.incremental.result import LookupTable, Result, Unnamed
from quotaflow.pipelines.results import named_topics
from quotaflow.pipelines.results.quotas.quota_limits import VALID_FROM, quota_levels
from quotaflow.schemas.events import NO_TOPIC_ID
from quotaflow.schemas.tables.groups import SHARE_FETCHES
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.schemas.tables.snapshots import CLIENT_QUOTAS

LOOKBACK_S = 600
"""How far back a delivery is looked for that a redelivery follows."""


def result(conf: QuotasSection) -> Result:
    """The declaration of the result."""
    return Result(
        table=SHARE_FETCHES,
        rule=texts.rule(
            SHARE_FETCHES,
            "groups/share_fetches.sql",
            parameters={
                "no_topic_id": NO_TOPIC_ID,
                "lookback_s": LOOKBACK_S,
                "refill_s": conf.refill_s,
            },
            rows={"quota_levels": quota_levels()},
        ),
        facts=REQUESTS,
        relevant="group_id IS NOT NULL AND api IN ('SHARE_FETCH', 'SHARE_ACKNOWLEDGE')",
        bucket_s=60,
        lookback_s=LOOKBACK_S,
        lookups=(LookupTable(CLIENT_QUOTAS, VALID_FROM), *named_topics.LOOKUPS),
        unnamed=(Unnamed(SHARE_FETCHES),),
    )
