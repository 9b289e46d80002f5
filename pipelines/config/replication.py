"""What replication may take of brokers: a section of conf."""

from typing import Annotated

from pydantic import Field

from quotaflow.pipelines.config.base import LeaseSeconds, Positive, PositiveRate, Principal, Section
from quotaflow.udfs.rules.throttle_rate import RatePolicy

# Keys of --set are text.
_Node = Annotated[int, Field(ge=0, strict=False)]


class ReplicationSection(Section):
    """Capacity of brokers in bytes/s and direction, and how near a throttle may go to it.

    `brokers` are those whose capacity differs. Without a capacity, a broker counts as able to carry
    the most it ever carried in a minute. A rate is `share` of what is left. It stays where the new
    one is less than `hysteresis` off, changes by `max_step_factor` at most, and not again within
    `cooldown_s`. `network_bytes_per_s` is what the network between all brokers carries, if known. A
    list or rate is stale when nothing in it moved or was behind for `stale_throttle_s`.

    Clients are degraded while the p99 of their requests is above `produce_p99_ms` or
    `fetch_p99_ms` and above `p99_rise_factor` times the usual. With `manage` a plan sets rates
    where lists are set, each for `lease_s`. It removes stale entries that `cleanup_principals` (as
    Kafka prints them) set.
    """

    capacity_bytes_per_s: PositiveRate | None = None
    brokers: dict[_Node, PositiveRate] = Field(default_factory=dict)
    share: Annotated[float, Field(gt=0, le=1)] = 0.9
    hysteresis: Annotated[float, Field(ge=0, lt=1)] = 0.1
    max_step_factor: Annotated[float, Field(gt=1, le=10)] = 2.0
    cooldown_s: Positive = 180
    network_bytes_per_s: PositiveRate | None = None
    stale_throttle_s: Positive = 600
    produce_p99_ms: PositiveRate = 1_000
    fetch_p99_ms: PositiveRate = 500
    p99_rise_factor: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 2.0
    manage: bool = False
    lease_s: LeaseSeconds = 3_600
    cleanup_principals: list[Principal] = Field(default_factory=list)

    @property
    def rate_policy(self) -> RatePolicy:
        """As the rule takes them."""
        return RatePolicy(self.share, self.hysteresis, self.max_step_factor, self.cooldown_s)

    def capacity(self, broker_id: int) -> float | None:
        """Of a broker, by conf alone."""
        return self.brokers.get(broker_id, self.capacity_bytes_per_s)
