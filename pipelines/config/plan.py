"""Sections of conf about plans and replication: what they never touch, and how far they go."""

from typing import Annotated, Literal

from pydantic import Field

from quotaflow.pipelines.config.base import (
    LONGEST_S,
    LeaseSeconds,
    Positive,
    PositiveRate,
    Principal,
    Seconds,
    Section,
)
from quotaflow.udfs.rules.throttle_rate import RatePolicy

Manager = Literal[
    "admin_client",
    "autothrottle",
    "cruise_control",
    "jikkou",
    "julie",
    "kafka-reassign-partitions",
    "quota_callback",
    "quotaflow",
    "strimzi",
    "terraform",
    "topicctl",
    "other",
]
"""The kinds of programs that the view other_config_managers distinguishes."""

DEFAULT_EXCLUDED = ("User:ANONYMOUS", "User:admin", "User:broker")
"""Principals that are excluded under any conf."""


class PlanSection(Section):
    """What a plan never changes, and how much it may change.

    `excluded_principals` are written as Kafka prints them, such as User:broker. They add to
    DEFAULT_EXCLUDED, to the login of this conf and to the view protected_principals.

    A breach of a producer-id quota counts for `violation_lookback_s`. A source of producer ids is
    limited when it offends in `offence_share` of the minutes of `offence_period_s`, and
    `address_history_s` of requests show who else uses its address. Open alerts get at most
    `max_subscriptions` subscriptions. A written value stays for `lease_s` unless a plan renews it.

    A quota changes when it differs by `hysteresis` (0.1: a tenth) or more, by `max_step_factor` up
    or down at most, and `cooldown_s` after its last change at the earliest. One plan changes at
    most `max_entities` entities with quotas, and `max_entity_share` of all users or topics. Plans
    change at most `max_entities_per_day` entities with quotas in 24 hours. With `canary` the first
    entity of a kind goes alone, and the next wait until its effect shows. With `default_quotas` a
    plan sets producer_ids_rate of the default of all users, alone in its plan. Exclusions and
    `max_step_factor` (downwards) limit a restore too.

    A limit of an offender that has less gain than `min_gain` is given back, and none follows for
    `no_gain_pause_s`. When a limit ends and its offence comes back, the next lease is twice as
    long, up to `max_lease_s`. `dead_time_s` is how long a write takes to show in results while no
    dead time was measured. A user gets a first quota only with `min_history_s` of usage.

    A row is blocked when its request log, results, telemetry or snapshot are older than
    `max_input_age_s`, or, if the measured lag of their job times `input_age_factor` is longer, than
    that and at most `max_lagging_age_s`. It is blocked when the answer that proposes it failed, or
    was computed longer ago from inputs that changed since, or when a program that is not one of
    `tolerated_managers` manages the entity. A writer of an unknown kind is a program if it altered
    many entities in a day, and is none of `operators` (people, as Kafka prints their principals).
    A frozen plan can be applied for `max_plan_age_s`. While `stop_file` exists (STOP beside the
    tables if conf names none), nothing is written to the cluster.
    """

    excluded_principals: list[Principal] = Field(default_factory=list)
    violation_lookback_s: Seconds = 3_600
    offence_period_s: Annotated[int, Field(ge=60, le=LONGEST_S)] = 1_800
    offence_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    address_history_s: Seconds = 7 * 86_400
    max_subscriptions: Positive = 50
    lease_s: LeaseSeconds = 3_600
    max_lease_s: LeaseSeconds = 86_400
    hysteresis: Annotated[float, Field(ge=0, lt=1)] = 0.1
    max_step_factor: Annotated[float, Field(gt=1, le=10)] = 2.0
    min_gain: Annotated[float, Field(gt=0, lt=1)] = 0.1
    no_gain_pause_s: Seconds = 86_400
    min_history_s: Seconds = 604_800
    dead_time_s: Seconds = 1_200
    cooldown_s: Annotated[int, Field(ge=0, le=LONGEST_S)] = 180
    max_entities: Positive = 5
    max_entities_per_day: Positive = 20
    max_entity_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    canary: bool = True
    default_quotas: bool = False
    max_input_age_s: Seconds = 900
    input_age_factor: Annotated[float, Field(ge=1, le=10)] = 2.0
    max_lagging_age_s: Seconds = 3_600
    max_plan_age_s: Seconds = 3_600
    tolerated_managers: list[Manager] = Field(default=["kafka-reassign-partitions", "quotaflow"])
    operators: list[Principal] = Field(default_factory=list)
    stop_file: str | None = None


# Keys of --set are text.
_Node = Annotated[int, Field(ge=0, strict=False)]


class ReplicationSection(Section):
    """Capacity of brokers in bytes/s and direction, and how near a throttle may go to it.

    `brokers` are those with another capacity. Without a capacity no rate is advised but as much as
    is written, because what a broker carried so far may be far from it. A rate is `share` of what
    is left. It stays where the new one is less than `hysteresis` off, changes by `max_step_factor`
    at most, and not again within `cooldown_s`. `network_bytes_per_s` is what the network between
    all brokers carries, if known. A list or rate is stale when nothing in it moved or was behind
    for `stale_throttle_s`.

    Clients are degraded while the p99 of their requests is above `produce_p99_ms` or
    `fetch_p99_ms` and above `p99_rise_factor` times the usual. With `manage` a plan sets rates
    where lists are set, each for `lease_s`. It removes stale entries that `cleanup_principals` (as
    Kafka prints them) set. Without a request log nobody knows who set one: there a plan removes
    what snapshots alone show as left over only with `remove_leftovers`.
    """

    capacity_bytes_per_s: PositiveRate | None = None
    brokers: dict[_Node, PositiveRate] = Field(default_factory=dict)
    share: Annotated[float, Field(gt=0, le=1)] = 0.9
    hysteresis: Annotated[float, Field(ge=0, lt=1)] = 0.1
    max_step_factor: Annotated[float, Field(gt=1, le=10)] = 2.0
    cooldown_s: Seconds = 180
    network_bytes_per_s: PositiveRate | None = None
    stale_throttle_s: Seconds = 600
    produce_p99_ms: PositiveRate = 1_000
    fetch_p99_ms: PositiveRate = 500
    p99_rise_factor: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 2.0
    manage: bool = False
    lease_s: LeaseSeconds = 3_600
    cleanup_principals: list[Principal] = Field(default_factory=list)
    remove_leftovers: bool = False

    @property
    def rate_policy(self) -> RatePolicy:
        """These values for udfs/rules/throttle_rate.py."""
        return RatePolicy(self.share, self.hysteresis, self.max_step_factor, self.cooldown_s)

    def capacity(self, broker_id: int) -> float | None:
        """The capacity of a broker in bytes/s by conf alone; None if conf has none."""
        return self.brokers.get(broker_id, self.capacity_bytes_per_s)
