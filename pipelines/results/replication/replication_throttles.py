"""`replication_throttles`: whether throttles of replication bite, or the reason why not (KIP-73).

It looks up other results, which are computed before it. A request affects the same minutes of all
of these.
"""

from quotaflow.pipelines.engine import texts
from quotaflow.pipelines.incremental.result import LookupTable, Result, Unnamed
from quotaflow.pipelines.results.replication import replication_inputs
from quotaflow.schemas.tables.reassignments import REASSIGNMENT_CHANGES
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.schemas.tables.throttles import (
    REPLICATION_RATES,
    REPLICATION_THROTTLES,
    REPLICATION_TRAFFIC,
)
from quotaflow.schemas.tables.topology import BROKERS, REPLICAS


def result() -> Result:
    """The declaration of the result. Its facts are relevant to any result that it looks up."""
    return Result(
        table=REPLICATION_THROTTLES,
        rule=texts.rule(REPLICATION_THROTTLES, "replication/replication_throttles.sql"),
        facts=REQUESTS,
        relevant=(
            f"{replication_inputs.RELEVANT} "
            "OR api IN ('ALTER_PARTITION', 'ALTER_PARTITION_REASSIGNMENTS')"
        ),
        bucket_s=replication_inputs.BUCKET_S,
        lookback_s=0,
        runs_forward=True,
        lookups=(
            *replication_inputs.LOOKUPS,
            LookupTable(REPLICATION_TRAFFIC, valid_from=None, within_ranges=True),
            LookupTable(REPLICATION_RATES, valid_from=None, within_ranges=True),
            LookupTable(REASSIGNMENT_CHANGES, valid_from=None),
            LookupTable(REPLICAS),
            LookupTable(BROKERS, reaches_back=True),
        ),
        unnamed=(*replication_inputs.UNNAMED, Unnamed(REASSIGNMENT_CHANGES)),
    )
