"""`producer_id_uses`: producer ids that clients got or sent, by minute."""

from quotaflow.pipelines.engine import texts
from quotaflow.pipelines.incremental.result import Result
from quotaflow.schemas.tables.producer_ids import PRODUCER_ID_USES
from quotaflow.schemas.tables.requests import REQUESTS


def result() -> Result:
    """The declaration of the result. It reads requests that show a producer id, and all PRODUCE.

    A request that the broker refused shows nothing.
    """
    return Result(
        table=PRODUCER_ID_USES,
        rule=texts.rule(PRODUCER_ID_USES, "producer_ids/producer_id_uses.sql"),
        facts=REQUESTS,
        relevant="(producer_id >= 0 OR api = 'PRODUCE') AND coalesce(error_code, 0) = 0",
        bucket_s=60,
        lookback_s=0,
    )
