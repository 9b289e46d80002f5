"""`preferred_replicas`: replicas that consumers read from, and nearer ones (KIP-392)."""

from collections.abc import Mapping, Sequence

from quotaflow.pipelines.engine import texts
from quotaflow.pipelines.incremental.result import LookupTable, Result, Unnamed
from quotaflow.pipelines.results.reads.client_racks import racks_of_conf
from quotaflow.schemas.tables.fetches import FETCHES
from quotaflow.schemas.tables.replicas import PREFERRED_REPLICAS
from quotaflow.schemas.tables.snapshots import CONFIGS
from quotaflow.schemas.tables.topology import BROKERS, REPLICAS, TOPICS
from quotaflow.schemas.tables.traffic import TOPIC_NAMES


def result(racks: Mapping[str, str], rack_patterns: Sequence[str] = ()) -> Result:
    """The declaration of the result. `racks` and `rack_patterns` are conf's, for
    clients that send no rack."""
    return Result(
        table=PREFERRED_REPLICAS,
        rule=texts.rule(
            PREFERRED_REPLICAS,
            "reads/preferred_replicas.sql",
            rows=racks_of_conf(racks, rack_patterns),
        ),
        facts=FETCHES,
        bucket_s=60,
        lookback_s=0,
        lookups=(
            LookupTable(TOPIC_NAMES, valid_from=None),
            *(
                LookupTable(table, reaches_back=True)
                for table in (REPLICAS, BROKERS, TOPICS, CONFIGS)
            ),
        ),
        unnamed=(Unnamed(PREFERRED_REPLICAS),),
    )
