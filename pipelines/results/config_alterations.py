"""`config_alterations`: alterations of dynamic configs and client quotas, from requests' bodies."""

from quotaflow.pipelines.engine import texts
from quotaflow.pipelines.incremental.result import Result
from quotaflow.schemas.configs import HARMLESS
from quotaflow.schemas.tables.config_alterations import CONFIG_ALTERATIONS
from quotaflow.schemas.tables.requests import REQUESTS

QUOTAS = "ALTER_CLIENT_QUOTAS"
RESOURCES = ("INCREMENTAL_ALTER_CONFIGS", "ALTER_CONFIGS", "CREATE_TOPICS", "DELETE_TOPICS")
"""Requests that alter configs of resources, which are what ConfigResource.Type lists."""


def result() -> Result:
    """The declaration of the result."""
    return Result(
        table=CONFIG_ALTERATIONS,
        rule=texts.rule(
            CONFIG_ALTERATIONS,
            "config_alterations.sql",
            parameters={"harmless": sorted(HARMLESS)},
        ),
        facts=REQUESTS,
        relevant=f"api IN {(*RESOURCES, QUOTAS)}",
        bucket_s=60,
        lookback_s=0,
    )
