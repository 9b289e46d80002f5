"""The section `monitoring` of conf: answers as metrics, and where points of clients are sent to."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from quotaflow.pipelines.config.base import Bound, Seconds, Section, matches
from quotaflow.pipelines.config.cluster import Pattern, Patterns
from quotaflow.pipelines.config.receivers import Reference

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
    names: Patterns = Field(default=[])
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


_Url = Annotated[
    str,
    matches(
        "(env|secret):.+|https?://.+",
        "write https://HOST/v1/metrics, or a reference: env:NAME or secret:scope/key",
    ),
]
_Header = Annotated[str, matches(r"[A-Za-z0-9-]{1,100}", "write a name such as Authorization")]
_Label = Annotated[str, Field(min_length=1, max_length=255)]


class Forward(Section):
    """A receiver of OTLP over HTTP that gets the points of clients (KIP-714), beside the tables:
    docs/telemetry.md#how-do-these-metrics-reach-my-metrics-system.
    """

    url: _Url
    """The whole address, such as https://collector:4318/v1/metrics, or a reference to it."""
    headers: Annotated[dict[_Header, Reference], Field(max_length=20)] = Field(default={})
    """Headers of each request, such as `Authorization: env:OTLP_TOKEN`: the values are
    references.
    """
    plain_http: bool = False
    """`true`: the address may be http of another machine, such as a Collector in the same
    Kubernetes cluster. Names of clients and headers are then not encrypted.
    """
    metrics: Patterns = Field(default=[])
    """Only metrics with these names; `*` matches any text. []: all."""
    labels: Annotated[dict[_Label, Pattern], Field(max_length=10)] = Field(default={})
    """Only points with these attributes, such as `topic: orders-*`; `*` matches any text."""
    max_age_s: Seconds = 3_600
    """Seconds from the record of a push on, after which its points are no longer sent: they are
    counted as late.
    """
    max_batch_s: Annotated[int, Field(ge=1, le=3_600)] = 60
    """Seconds that one batch is sent for; 1 to 3,600. The points that are left then are not sent,
    and are counted as late.
    """
    timeout_s: Annotated[float, Field(gt=0, le=60)] = 10.0
    """Seconds for a connection, and for an answer; above 0, at most 60."""
    max_attempts: Annotated[int, Field(ge=1, le=10)] = 3
    """How often one request is sent without an answer that decides; 1 to 10."""


class MonitoringSection(Section):
    """Answers as metrics of Prometheus, and points of clients by OTLP: names of clients leave the
    tables only by these keys.
    """

    export: Annotated[list[Export], Field(max_length=7)] = Field(default=[])
    """Which answers are metrics beside those of quotaflow itself, each with the keys of
    `monitoring.export[]`.
    """

    forward: Forward | None = None
    """The receiver of the points of clients, with the keys of `monitoring.forward`. null: none."""

    @field_validator("export")
    @classmethod
    def _each_once(cls, exports: list[Export]) -> list[Export]:
        names = [each.answer for each in exports]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"{twice[0]} is exported twice: name it once")
        return exports
