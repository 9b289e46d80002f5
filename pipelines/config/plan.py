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
    """What a plan never changes, and how much it may change: docs/feedback.md."""

    excluded_principals: list[Principal] = Field(default=[])
    """Principals (as Kafka prints them) whose quotas are neither advised nor planned nor restored.
    They add to `User:ANONYMOUS`, `User:admin`, `User:broker`, this login's own,
    `ingest.shipper_principals`, and, for advice and plans, to what the view `protected_principals`
    shows of the cluster. Name super users here: Kafka hides `super.users`.
    """
    offence_period_s: Annotated[int, Field(ge=60, le=LONGEST_S)] = 1_800
    """Seconds, at least 60, in half of whose minutes a source of producer ids must offend before a
    plan limits it. The advice has this time to work.
    """
    address_history_s: Seconds = 7 * 86_400
    """Seconds of requests, without a gap of an hour, that must show who else uses an address before
    a plan limits it.
    """
    max_subscriptions: Positive = 50
    """Client-metrics resources for open alerts at once, at most; the oldest first."""
    lease_s: LeaseSeconds = 3_600
    """Seconds that a written value lasts unless it is renewed; 60 to 2,592,000 (30 days)."""
    max_lease_s: LeaseSeconds = 86_400
    """The longest lease of a limit: when its offence comes back, the next lease is twice as long;
    60 to 2,592,000 (30 days).
    """
    max_step_factor: Annotated[float, Field(gt=1, le=10)] = 2.0
    """Greatest factor by which a client quota or a limit changes at once, up or down, and down in a
    `restore`; above 1, at most 10.
    """
    min_gain: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """Share by which a limit must lower the offence, or it is reverted; above 0, below 1."""
    min_history_s: Seconds = 604_800
    """Seconds of known usage that a user must have before a plan sets a first quota."""
    cooldown_s: Annotated[int, Field(ge=0, le=LONGEST_S)] = 180
    """Seconds that a quota or rate stays before it is changed again; 0 or more. Urgent changes do
    not wait.
    """
    max_entities: Positive = 5
    """Entities with quotas (users, client ids, addresses) that one plan changes, at most."""
    max_entities_per_day: Positive = 20
    """Entities with quotas that plans write in 24 hours, at most, by the journal; reverts do not
    count.
    """
    max_entity_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Share of all users or of all topics that one plan changes, at most, and one always; above 0,
    at most 1.
    """
    canary: bool = True
    """The first user, client id, address or broker goes alone, and the next wait until results show
    its effect.
    """
    default_quotas: bool = False
    """Whether a plan may set `producer_ids_rate` of the default of all users, to
    `producer_ids.default_quota_per_s`, alone in its plan
    (docs/producer_ids.md#the-default-of-all-users).
    """
    max_input_age_s: Seconds = 900
    """Greatest age in seconds of request log, results, telemetry, snapshot or an answer as evidence
    of a plan. An input of a job that takes longer may be twice as old as the 95th percentile of its
    lag in the last day, and at most an hour.
    """
    max_plan_age_s: Seconds = 3_600
    """Seconds in which a frozen plan may be applied."""
    tolerated_managers: list[Manager] = Field(default=["kafka-reassign-partitions", "quotaflow"])
    """Kinds of other programs (`other_config_managers`) that plans tolerate;
    docs/applying.md#what-a-plan-never-does lists the kinds.
    """
    strimzi_api: Literal["v1", "v1beta2"] = "v1"
    """Version of Strimzi's API in what a plan prints for the User Operator: v1 since Strimzi 0.49,
    v1beta2 for older ones.
    """
    operators: list[Principal] = Field(default=[])
    """Principals of people, as Kafka prints them: they never count as a program, even if they alter
    many entities in a day.
    """
    stop_file: str | None = None
    """The file that stops every write to the cluster while it exists. null: `STOP` beside the
    tables, in a catalog beside the checkpoints.
    """


# Keys of --set are text.
_Node = Annotated[int, Field(ge=0, lt=2**31, strict=False)]


class ReplicationSection(Section):
    """The capacity of brokers for replication throttles (KIP-73), and how near a throttle may go to
    it: docs/replication.md.
    """

    capacity_bytes_per_s: PositiveRate | None = None
    """Bytes per second that a broker can carry in each direction. null: not known, so no rate is
    advised from it. The traffic so far may be far less than the capacity.
    """
    brokers: dict[_Node, PositiveRate] = Field(default={})
    """Broker id to its capacity, for brokers that differ."""
    share: Annotated[float, Field(gt=0, le=1)] = 0.9
    """Share of the capacity left by other traffic that a rate may take; above 0, at most 1."""
    hysteresis: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Share of the current rate by which another must differ to be advised; 0 or more, below 1."""
    max_step_factor: Annotated[float, Field(gt=1, le=10)] = 2.0
    """Greatest factor by which a rate changes at once, up or down; above 1, at most 10."""
    cooldown_s: Seconds = 180
    """Seconds that a rate stays before another is advised. Urgent changes do not wait."""
    network_bytes_per_s: PositiveRate | None = None
    """Bytes per second that the network between all brokers can carry; null: not known."""
    stale_throttle_s: Seconds = 600
    """Seconds without a move or a replica behind after which a list or rate counts as left over."""
    produce_p99_ms: PositiveRate = 1_000
    """Milliseconds: clients suffer while the p99 of their PRODUCE is past this and past
    `p99_rise_factor`.
    """
    fetch_p99_ms: PositiveRate = 500
    """The same of their FETCH, without its wait for records."""
    p99_rise_factor: Annotated[float, Field(ge=1, le=1_000, allow_inf_nan=False)] = 2.0
    """Times the usual p99 of the last hour; 1 to 1,000."""
    manage: bool = False
    """Whether a plan proposes rates where lists are set."""
    lease_s: LeaseSeconds = 3_600
    """Seconds that such a rate lasts unless it is renewed; 60 to 2,592,000 (30 days)."""
    cleanup_principals: list[Principal] = Field(default=[])
    """Principals (as Kafka prints them) whose left-over lists and rates a plan removes, beside this
    login's own.
    """
    remove_leftovers: bool = False
    """`true`: without a request log, which shows who set a throttle, a plan removes throttles that
    are left over by snapshots alone, no matter who set them.
    """

    @property
    def rate_policy(self) -> RatePolicy:
        """These values for udfs/rules/throttle_rate.py."""
        return RatePolicy(self.share, self.hysteresis, self.max_step_factor, self.cooldown_s)

    def capacity(self, broker_id: int) -> float | None:
        """The capacity of a broker in bytes/s by conf alone; None if conf has none."""
        return self.brokers.get(broker_id, self.capacity_bytes_per_s)
