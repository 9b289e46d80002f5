"""`group_member_events`: what became of members of groups, from the bodies of requests."""

from quotaflow.pipelines.engine import texts
from quotaflow.pipelines.incremental.result import Result
from quotaflow.pipelines.results.groups import group_inputs
from quotaflow.schemas.tables.groups import GROUP_MEMBER_EVENTS
from quotaflow.schemas.tables.requests import REQUESTS


def result() -> Result:
    """The declaration of the result."""
    return Result(
        table=GROUP_MEMBER_EVENTS,
        rule=texts.rule(
            GROUP_MEMBER_EVENTS,
            "groups/group_member_events.sql",
            walks=(group_inputs.protocols(),),
        ),
        facts=REQUESTS,
        relevant=group_inputs.RELEVANT,
        bucket_s=60,
        lookback_s=0,
    )
