"""Sections of conf about what is read: topics, sampling, payloads, fetch sessions, privacy.

A broker logs every request or none, so sampling leaves out lines at ingest.
"""

import difflib
import re
import zoneinfo
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field, field_validator

from quotaflow.pipelines.config import secrets
from quotaflow.pipelines.config.base import Positive, Principal, Seconds, Section, Topic, matches
from quotaflow.pipelines.errors import ConfigError
from quotaflow.schemas.events import BODY_APIS, SAMPLED_APIS
from quotaflow.udfs.rules.pseudonym import MIN_KEY_BYTES, Pseudonyms

if TYPE_CHECKING:
    from quotaflow.udfs.otlp.codecs import Limits
    from quotaflow.udfs.request_log.options import LineOptions

_MOST = 1_000
_EXACT = 1e-9


def one_of(fraction: float) -> int:
    """How many lines a kept line represents."""
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
"""API -> the part of its lines that is kept, such as 0.1."""


def _has_body(api: str) -> str:
    if api not in BODY_APIS:
        near = difflib.get_close_matches(api.upper(), BODY_APIS, n=1)
        hint = f"did you mean {near[0]}?" if near else "see BODY_APIS in schemas/events.py"
        raise ValueError(f"{api} is no API whose body is kept ({hint})")
    return api


def time_zones() -> set[str]:
    """Zones of the IANA database; without `localtime`, which this machine may name its own."""
    return zoneinfo.available_timezones() - {"localtime"}


def _is_zone(name: str) -> str:
    if name not in time_zones():
        near = difflib.get_close_matches(name, time_zones(), n=1)
        hint = f"did you mean {near[0]}?" if near else "write one such as Europe/Berlin"
        raise ValueError(f"{name} is no time zone of the IANA database ({hint})")
    return name


def _is_path(field: str) -> str:
    keys = [key for key in re.split(r"[.\[\]'\"/\s]+", field.removeprefix("$")) if key]
    near = ".".join(key for key in keys if not key.isdecimal() and key != "*")
    if not near or near != field:
        hint = f"write {near}" if near else "write the keys that lead to it, such as payload.raw"
        raise ValueError(f"{field!r} names no field ({hint})")
    return field


LineField = Annotated[str, AfterValidator(_is_path)]
BodyApi = Annotated[str, AfterValidator(_has_body)]
TimeZone = Annotated[str, AfterValidator(_is_zone)]


class FetchSessionsSection(Section):
    """How long fetch sessions (KIP-227) are followed, and how many."""

    idle_s: Seconds = 3_600
    """Seconds without a fetch after which a session counts as gone."""
    slots_per_broker: Positive = 2_000
    """Sessions of a broker that are kept, the newest; a broker itself keeps 1000, unless
    `max.incremental.fetch.session.cache.slots` sets another number.
    """


class IngestSection(Section):
    """The topics to read, and bounds on them; a topic that is null is not read."""

    request_log_topic: Topic | None = "broker_request_logs"
    """Topic of the brokers' request log."""
    receiver_topic: Topic | None = "client_telemetry"
    """Topic with the pushes of clients, from the telemetry receiver of the brokers."""
    otlp_topic: Topic | None = None
    """Topic of an OpenTelemetry Collector's Kafka exporter."""
    max_offsets_per_trigger: Positive = 200_000
    """Records that one batch reads of a topic, at most (docs/scaling.md)."""
    max_line_bytes: Positive = 4 * 1024 * 1024
    """Bytes of a record, at most: a longer one is a row of `quarantine` (`line_too_long`,
    `payload_too_large`).
    """
    max_body_bytes: Positive = 256 * 1024
    """Bytes of a request and its answer that `requests` keeps as text, at most: a longer one keeps
    only its size.
    """
    max_clock_skew_s: Seconds = 60
    """Seconds that a broker's time may be ahead of its record's; a later one becomes that time.
    `doctor` warns of clocks that are further off.
    """
    shippers: list[str] = Field(default_factory=lambda: ["quotaflow-shipper"])
    """Client ids whose own requests are left out, with a login of `shipper_principals`: otherwise
    each shipped line would cause another line.
    """
    shipper_principals: list[Principal] = Field(
        default_factory=lambda: ["User:receiver", "User:shipper"]
    )
    """Principals (as Kafka prints them) that fill the topics: the shipper's and the telemetry
    receiver's. Their quotas are neither advised nor planned. If clients do not log in, name
    `User:ANONYMOUS`.
    """
    controller_listeners: list[str] = Field(default_factory=lambda: ["CONTROLLER"])
    """Listeners of the controllers (`controller.listener.names` of the brokers, which `init` reads
    and `doctor` compares): raft requests there are left out.
    """
    sampling: Sampling = Field(default={})
    """API to the part of its lines that is kept: 1, 1/2, 1/3 to 1/1000, for `PRODUCE`, `HEARTBEAT`,
    `OFFSET_FETCH` and `FIND_COORDINATOR` (docs/connect.md#too-many-lines).
    """
    without_body: list[BodyApi] = Field(default=[])
    """APIs whose request and response are not kept in `body`, such as `HEARTBEAT`; what is not kept
    can never be computed later: without those of groups `group_members` has no member ids,
    `group_commits` no partitions, and `share_fetches` no records. A body costs 2 to 8 us and 2 to
    90 bytes a line.
    """
    time_zone: TimeZone | None = None
    """Time zone of times in a log layout that do not name theirs, such as `Europe/Berlin`; null:
    the time of the shipper's record is used, else that of the Kafka record. Of an hour that comes
    twice, the record's time decides (docs/connect.md#what-is-read-of-a-record).
    """

    line_field: LineField | None = None
    """Field that has the line in a record of a shipper that is not known, such as `payload.raw`:
    its keys with dots between them, without places in lists. The rows of `quarantine` with
    `wrapped_line` name it. Of several fields with a line, this one counts.
    """

    @property
    def line_options(self) -> "LineOptions":
        """The same as the parser of lines takes it."""
        from quotaflow.udfs.request_log.options import LineOptions  # noqa: PLC0415  as below

        return LineOptions(
            max_line_bytes=self.max_line_bytes,
            max_body_bytes=self.max_body_bytes,
            max_clock_skew_s=self.max_clock_skew_s,
            shippers=tuple(self.shippers),
            shipper_principals=tuple(self.shipper_principals),
            controller_listeners=tuple(self.controller_listeners),
            sampling={api: one_of(fraction) for api, fraction in self.sampling.items()},
            without_body=tuple(self.without_body),
            time_zone=self.time_zone,
            line_field=self.line_field,
        )


class PayloadsSection(Section):
    """Bounds on the size of one telemetry payload."""

    max_decoded_bytes: Positive = 16 * 1024 * 1024
    """Bytes after decompression, at most: `payload_too_large`."""
    max_ratio: Positive = 1_000
    """Times its size that a payload may decompress to, where that is more than 4 MiB:
    `ratio_too_high`.
    """
    max_points: Positive = 100_000
    """Data points with their exemplars and quantiles, at most: `points_over_limit`."""
    max_attributes: Positive = 128
    """Attributes of one point, resource or scope that are kept; `otel.dropped_attributes_count` has
    the number of the others.
    """
    max_string_chars: Positive = 4_096
    """Characters of a name or a value; a longer one is cut and ends in `…`."""

    @property
    def limits(self) -> "Limits":
        """The same bounds as the decoder takes them."""
        from quotaflow.udfs.otlp.codecs import Limits  # noqa: PLC0415  imports pyarrow

        return Limits(
            decoded_bytes=self.max_decoded_bytes,
            ratio=self.max_ratio,
            points=self.max_points,
            attributes=self.max_attributes,
            string_chars=self.max_string_chars,
        )


Column = Literal["client_address", "client_id"]


class PrivacySection(Section):
    """Which columns hold pseudonyms from ingest on, and by which key:
    docs/security.md#names-that-must-not-be-kept.

    Existing rows keep their pseudonyms, so rows do not join across two keys.
    """

    key: str | None = None
    """Reference to a key of 32 bytes or more. null: nothing is hidden."""
    key_id: Annotated[
        str, matches("[a-z0-9]{1,16}", "write up to 16 small letters and digits, such as k2")
    ] = "k1"
    """Part of every pseudonym: use another id with another key; 1 to 16 lower-case letters and
    digits.
    """
    columns: list[Column] = Field(default=["client_address", "client_id"], min_length=1)
    """Columns that are hidden: one of these or both."""

    @field_validator("key")
    @classmethod
    def _by_reference(cls, key: str | None) -> str | None:
        if key is not None and not key.startswith(secrets.REFERENCES):
            raise ValueError("holds a secret in plain text: write env:NAME or secret:scope/key")
        return key

    def hides(self, column: str) -> bool:
        """Whether a column holds pseudonyms."""
        return self.key is not None and column in self.columns

    def pseudonyms(self) -> Pseudonyms | None:
        """The pseudonyms of this key; None without a key. Raises ConfigError for a short key."""
        if self.key is None:
            return None
        key = secrets.look_up("privacy.key", self.key).encode()
        if len(key) < MIN_KEY_BYTES:
            raise ConfigError(
                f"privacy.key has {len(key)} bytes, at least {MIN_KEY_BYTES} are needed: "
                "take openssl rand -hex 32"
            )
        return Pseudonyms(key, self.key_id, frozenset(self.columns))
