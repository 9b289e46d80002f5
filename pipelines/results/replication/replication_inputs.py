"""The requests and lookup tables that the results of replication throttles read (KIP-73)."""

from quotaflow.pipelines.incremental.result import LookupTable, Unnamed
from quotaflow.pipelines.results import config_alterations, named_topics, topic_names
from quotaflow.schemas.tables.config_alterations import CONFIG_ALTERATIONS
from quotaflow.schemas.tables.snapshots import CONFIGS
from quotaflow.schemas.tables.throttles import REPLICATION_TRAFFIC

BUCKET_S = 60

# Fetches of followers and produces. Other requests change lists, rates, and names of topics.
_OTHER_APIS = (*config_alterations.RESOURCES, *topic_names.NAMING_APIS)
RELEVANT = (
    "api = 'PRODUCE' OR (api = 'FETCH' AND replica_id IS NOT NULL) "
    f"OR api IN ({', '.join(repr(api) for api in _OTHER_APIS)})"
)

LOOKUPS = (
    LookupTable(CONFIG_ALTERATIONS, valid_from=None),
    LookupTable(CONFIGS, reaches_back=True),
    *named_topics.LOOKUPS,
)
"""Alterations are computed from requests that are facts of these results too. So a change affects
all that comes after it (`Result.runs_forward`)."""

UNNAMED = (Unnamed(REPLICATION_TRAFFIC),)
"""Lists of throttled replicas cover partitions by the name of the topic."""
