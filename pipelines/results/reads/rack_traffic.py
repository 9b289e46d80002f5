"""`rack_traffic`: bytes produced, consumed and replicated between racks, from requests."""

from collections.abc import Mapping, Sequence

from quotaflow.pipelines.engine import texts
from quotaflow.pipelines.incremental.result import LookupTable, Result
from quotaflow.pipelines.results.reads.client_racks import racks_of_conf
from quotaflow.schemas.tables.replicas import RACK_TRAFFIC
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.schemas.tables.topology import BROKERS


def result(racks: Mapping[str, str], rack_patterns: Sequence[str] = ()) -> Result:
    """The declaration of the result. `racks` and `rack_patterns` are conf's, for
    clients that send no rack."""
    return Result(
        table=RACK_TRAFFIC,
        rule=texts.rule(
            RACK_TRAFFIC, "reads/rack_traffic.sql", rows=racks_of_conf(racks, rack_patterns)
        ),
        facts=REQUESTS,
        relevant="api IN ('PRODUCE', 'FETCH')",
        bucket_s=60,
        lookback_s=0,
        lookups=(LookupTable(BROKERS, reaches_back=True),),
    )
