"""Sections of conf about what is read: topics, sampling, bounds on payloads, fetch sessions.

A broker logs every request or none, so sampling leaves out lines at ingest.
"""

import difflib
from typing import Annotated

from pydantic import AfterValidator, Field

from quotaflow.pipelines.config.base import Positive, Principal, Section, Topic
from quotaflow.schemas.events import SAMPLED_APIS

_MOST = 1_000
_EXACT = 1e-9


def one_of(fraction: float) -> int:
    """How many lines a kept one stands for."""
    return round(1 / fraction)


def _checked(sampling: dict[str, float]) -> dict[str, float]:
    for api, fraction in sampling.items():
        if api not in SAMPLED_APIS:
            near = difflib.get_close_matches(api.upper(), SAMPLED_APIS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"those that may: {_LISTED}"
            raise ValueError(
                f"{api} is no API that may be sampled ({hint}): rules need each line of all others"
            )
        whole = one_of(fraction) if fraction > 0 else 0
        if not 1 <= whole <= _MOST or abs(fraction * whole - 1) > _EXACT:
            raise ValueError(
                f"{api}: {fraction} must be 1, 1/2, 1/3 ... 1/{_MOST}: write 0.5, 0.25, 0.1, 0.01"
            )
    return sampling


_LISTED = ", ".join(SAMPLED_APIS)
Sampling = Annotated[dict[str, float], AfterValidator(_checked)]
"""API -> which part of its lines is kept."""


class FetchSessionsSection(Section):
    """How long fetch sessions (KIP-227) are followed, and how many.

    One that nobody used for `idle_s` counts as gone. Of each broker's the newest
    `slots_per_broker` are kept; a broker itself keeps 1000, unless it says otherwise
    (max.incremental.fetch.session.cache.slots).
    """

    idle_s: Positive = 3_600
    slots_per_broker: Positive = 2_000


class IngestSection(Section):
    """What is read, and how much at once; a topic that is null is a way in switched off.

    `shippers` names the client ids whose own requests are left out (the recursion trap);
    `shipper_principals`, as Kafka prints them, the logins that fill the topics: no quota of theirs
    is advised or planned.
    `sampling` says of which APIs only a part of the lines is kept.
    """

    request_log_topic: Topic | None = "broker_request_logs"
    receiver_topic: Topic | None = "client_telemetry"
    otlp_topic: Topic | None = None
    max_offsets_per_trigger: Positive = 200_000
    max_line_bytes: Positive = 4 * 1024 * 1024
    max_body_bytes: Positive = 256 * 1024
    max_clock_skew_s: Positive = 60
    shippers: list[str] = Field(default_factory=lambda: ["quotaflow-shipper"])
    shipper_principals: list[Principal] = Field(
        default_factory=lambda: ["User:receiver", "User:shipper"]
    )
    sampling: Sampling = Field(default_factory=dict)


class PayloadsSection(Section):
    """Bounds on what one telemetry payload may cost."""

    max_decoded_bytes: Positive = 16 * 1024 * 1024
    max_ratio: Positive = 1_000
    max_points: Positive = 100_000
    max_attributes: Positive = 128
    max_string_chars: Positive = 4_096
