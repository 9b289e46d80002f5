"""The section `alerts` of conf: alert rules, and whom `quotaflow notify` sends events."""

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from quotaflow.pipelines.config.base import LONGEST_S, Bound, Seconds, Section, matches
from quotaflow.pipelines.config.receivers import Receiver, Silence
from quotaflow.udfs.rules.alert import ThresholdRule

Severity = Literal["critical", "warning", "info"]
# The number of parts of prefixes such as org.apache.kafka.producer.
_KIND = 4
_Column = Annotated[str, matches(r"\w{1,100}", "write the name of a column, such as client_id")]
Columns = Annotated[list[_Column], Field(max_length=10)]
_OF_METRICS = ("labels", "above", "below", "clear", "stale_s", "subscribe_metrics")
_OF_ROWS = ("where", "key", "show")


class AlertRule(Section):
    """When a metric of a client (KIP-714), or a row of a table, view or answer, opens an alert.

    A rule has either `metric` with `above` or `below`, or `view` with `where`.
    """

    name: Annotated[
        str, matches(r"[\w.-]{1,64}", "write up to 64 letters, digits, . _ -, such as queue-time")
    ]
    """A name of its own: 1 to 64 letters, digits, `.`, `-` and `_`."""
    severity: Severity = "warning"
    """critical, warning or info: receivers filter by it."""
    owner: Annotated[str, matches(r"[^\x00-\x1f\x7f]{1,64}", "write a name in one line")] | None = (
        None
    )
    """Team that owns the alert: receivers filter by it. null: the team of `teams` that owns the
    name.
    """
    for_s: Annotated[int, Field(ge=0, le=LONGEST_S)] = 180
    """Seconds: an alert opens when values were past the bound, or the row was there, for longer; 0
    or more.
    """
    view: Annotated[str, matches(r"[a-z_]{1,100}", "write a name, such as group_lag")] | None = None
    """Table, view or answer whose rows are watched, such as `incidents`, `diagnoses` or
    `group_lag`: see `quotaflow tables`. A view is about the last day.
    """
    where: Annotated[str, Field(max_length=2_000)] | None = None
    """SQL over columns of `view`, such as `lag_s > 300`: rows for which it is true open alerts."""
    key: Columns = Field(default=[])
    """Columns of `view`: rows with the same values are one alert. []: one alert per cluster."""
    show: Columns = Field(default=[])
    """Further columns of `view` whose values the notification has."""
    metric: Annotated[str, Field(min_length=1)] | None = None
    """Name of the metric of clients; `*` matches any text. The keys below belong to it."""
    labels: dict[str, str] = Field(default={})
    """Attributes that the point must have."""
    above: Bound | None = None
    """The bound, in the metric's unit: past it is more than this. One of `above` and `below` must
    be given.
    """
    below: Bound | None = None
    """The same: past it is less than this."""
    clear: Bound | None = None
    """The value at which an alert closes. null: a tenth inside the bound."""
    stale_s: Seconds = 600
    """Seconds without a value after which an alert closes."""
    subscribe_metrics: list[str] | None = None
    """Prefixes of metrics that the client is asked for while an alert is open. null: all metrics of
    the same kind (`org.apache.kafka.producer.`); `[]`: none.
    """
    subscribe_interval_s: Annotated[int, Field(ge=1, le=300)] = 10
    """Seconds between two pushes during an open alert; 1 to 300."""

    @field_validator("key", "show")
    @classmethod
    def _columns_once(cls, columns: list[str]) -> list[str]:
        if twice := [name for name in columns if columns.count(name) > 1]:
            raise ValueError(f"{twice[0]} is named twice: name each column once")
        return columns

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
        if self.metric is None:
            return []
        if self.subscribe_metrics is not None:
            return self.subscribe_metrics
        parts = self.metric.partition("*")[0].split(".")
        return [".".join(parts[:_KIND]) + "."] if len(parts) > _KIND else []

    @model_validator(mode="after")
    def _one_kind(self) -> "AlertRule":
        if (self.metric is None) == (self.view is None):
            raise ValueError(f"{self.name}: give one of metric and view")
        others = _OF_ROWS if self.view is None else _OF_METRICS
        defaults = {key: type(self).model_fields[key] for key in others}
        if foreign := [
            key
            for key, field in defaults.items()
            if getattr(self, key) != field.get_default(call_default_factory=True)
        ]:
            kind = "metric" if self.view is None else "view"
            raise ValueError(f"{self.name}: a rule of a {kind} has no {foreign[0]}")
        if self.view is not None:
            if not (self.where or "").strip():
                raise ValueError(f"{self.name}: write which rows: where: lag_s > 300")
            return self
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


Named = AlertRule | Receiver


class AlertsSection(Section):
    """Alert rules, and the receivers of `quotaflow notify` (docs/alerts.md).

    The default rule is the example of KIP-714.
    """

    receivers: Annotated[list[Receiver], Field(max_length=50)] = Field(default=[])
    """Who is sent events; each has the keys of `alerts.receivers[]`."""
    silences: Annotated[list[Silence], Field(max_length=100)] = Field(default=[])
    """Times in which nobody is sent what matches; each has the keys of `alerts.silences[]`."""
    max_age_s: Seconds = 86_400
    """Seconds after which an event is no longer sent."""
    rules: list[AlertRule] = Field(
        default_factory=lambda: [
            AlertRule(
                name="producer-queue-time",
                metric="org.apache.kafka.producer.record.queue.time.avg",
                above=5_000.0,
            )
        ]
    )
    """When values or rows are an alert; `[]`: no alerts."""

    @field_validator("rules", "receivers")
    @classmethod
    def _names_differ(cls, named: list[Named]) -> list[Named]:
        names = [each.name for each in named]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two are named {twice[0]}: give each a name of its own")
        return named

    @property
    def metric_rules(self) -> list[AlertRule]:
        """The rules on metrics of clients."""
        return [rule for rule in self.rules if rule.metric is not None]

    @property
    def row_rules(self) -> list[AlertRule]:
        """The rules on rows of tables, views and answers."""
        return [rule for rule in self.rules if rule.view is not None]
