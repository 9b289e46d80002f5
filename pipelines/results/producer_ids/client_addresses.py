"""`client_addresses`: which clients sent requests from which address, by minute."""

from quotaflow.pipelines.engine import texts
from quotaflow.pipelines.incremental.result import Result
from quotaflow.schemas.tables.producer_ids import CLIENT_ADDRESSES
from quotaflow.schemas.tables.requests import REQUESTS


def result() -> Result:
    """The declaration of the result. Requests of all APIs count, refused ones too."""
    return Result(
        table=CLIENT_ADDRESSES,
        rule=texts.rule(CLIENT_ADDRESSES, "producer_ids/client_addresses.sql"),
        facts=REQUESTS,
        relevant="client_address IS NOT NULL",
        bucket_s=60,
        lookback_s=0,
    )
