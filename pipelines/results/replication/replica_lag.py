"""`replica_lag`: how far behind followers are, from their own fetches (KIP-73, SumReplicaLag)."""

from quotaflow.pipelines.engine import texts
from quotaflow.pipelines.incremental.result import Result, Unnamed
from quotaflow.pipelines.results import named_topics
from quotaflow.schemas.tables.fetches import FETCHES
from quotaflow.schemas.tables.reassignments import LAG_PERIOD_S, REPLICA_LAG


def result() -> Result:
    """The declaration of the result."""
    return Result(
        table=REPLICA_LAG,
        rule=texts.rule(
            REPLICA_LAG, "replication/replica_lag.sql", parameters={"period_s": LAG_PERIOD_S}
        ),
        facts=FETCHES,
        relevant="replica_id IS NOT NULL",
        bucket_s=LAG_PERIOD_S,
        lookback_s=0,
        lookups=named_topics.LOOKUPS,
        unnamed=(Unnamed(REPLICA_LAG),),
    )
