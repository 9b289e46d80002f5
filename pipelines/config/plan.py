"""The section of conf about plans: what they never touch, how far they go, and for how long."""

from typing import Annotated, Literal

from pydantic import Field

from quotaflow.pipelines.config.base import LeaseSeconds, Positive, Principal, Section

Manager = Literal[
    "admin_client",
    "autothrottle",
    "cruise_control",
    "jikkou",
    "julie",
    "kafka-reassign-partitions",
    "quota_callback",
    "strimzi",
    "terraform",
    "topicctl",
    "other",
]
"""The kinds of programs that the view co_managers tells apart."""


class PlanSection(Section):
    """What a plan never changes, and how much it may change.

    `excluded_principals` are written as Kafka prints them, such as User:broker; the login of this
    conf is excluded too. A breach of a producer-id quota counts for `violation_lookback_s`. Open
    alerts get at most `max_subscriptions` subscriptions. A written value stays for `lease_s` unless
    a plan renews it.

    A quota changes when it differs by `hysteresis` (0.1: a tenth) or more, by `max_step_factor` up
    or down at most, and `cooldown_s` after its last change at the earliest. One plan or restore
    changes at most `max_entity_share` of all users, brokers or topics, and `min_entities` in any
    case. Exclusions and `max_step_factor` (downwards) limit a restore too.

    A row is blocked when its request log, results, telemetry or snapshot are older than
    `max_input_age_s`, or when a program that is not one of `tolerated_managers` manages the entity.
    A frozen plan can be applied for `max_plan_age_s`. While `stop_file` exists (STOP beside the
    tables if conf names none), nothing is written to the cluster.
    """

    excluded_principals: list[Principal] = Field(
        default_factory=lambda: ["User:ANONYMOUS", "User:admin", "User:broker"]
    )
    violation_lookback_s: Positive = 3_600
    max_subscriptions: Positive = 50
    lease_s: LeaseSeconds = 3_600
    hysteresis: Annotated[float, Field(ge=0, lt=1)] = 0.1
    max_step_factor: Annotated[float, Field(gt=1, le=10)] = 2.0
    cooldown_s: Annotated[int, Field(ge=0)] = 180
    max_entity_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    min_entities: Positive = 3
    max_input_age_s: Positive = 900
    max_plan_age_s: Positive = 86_400
    tolerated_managers: list[Manager] = Field(
        default=["admin_client", "kafka-reassign-partitions", "other"]
    )
    stop_file: str | None = None
