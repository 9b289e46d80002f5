"""Logins by a service credential of Unity Catalog: it signs for MSK, or has tokens for Event Hubs.

https://docs.databricks.com/aws/en/connect/unity-catalog/cloud-services/use-service-credentials
"""

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

from kafka.net.sasl import register_sasl_mechanism
from kafka.net.sasl.oauth import AbstractTokenProvider

from quotaflow.pipelines.config import logins
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.kafka.sasl import MskIam


def options(name: str, servers: Sequence[str]) -> dict[str, Any]:
    """How to log in, as kafka-python takes it.

    Raises ConfigError outside Databricks, and for a credential of a cloud without such a login.
    """
    provider = _provider(name)
    if hasattr(provider, "get_token"):
        host = servers[0].rpartition(":")[0]
        tokens = Tokens(provider, f"https://{host}/.default")
        return {"sasl_mechanism": logins.OAUTH, "sasl_oauth_token_provider": tokens}
    if hasattr(provider, "get_credentials"):
        register_sasl_mechanism(logins.IAM, partial(OfSession, provider), overwrite=True)
        return {"sasl_mechanism": logins.IAM}
    raise ConfigError(
        f"kafka.service_credential {name} is none of AWS or Azure: write a login into "
        "kafka.properties"
    )


class Tokens(AbstractTokenProvider):
    """Tokens of Microsoft Entra ID, which the credential renews by itself."""

    def __init__(self, provider: Any, scope: str) -> None:
        super().__init__()
        self._provider, self._scope = provider, scope

    def token(self) -> str:
        """A token that is valid now."""
        return str(self._provider.get_token(self._scope).token)


class OfSession(MskIam):
    """AWS_MSK_IAM by a session that has credentials already."""

    def __init__(self, session: Any, **config: Any) -> None:
        super().__init__(**config)
        self._boto_session_cls = lambda: session


def _provider(name: str) -> Any:
    # Elsewhere the SDK, if it is installed, searches for a login of its own.
    if "DATABRICKS_RUNTIME_VERSION" not in os.environ:
        raise ConfigError(f"kafka.service_credential {name} can log in on Databricks alone")
    from databricks.sdk.runtime import dbutils  # noqa: PLC0415  only there on Databricks

    # The SDK has no types of what only a runtime gives.
    credentials: Any = dbutils.credentials
    try:
        return credentials.getServiceCredentialsProvider(name)
    # The SDK's own errors are OSErrors, and a ValueError says that it has no login.
    except (OSError, ValueError) as error:
        raise ConfigError(f"kafka.service_credential {name} gives no login: {error}") from None
