"""The section `monitoring` of conf: where own metrics are sent."""

from typing import Annotated

from pydantic import Field

from quotaflow.pipelines.config.base import Section, matches

Reference = Annotated[str, matches("(env|secret):.+", "write env:NAME or secret:scope/key")]
_HEADER = matches(r"[A-Za-z0-9-]{1,64}", "write a header's name, such as Authorization")


class OtlpTarget(Section):
    """An endpoint that takes metrics as OTLP over HTTP, in protobuf: docs/operate.md#metrics."""

    url: Annotated[str, Field(min_length=1)]
    """Its whole address, such as `http://collector:4318/v1/metrics`, or a reference to it."""
    headers: dict[Annotated[str, _HEADER], Reference] = Field(default_factory=dict)
    """Header to a reference to its value. With headers the address is https, except for this
    machine itself.
    """
    interval_s: Annotated[int, Field(ge=5, le=3_600)] = 60
    """Seconds between two exports; 5 to 3,600. One more is at the end of a run."""
    timeout_s: Annotated[float, Field(gt=0, le=60)] = 10.0
    """Seconds for an export; above 0, at most 60."""


class MonitoringSection(Section):
    """Where `quotaflow run` sends its own metrics, beside those that Prometheus scrapes."""

    otlp: OtlpTarget | None = None
    """An endpoint that takes metrics as OTLP over HTTP, in protobuf. null: none."""
