"""`fetch_sizes`: sizes of answers to fetches, and their limiters, from fetches (KIP-74)."""

from quotaflow.pipelines.config import QuotasSection
from quotaflow.pipelines.engine import texts
from quotaflow.pipelines.incremental.result import LookupTable, Result, Unnamed
from quotaflow.pipelines.results import named_topics
from quotaflow.pipelines.results.quotas.quota_limits import VALID_FROM, quota_levels
from quotaflow.schemas.tables.fetch_sizes import FETCH_SIZES
from quotaflow.schemas.tables.fetches import FETCHES
from quotaflow.schemas.tables.snapshots import CLIENT_QUOTAS, CONFIGS


def result(conf: QuotasSection) -> Result:
    """The declaration of the result."""
    return Result(
        table=FETCH_SIZES,
        rule=texts.rule(
            FETCH_SIZES,
            "reads/fetch_sizes.sql",
            parameters={"refill_s": conf.refill_s},
            rows={"quota_levels": quota_levels()},
        ),
        facts=FETCHES,
        bucket_s=60,
        lookback_s=0,
        lookups=(
            LookupTable(CONFIGS, reaches_back=True),
            LookupTable(CLIENT_QUOTAS, VALID_FROM),
            *named_topics.LOOKUPS,
        ),
        unnamed=(
            Unnamed(
                FETCH_SIZES,
                "oversized_batches > 0",
                "[batch.topic_id FOR batch IN largest_oversized IF batch.topic IS NULL]",
            ),
        ),
    )
