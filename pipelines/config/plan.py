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
    """What a plan never touches, and how much it may do.

    `excluded_principals` as Kafka prints them, such as User:broker; the login of this conf is left
    out too. Who was over its producer-id quota in the last `asked_for_s` is planned to be held, and
    alerts ask for at most `max_subscriptions` at once. What is written holds for `lease_s`
    unless it is renewed. A quota is changed where it differs by `hysteresis` (0.1: a tenth) or
    more, at most `most_step` times up or down, and not before `hold_s` after the last time. One
    plan, or restore, changes at most `most_share` of all users, brokers or topics at once, and
    always `fewest`. Exclusions and `most_step` down bound a restore too. What stands on a request
    log, results, telemetry or a snapshot older than `max_input_age_s` is not planned, nor what
    programs manage that are none of `tolerated_managers`. A frozen plan may be applied for
    `max_plan_age_s`. While `stop_file` exists (STOP beside the tables where conf names none)
    nothing is written to the cluster.
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
