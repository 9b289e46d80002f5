"""`replication_rates`: throttled replication of brokers as Kafka's SimpleRate has it (KIP-73)."""

from quotaflow.pipelines.engine import texts
from quotaflow.pipelines.incremental.result import Result
from quotaflow.pipelines.results.replication import replication_inputs
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.schemas.tables.throttles import REPLICATION_RATES

_PERIOD_S = 11
"""replication.quota.window.num x replication.quota.window.size.seconds of stock Kafka."""


def result() -> Result:
    """The declaration of the result."""
    return Result(
        table=REPLICATION_RATES,
        rule=texts.rule(
            REPLICATION_RATES,
            "replication/replication_rates.sql",
            parameters={"period_s": _PERIOD_S},
        ),
        facts=REQUESTS,
        relevant=replication_inputs.RELEVANT,
        bucket_s=replication_inputs.BUCKET_S,
        lookback_s=_PERIOD_S,
        runs_forward=True,
        lookups=replication_inputs.LOOKUPS,
        unnamed=replication_inputs.UNNAMED,
    )
