"""The section `monitoring` of conf: which answers are exported as metrics, and where to."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from quotaflow.pipelines.config.base import Bound, Section
from quotaflow.pipelines.config.cluster import Patterns

Exported = Literal[
    "group_lag",
    "quota_headroom",
    "throttled_clients",
    "incidents",
    "move_progress",
    "producer_id_rates",
    "cost",
]


class Export(Section):
    """An answer whose rows are metrics, each while it is past a bound."""

    answer: Exported
    """The answer: docs/operate.md#metrics-of-answers."""
    names: Patterns = Field(default_factory=list)
    """Only these groups, users, principals, topics or origins of incidents; `*` matches any text.
    []: all.
    """
    top: Annotated[int, Field(ge=1, le=1_000)] = 50
    """Rows at most, those that are furthest past the bound; 1 to 1,000. Others are counted in
    `quotaflow_series_dropped`.
    """
    above: Bound | None = None
    """The bound, in the unit of the answer's first metric: a row is a metric while it has more.
    null: the bound that the page of metrics has.
    """


class MonitoringSection(Section):
    """Answers as metrics of Prometheus: names of clients leave the tables only by it."""

    export: Annotated[list[Export], Field(max_length=7)] = Field(default_factory=list)
    """Which answers are metrics beside those of quotaflow itself, each with the keys of
    `monitoring.export[]`.
    """

    @field_validator("export")
    @classmethod
    def _each_once(cls, exports: list[Export]) -> list[Export]:
        names = [each.answer for each in exports]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"{twice[0]} is exported twice: name it once")
        return exports
