"""The tables that rules look up for names of topics (view `topics_by_id` of results/shared)."""

from quotaflow.pipelines.incremental.result import LookupTable
from quotaflow.schemas.tables.topology import TOPICS
from quotaflow.schemas.tables.traffic import TOPIC_NAMES

LOOKUPS = (LookupTable(TOPIC_NAMES, valid_from=None), LookupTable(TOPICS, valid_from=None))
"""A new row changes the rows that have its id and no name (`Result.unnamed`), and no others."""
