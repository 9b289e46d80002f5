"""Dynamic configs as rows of `configs`."""

from collections.abc import Iterator, Mapping
from typing import Any

CLIENT_METRICS = "client-metrics"
_SOURCE = "DYNAMIC_CLIENT_METRICS_CONFIG"


def of_client_metrics(resources: Mapping[str, Mapping[str, str]]) -> Iterator[dict[str, Any]]:
    """Configs of client-metrics resources (KIP-714), each resource's by its name."""
    for name, values in resources.items():
        for key, value in values.items():
            yield {
                "entity_type": CLIENT_METRICS,
                "entity_name": name,
                "config_key": key,
                "config_value": value,
                "config_source": _SOURCE,
            }
