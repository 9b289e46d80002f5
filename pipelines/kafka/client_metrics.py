"""client-metrics resources of a cluster (KIP-714): which clients push what, and how often."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from kafka import KafkaAdminClient
from kafka import errors as kafka_errors
from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType

from quotaflow.pipelines.errors import KafkaError
from quotaflow.pipelines.kafka import admin, rights
from quotaflow.schemas.configs import CLIENT_METRICS, CONFIGS

_KIND = ConfigResourceType.CLIENT_METRICS
_ANSWERED = _KIND.name.lower()
_T = TypeVar("_T")
_CONFIGS = {key for key, config in CONFIGS.items() if config.entity_type == CLIENT_METRICS}


def read(properties: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Every resource by its name: metrics, interval.ms and match, as far as they are set.

    Raises KafkaError if the cluster does not answer, or refuses the request.
    """
    return _request(properties, "list client-metrics resources", _read)


def write(properties: Mapping[str, str], name: str, configs: Mapping[str, str]) -> None:
    """Set configs of one resource, and make it if it is missing; its other configs stay.

    Raises KafkaError with the broker's message if it refuses.
    """
    _alter(properties, name, dict(configs))


def delete(properties: Mapping[str, str], name: str) -> None:
    """Remove one resource by removing all its configs. A resource that is missing is no error."""
    # Not only the configs that are read: a broker may not have the last write yet.
    keys = _CONFIGS | read(properties).get(name, {}).keys()
    _alter(properties, name, dict.fromkeys(sorted(keys), (AlterConfigOp.DELETE, None)))


def _read(client: KafkaAdminClient) -> dict[str, dict[str, str]]:
    names = client.list_config_resources([_KIND]).get(_ANSWERED, [])
    if not names:
        return {}
    descriptions = client.describe_configs([ConfigResource(_KIND, name) for name in names])
    return {
        name: {key: config["value"] for key, config in configs.items()}
        for name, configs in descriptions[_ANSWERED].items()
        if configs  # deleted since they were listed
    }


def _alter(properties: Mapping[str, str], name: str, configs: dict[str, object]) -> None:
    resource = ConfigResource(_KIND, name, configs)

    def alter(client: KafkaAdminClient) -> str:
        # Let the broker check the config names: it may know more of them than this client.
        text: str = client.alter_configs([resource], raise_on_unknown=False)[_ANSWERED][name]
        return text

    answer = _request(properties, f"alter client-metrics {name}", alter)
    if answer != "OK":
        needs = rights.hint("troubleshoot", answer)
        raise KafkaError(f"the cluster refused client-metrics {name}: {answer}{needs}")


def _request(
    properties: Mapping[str, str], what: str, call: Callable[[KafkaAdminClient], _T]
) -> _T:
    try:
        with admin.client(properties) as client:
            return call(client)
    except kafka_errors.KafkaError as error:
        needs = rights.hint("troubleshoot", str(error))
        raise KafkaError(f"the cluster did not {what}: {error}{needs}") from None
