"""A temporary client-metrics resource (KIP-714): its name says when it ends."""

import hashlib
import re
from dataclasses import dataclass

from quotaflow.schemas.configs import CONFIGS, INTERVAL_MS, MATCH, METRICS

_PREFIX = "quotaflow-troubleshoot-"
_NAME = re.compile(rf"{_PREFIX}.+-until-(\d{{1,12}})")
_HASH_CHARS = 12


@dataclass(frozen=True, slots=True)
class TemporarySubscription:
    """Client instances that should push metrics every interval_ms, until until_s (since 1970)."""

    client_instance_ids: tuple[str, ...]
    metrics: tuple[str, ...]
    interval_ms: int
    until_s: int

    @property
    def name(self) -> str:
        """The resource: named after its one instance or a hash of several, and after its end."""
        instances = self.client_instance_ids[0]
        if len(self.client_instance_ids) > 1:
            ids = "|".join(sorted(self.client_instance_ids))
            instances = hashlib.sha256(ids.encode()).hexdigest()[:_HASH_CHARS]
        return f"{_PREFIX}{instances}-until-{self.until_s}"

    @property
    def configs(self) -> dict[str, str]:
        """The resource's configs. Raises ValueError for a value out of bounds."""
        values = {
            METRICS.key: ",".join(self.metrics),
            INTERVAL_MS.key: str(self.interval_ms),
            MATCH.key: f"client_instance_id={'|'.join(self.client_instance_ids)}",
        }
        return {key: CONFIGS[key].canonical(value) for key, value in values.items()}


def until_s(name: str) -> int | None:
    """When the subscription of this name ends, in s since 1970; None if it is not temporary."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None
