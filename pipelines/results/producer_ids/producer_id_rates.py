"""`producer_id_rates`: new producer ids per principal, broker and second (KIP-936).

Windows are aligned: the rate at a second is the sum over `num_windows` aligned windows, the last of
which has that second, divided by the rate period. So a row does not depend on when a run started.
"""

from quotaflow.pipelines.config import ProducerIdsSection
from quotaflow.pipelines.config.results import MAX_IDS_PER_S, MIN_IDS_PER_S
from quotaflow.pipelines.engine import texts
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.incremental.result import Result
from quotaflow.pipelines.results.producer_ids import quotas_of_conf
from quotaflow.schemas.tables.producer_ids import PRODUCER_ID_RATES
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.udfs import producer_ids
from quotaflow.udfs.engine.rule import Rule, Walk

FULL_AGAIN_S = 86_400
"""A bucket without changes for a day counts as full again, so that no row depends on all facts."""


def result(conf: ProducerIdsSection) -> Result:
    """The declaration of the result; raises ConfigError for a quota out of bounds.

    It reads requests that show a producer id of their principal: one that was given out, or one of
    a transaction. ADD_PARTITIONS_TO_TXN in batches (version 4 and later) goes from broker to broker
    and shows none.
    """
    for user, quota in [("everybody else", conf.default_quota_per_s), *conf.quotas.items()]:
        if quota is not None and not MIN_IDS_PER_S <= quota <= MAX_IDS_PER_S:
            raise ConfigError(
                f"the producer-id quota of {user} is {quota} per second, and must be between "
                f"{MIN_IDS_PER_S} and {MAX_IDS_PER_S}"
            )
    remembered_s = 2 * conf.window_ms // 1_000
    return Result(
        table=PRODUCER_ID_RATES,
        rule=_rule(conf),
        facts=REQUESTS,
        relevant="producer_id >= 0 AND coalesce(error_code, 0) = 0 AND principal IS NOT NULL",
        bucket_s=60,
        lookback_s=remembered_s + _rate_period_s(conf),
        carry_s=FULL_AGAIN_S,
        carry_key=producer_ids.KEY,
        warm_up_s=_rate_period_s(conf),
        split_by=producer_ids.KEY,
        scope="kind = 'allocation'",
    )


def _rule(conf: ProducerIdsSection) -> Rule:
    flagged = Walk(
        name="flagged_sightings",
        sql=texts.read("producer_ids/producer_id_sightings.sql"),
        schema=producer_ids.FLAGGED,
        function=producer_ids.flag_new_ids(
            conf.filter_items, conf.filter_false_positive_rate, conf.window_ms
        ),
    )
    return texts.rule(
        PRODUCER_ID_RATES,
        "producer_ids/producer_id_rates.sql",
        parameters={
            **quotas_of_conf.parameters(conf),
            "window_ms": conf.window_ms,
            "window_s": conf.window_ms // 1_000,
            "rate_period_s": _rate_period_s(conf),
            "full_again_s": FULL_AGAIN_S,
        },
        rows=quotas_of_conf.rows(conf),
        walks=(flagged,),
    )


def _rate_period_s(conf: ProducerIdsSection) -> int:
    """The rate period in seconds: a rate is taken over it, and a full bucket has its tokens."""
    return conf.num_windows * conf.window_ms // 1_000
