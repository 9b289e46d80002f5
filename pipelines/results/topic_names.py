"""`topic_names`: names and ids of topics in brokers' answers, from the bodies of requests."""

from quotaflow.pipelines.engine import texts
from quotaflow.pipelines.incremental.result import Result
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.schemas.tables.traffic import TOPIC_NAMES

NAMING_APIS = ("METADATA", "DESCRIBE_TOPIC_PARTITIONS", "CREATE_TOPICS")
"""Requests that are answered with topics by name and id."""


def result() -> Result:
    """The declaration of the result."""
    return Result(
        table=TOPIC_NAMES,
        rule=texts.rule(TOPIC_NAMES, "topic_names.sql"),
        facts=REQUESTS,
        relevant=f"api IN {NAMING_APIS}",
        bucket_s=60,
        lookback_s=0,
    )
