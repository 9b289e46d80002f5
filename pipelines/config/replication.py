"""What replication may take of brokers: a section of conf."""

from typing import Annotated

from pydantic import Field

from quotaflow.pipelines.config.base import LeaseSeconds, Positive, PositiveRate, Principal, Section
from quotaflow.udfs.rules.throttle_rate import RatePolicy

# Keys of --set are text.
_Node = Annotated[int, Field(ge=0, strict=False)]


class ReplicationSection(Section):
    """Capacity of brokers in bytes/s and direction, and how near a throttle may go to it.

    `brokers` are those whose capacity differs. Without one, a broker is taken to carry the most it
    ever did in a minute. `share` of what is left is used; a rate that is less than `hysteresis` off
    is kept, none is more than `most_step` times the one before, or changed within `hold_s`.
    `network_bytes_per_s` is what the network between all brokers carries, where it is known. A list
    or rate is left over when nothing it holds was moved or behind for `left_over_s`.

    Clients suffer while the p99 of their requests is past `produce_p99_ms` or `fetch_p99_ms` and
    `p99_rise` times what is usual. With `manage` a plan asks for rates where lists stand, each for
    `lease_s`; it takes back what `clean_up_principals` (as Kafka prints them) left over.
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
    clean_up_principals: list[Principal] = Field(default_factory=list)

    @property
    def rate_policy(self) -> RatePolicy:
        """As the rule takes them."""
        return RatePolicy(self.share, self.hysteresis, self.max_step_factor, self.cooldown_s)

    def capacity(self, broker_id: int) -> float | None:
        """Of a broker, by conf alone."""
        return self.brokers.get(broker_id, self.capacity_bytes_per_s)
