"""Activations in `producer_id_rates`: the first snapshot that has a producer id (KIP-936).

The KIP counts ids of PRODUCE requests, and Kafka's brokers do not log these. Instead, an id counts
at the first snapshot in which a leader has it.
"""

from quotaflow.pipelines.config import ProducerIdsSection
from quotaflow.pipelines.engine import texts
from quotaflow.pipelines.incremental.result import LookupTable, Result
from quotaflow.pipelines.results.producer_ids import quotas_of_conf
from quotaflow.schemas.tables.producer_ids import PRODUCER_ID_RATES, PRODUCER_ID_USES
from quotaflow.schemas.tables.snapshots import ACTIVE_PRODUCERS

# A snapshot is read at once. The request log, which shows the owners of its ids, may be read later.
_LOG_MAY_LAG_S = 86_400


def result(conf: ProducerIdsSection) -> Result:
    """The declaration of the result. It reads all snapshots ever, to know whether an id is new."""
    return Result(
        table=PRODUCER_ID_RATES,
        rule=texts.rule(
            PRODUCER_ID_RATES,
            "producer_ids/producer_id_activations.sql",
            parameters=quotas_of_conf.parameters(conf),
            rows=quotas_of_conf.rows(conf),
        ),
        facts=ACTIVE_PRODUCERS,
        bucket_s=60,
        lookback_s=0,
        lookups=(
            LookupTable(ACTIVE_PRODUCERS, valid_from=None),
            LookupTable(PRODUCER_ID_USES, valid_from=None),
        ),
        lookahead_s=_LOG_MAY_LAG_S,
        scope="kind = 'activation'",
    )
