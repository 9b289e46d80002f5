"""`group_members`: members of groups by minute, from the bodies of requests."""

from quotaflow.pipelines.engine import texts
from quotaflow.pipelines.incremental.result import Result, Unnamed
from quotaflow.pipelines.results import named_topics
from quotaflow.pipelines.results.groups import group_inputs
from quotaflow.schemas.tables.groups import GROUP_MEMBERS
from quotaflow.schemas.tables.requests import REQUESTS


def result() -> Result:
    """The declaration of the result."""
    return Result(
        table=GROUP_MEMBERS,
        rule=texts.rule(
            GROUP_MEMBERS, "groups/group_members.sql", walks=(group_inputs.protocols(),)
        ),
        facts=REQUESTS,
        relevant=group_inputs.RELEVANT,
        bucket_s=60,
        lookback_s=0,
        lookups=named_topics.LOOKUPS,
        unnamed=(
            Unnamed(
                GROUP_MEMBERS,
                "group_type <> 'classic' AND assigned_partitions IS NOT NULL",
                "[part.topic_id FOR part IN assigned_partitions IF part.topic IS NULL]",
            ),
        ),
    )
