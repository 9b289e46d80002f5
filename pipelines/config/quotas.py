"""Sections of conf about quotas: of producer ids (KIP-936), and Kafka's own client quotas."""

from typing import Annotated

from pydantic import AfterValidator, Field, field_validator

from quotaflow.pipelines.config.base import Positive, PositiveRate, Section, bare, matches

# Tokens are integer thousandths: under the least they would be none, over the most sums overflow.
LEAST_IDS_PER_S, MOST_IDS_PER_S = 0.001, 1_000_000
_ALL = "*"

_User = Annotated[str, AfterValidator(bare), matches(r"[^\n]+", "write a name, in one line")]


class ProducerIdsSection(Section):
    """Producer-id quotas (KIP-936), which stock Kafka cannot hold, and the rule's windows.

    `quotas` maps a user (alice, not User:alice) to producer ids per second and broker.
    `filter_window_ms` is how long an id is remembered: between half and one and a half of it.
    """

    default_quota_per_s: PositiveRate = 1.0
    quotas: dict[str, PositiveRate] = Field(default_factory=dict)
    num_windows: Positive = 11
    window_ms: Annotated[int, Field(gt=0, multiple_of=1_000)] = 1_000
    filter_window_ms: Annotated[int, Field(gt=0, multiple_of=1_000)] = 60_000
    filter_items: Positive = 10_000
    filter_false_positive_rate: Annotated[float, Field(gt=0, lt=1)] = 0.001

    @field_validator("quotas")
    @classmethod
    def _by_bare_name(cls, quotas: dict[str, float]) -> dict[str, float]:
        return {bare(user): rate for user, rate in quotas.items()}


class QuotasSection(Section):
    """Client quotas: their windows at the brokers, and what is advised from their use.

    Windows are the broker's quota.window.num and quota.window.size.seconds. A quota is advised from
    the `percentile` (0 to 1) of `advice_days` of windows, with `headroom` on top (0.25: a quarter).
    A plan asks for it only for `advised_users` (bare names; * is all).
    """

    num_windows: Positive = 11
    window_ms: Annotated[int, Field(gt=0, multiple_of=1_000)] = 1_000
    percentile: Annotated[float, Field(gt=0, le=1)] = 0.99
    headroom: Annotated[float, Field(ge=0, le=10)] = 0.25
    advice_days: Positive = 7
    advised_users: list[_User] = Field(default_factory=list)

    @field_validator("advised_users")
    @classmethod
    def _all_or_some(cls, users: list[str]) -> list[str]:
        if _ALL in users and len(users) > 1:
            raise ValueError(f"{_ALL} is all users: write ['{_ALL}'], or leave it out")
        return users

    @property
    def rate_period_s(self) -> int:
        """How long a rate is measured over."""
        return self.num_windows * self.window_ms // 1_000
