"""`quota_usage`: clients' usage of their quotas at each broker, and their limits (KIP-13)."""

from quotaflow.pipelines.config import QuotasSection
from quotaflow.pipelines.engine import texts
from quotaflow.pipelines.incremental.result import LookupTable, Result
from quotaflow.pipelines.results.quotas.quota_limits import VALID_FROM, quota_levels
from quotaflow.schemas.tables.quotas import QUOTA_USAGE
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.schemas.tables.snapshots import CLIENT_QUOTAS, CONFIGS
from quotaflow.schemas.tables.topology import BROKERS, TOPICS
from quotaflow.udfs.rules.quota import CLUSTER_AUTHORIZATION_FAILED, EXEMPT_APIS


def result(conf: QuotasSection) -> Result:
    """The declaration of the result.

    Fetches of followers count against no client quota, nor do requests of EXEMPT_APIS.
    """
    return Result(
        table=QUOTA_USAGE,
        rule=texts.rule(
            QUOTA_USAGE,
            "quotas/quota_usage.sql",
            parameters={
                "rate_period_s": conf.rate_period_s,
                "window_ms": conf.window_ms,
                "exempt_apis": list(EXEMPT_APIS),
                "refused": CLUSTER_AUTHORIZATION_FAILED,
            },
            rows={"quota_levels": quota_levels()},
        ),
        facts=REQUESTS,
        relevant="principal IS NOT NULL AND replica_id IS NULL",
        bucket_s=conf.rate_period_s,
        lookback_s=conf.rate_period_s,
        lookups=(
            LookupTable(CLIENT_QUOTAS, VALID_FROM),
            LookupTable(CONFIGS),
            LookupTable(BROKERS),
            LookupTable(TOPICS),
        ),
        rolls_up=True,
    )
