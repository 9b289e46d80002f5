"""The requests and lookup tables that the results of replication throttles read (KIP-73)."""

from quotaflow.pipelines.incremental.result import LookupTable
from quotaflow.pipelines.results import config_alterations, topic_names
from quotaflow.schemas.tables.config_alterations import CONFIG_ALTERATIONS
from quotaflow.schemas.tables.snapshots import CONFIGS
from quotaflow.schemas.tables.topology import TOPICS
from quotaflow.schemas.tables.traffic import TOPIC_NAMES

BUCKET_S = 60

# Fetches of followers and produces. Other requests change lists, rates, and names of topics.
_OTHER_APIS = (*config_alterations.RESOURCES, *topic_names.NAMING_APIS)
RELEVANT = (
    "api = 'PRODUCE' OR (api = 'FETCH' AND replica_id IS NOT NULL) "
    f"OR api IN ({', '.join(repr(api) for api in _OTHER_APIS)})"
)

LOOKUPS = (
    LookupTable(CONFIG_ALTERATIONS, valid_from=None),
    LookupTable(TOPIC_NAMES, valid_from=None),
    LookupTable(CONFIGS, reaches_back=True),
    LookupTable(TOPICS, reaches_back=True),
)
"""Rows of the first two are computed from requests that are facts of these results too. So a change
affects all that comes after it (`Result.runs_forward`)."""
