"""The section `alerts` of conf: alert rules on clients' metrics, and the webhook."""

import re
from typing import Annotated

from pydantic import Field, field_validator, model_validator

from quotaflow.pipelines.config.base import LONGEST_S, Bound, Seconds, Section, matches
from quotaflow.udfs.rules.alert import ThresholdRule

# The number of parts of prefixes such as org.apache.kafka.producer.
_KIND = 4


class AlertRule(Section):
    """When a metric of a client opens an alert (KIP-714)."""

    name: Annotated[
        str, matches(r"[\w.-]{1,64}", "write up to 64 letters, digits, . _ -, such as queue-time")
    ]
    """A name of its own: 1 to 64 letters, digits, `.`, `-` and `_`."""
    metric: str = Field(min_length=1)
    """Name of the metric; `*` matches any text."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Attributes that the point must have."""
    above: Bound | None = None
    """The bound, in the metric's unit: past it is more than this. One of `above` and `below` must
    be given.
    """
    below: Bound | None = None
    """The same: past it is less than this."""
    clear: Bound | None = None
    """The value at which an alert closes. null: a tenth inside the bound."""
    for_s: Annotated[int, Field(ge=0, le=LONGEST_S)] = 180
    """Seconds: an alert opens when values were past the bound for longer; 0 or more."""
    stale_s: Seconds = 600
    """Seconds without a value after which an alert closes."""
    subscribe_metrics: list[str] | None = None
    """Prefixes of metrics that the client is asked for while an alert is open. null: all metrics of
    the same kind (`org.apache.kafka.producer.`); `[]`: none.
    """
    subscribe_interval_s: Annotated[int, Field(ge=1, le=300)] = 10
    """Seconds between two pushes during an open alert; 1 to 300."""

    @field_validator("subscribe_metrics")
    @classmethod
    def _prefixes(cls, metrics: list[str] | None) -> list[str] | None:
        wrong = [name for name in metrics or [] if not re.fullmatch(r"[\w.-]+", name)]
        if wrong:
            raise ValueError(
                f"{wrong[0]!r} is no prefix of a metric's name: letters, digits, . - _"
            )
        return metrics

    @property
    def subscribed_prefixes(self) -> list[str]:
        """Metric prefixes of an open alert; without subscribe_metrics all of the metric's kind."""
        if self.subscribe_metrics is not None:
            return self.subscribe_metrics
        parts = self.metric.partition("*")[0].split(".")
        return [".".join(parts[:_KIND]) + "."] if len(parts) > _KIND else []

    @model_validator(mode="after")
    def _one_bound(self) -> "AlertRule":
        if (self.above is None) == (self.below is None):
            raise ValueError(f"{self.name}: give one bound, above or below")
        self.rule()
        return self

    def rule(self) -> ThresholdRule:
        """The rule for udfs/rules/alert.py."""
        bound = float(self.below if self.above is None else self.above)  # type: ignore[arg-type]
        back = -abs(bound) / 10 if self.above is not None else abs(bound) / 10
        return ThresholdRule(
            name=self.name,
            bound=bound,
            clear=bound + back if self.clear is None else self.clear,
            for_ms=1_000 * self.for_s,
            stale_ms=1_000 * self.stale_s,
            is_above=self.above is not None,
        )


class Webhook(Section):
    """The recipient of `quotaflow notify`: an address that takes JSON by POST."""

    url: Annotated[str, matches("(env|secret):.+", "write env:NAME or secret:scope/key")]
    """An address that takes JSON by POST, as a reference; https, except for this machine itself."""
    timeout_s: Annotated[float, Field(gt=0, le=60)] = 10.0
    """Seconds for a connection, and for an answer; above 0, at most 60."""
    max_attempts: Annotated[int, Field(ge=1, le=10)] = 3
    """How often one object is posted without a good answer; 1 to 10."""
    max_events: Annotated[int, Field(ge=1, le=1_000)] = 20
    """Events that one run posts one by one; more are summed up; 1 to 1,000."""
    max_age_s: Seconds = 86_400
    """Seconds after which an event is no longer sent."""


class AlertsSection(Section):
    """Alert rules on clients' metrics (docs/telemetry.md), and the receiver of `quotaflow notify`
    (docs/alerts.md).

    The default rule is the example of KIP-714.
    """

    webhook: Webhook | None = None
    """Receiver of events. null: none."""
    rules: list[AlertRule] = Field(
        default_factory=lambda: [
            AlertRule(
                name="producer-queue-time",
                metric="org.apache.kafka.producer.record.queue.time.avg",
                above=5_000.0,
            )
        ]
    )
    """When values are an alert; `[]`: no alerts."""

    @field_validator("rules")
    @classmethod
    def _names_differ(cls, rules: list[AlertRule]) -> list[AlertRule]:
        names = [rule.name for rule in rules]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two rules are named {twice[0]}: give each a name of its own")
        return rules
