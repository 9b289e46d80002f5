"""`address_clients`: which clients sent requests from which address, by minute."""

from quotaflow.pipelines.engine import texts
from quotaflow.pipelines.incremental.result import Result
from quotaflow.schemas.tables.producer_ids import ADDRESS_CLIENTS
from quotaflow.schemas.tables.requests import REQUESTS


def result() -> Result:
    """The declaration of the result. Requests of all APIs count, refused ones too."""
    return Result(
        table=ADDRESS_CLIENTS,
        rule=texts.rule(ADDRESS_CLIENTS, "producer_ids/address_clients.sql"),
        facts=REQUESTS,
        relevant="client_address IS NOT NULL",
        bucket_s=60,
        # Records of a minute may follow an id of the minute before.
        lookback_s=60,
    )
