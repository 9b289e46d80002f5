"""The section `monitoring` of conf: where own metrics are sent."""

from typing import Annotated

from pydantic import Field

from quotaflow.pipelines.config.base import Section, matches

Reference = Annotated[str, matches("(env|secret):.+", "write env:NAME or secret:scope/key")]
_HEADER = matches(r"[A-Za-z0-9-]{1,64}", "write a header's name, such as Authorization")


class OtlpTarget(Section):
    """An endpoint that takes metrics as OTLP over HTTP, in protobuf.

    `url` is the whole address, or a reference to it. Values of `headers` are secrets, so they are
    references; with headers the address is https, but for this machine itself.
    """

    url: Annotated[str, Field(min_length=1)]
    headers: dict[Annotated[str, _HEADER], Reference] = Field(default_factory=dict)
    interval_s: Annotated[int, Field(ge=5, le=3_600)] = 60
    timeout_s: Annotated[float, Field(gt=0, le=60)] = 10.0


class MonitoringSection(Section):
    """Where `quotaflow run` sends its own metrics, beside those that Prometheus scrapes."""

    otlp: OtlpTarget | None = None
