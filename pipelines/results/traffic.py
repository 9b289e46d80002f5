"""`traffic`: bytes produced and consumed per principal, client, topic and minute, from requests."""

from collections.abc import Mapping, Sequence

from quotaflow.pipelines.engine import texts
from quotaflow.pipelines.incremental.result import LookupTable, Result, Unnamed
from quotaflow.pipelines.results import named_topics
from quotaflow.pipelines.results.reads.client_racks import racks_of_conf
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.schemas.tables.topology import BROKERS
from quotaflow.schemas.tables.traffic import TRAFFIC


def result(racks: Mapping[str, str], rack_patterns: Sequence[str] = ()) -> Result:
    """The declaration of the result. Followers' fetches are no client's, so they do not count.

    `racks` and `rack_patterns` are conf's, for
    clients that send no rack.
    """
    return Result(
        table=TRAFFIC,
        rule=texts.rule(TRAFFIC, "traffic.sql", rows=racks_of_conf(racks, rack_patterns)),
        facts=REQUESTS,
        relevant="api IN ('PRODUCE', 'FETCH') AND replica_id IS NULL",
        bucket_s=60,
        lookback_s=0,
        lookups=(LookupTable(BROKERS, reaches_back=True), *named_topics.LOOKUPS),
        unnamed=(Unnamed(TRAFFIC),),
    )
