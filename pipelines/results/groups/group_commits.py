"""`group_commits`: offsets that clients commit for groups, from the bodies of requests."""

from quotaflow.pipelines.engine import texts
from quotaflow.pipelines.incremental.result import LookupTable, Result, Unnamed
from quotaflow.pipelines.results.groups import group_inputs
from quotaflow.schemas.events import NO_TOPIC_ID
from quotaflow.schemas.tables.groups import GROUP_COMMITS
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.schemas.tables.topology import TOPICS
from quotaflow.schemas.tables.traffic import TOPIC_NAMES


def result() -> Result:
    """The declaration of the result."""
    return Result(
        table=GROUP_COMMITS,
        rule=texts.rule(
            GROUP_COMMITS,
            "groups/group_commits.sql",
            parameters={"no_topic_id": NO_TOPIC_ID},
        ),
        facts=REQUESTS,
        relevant=group_inputs.RELEVANT,
        bucket_s=60,
        lookback_s=0,
        lookups=(
            LookupTable(TOPICS, reaches_back=True),
            LookupTable(TOPIC_NAMES, valid_from=None),
        ),
        unnamed=(Unnamed(GROUP_COMMITS),),
    )
