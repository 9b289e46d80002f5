"""A client-metrics resource on loan (KIP-714): its name tells whoever finds it when it ends."""

import hashlib
import re
from dataclasses import dataclass

from quotaflow.schemas.configs import CONFIGS, INTERVAL_MS, MATCH, METRICS

_PREFIX = "quotaflow-troubleshoot-"
_NAME = re.compile(rf"{_PREFIX}.+-until-(\d{{1,12}})")
_HASH_CHARS = 12


@dataclass(frozen=True, slots=True)
class TemporarySubscription:
    """Client instances are asked for metrics every interval_ms, until until_s (since 1970)."""

    client_instance_ids: tuple[str, ...]
    metrics: tuple[str, ...]
    interval_ms: int
    until_s: int

    @property
    def name(self) -> str:
        """The resource: after the one instance, or a hash of the several, and when it ends."""
        asked = self.client_instance_ids[0]
        if len(self.client_instance_ids) > 1:
            ids = "|".join(sorted(self.client_instance_ids))
            asked = hashlib.sha256(ids.encode()).hexdigest()[:_HASH_CHARS]
        return f"{_PREFIX}{asked}-until-{self.until_s}"

    @property
    def configs(self) -> dict[str, str]:
        """The resource's configs. Raises ValueError naming the bound that one of them breaks."""
        wanted = {
            METRICS.key: ",".join(self.metrics),
            INTERVAL_MS.key: str(self.interval_ms),
            MATCH.key: f"client_instance_id={'|'.join(self.client_instance_ids)}",
        }
        return {key: CONFIGS[key].canonical(value) for key, value in wanted.items()}


def until_s(name: str) -> int | None:
    """When the lease of this name ends, in s since 1970; None where the resource is no lease."""
    found = _NAME.fullmatch(name)
    return int(found[1]) if found else None
