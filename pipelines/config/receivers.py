"""Receivers of `quotaflow notify`, and silences: parts of the section `alerts` of conf."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from quotaflow.pipelines.config.base import Section, matches
from quotaflow.pipelines.config.cluster import Pattern, Patterns

Kind = Literal[
    "alert",
    "incident",
    "plan_waiting",
    "quota_without_gain",
    "change_failed",
    "check_failed",
    "producer_ids_accused",
]
Format = Literal["webhook", "slack", "teams", "pagerduty", "alertmanager", "mail"]
Reference = Annotated[str, matches("(env|secret):.+", "write env:NAME or secret:scope/key")]
_Address = Annotated[
    str, matches(r"[^\s<>@,]{1,64}@[^\s<>@,]{1,255}", "write an address, such as ops@example.com")
]
_NEEDS: dict[str, tuple[str, ...]] = {
    "pagerduty": ("routing_key",),
    "mail": ("smtp", "sender", "to"),
}
_OF_FORMATS = ("url", "routing_key", "smtp", "sender", "to", "user", "password")
_ALSO = {"pagerduty": {"url"}, "mail": {"user", "password"}}


def _moment(given: Any) -> Any:
    """A time of YAML or ISO 8601; one without a zone is in UTC."""
    if isinstance(given, str):
        given = datetime.fromisoformat(given)
    is_plain = isinstance(given, datetime) and given.tzinfo is None
    return given.replace(tzinfo=UTC) if is_plain else given


Moment = Annotated[datetime, BeforeValidator(_moment)]


class Receiver(Section):
    """A receiver of `quotaflow notify`: the format, the address, and which events it gets."""

    name: Annotated[
        str, matches(r"[\w.-]{1,64}", "write up to 64 letters, digits, . _ -, such as on-call")
    ]
    """A name of its own: 1 to 64 letters, digits, `.`, `-` and `_`."""
    format: Format = "webhook"
    """webhook (JSON), slack, teams, pagerduty (Events v2), alertmanager (v2) or mail."""
    url: Reference | None = None
    """The address, as a reference; https, except for this machine itself. For alertmanager it ends
    before `/api/v2/alerts`. For pagerduty null means the address of PagerDuty.
    """
    routing_key: Reference | None = None
    """The integration key of PagerDuty, as a reference."""
    smtp: Annotated[str, matches(r"[\w.-]+:\d{1,5}", "write HOST:PORT")] | None = None
    """The mail server, `HOST:PORT`. Port 465 means TLS, any other STARTTLS. A server of this
    machine needs no TLS.
    """
    sender: _Address | None = None
    """The address that mails are from."""
    to: Annotated[list[_Address], Field(max_length=50)] = Field(default=[])
    """The addresses that mails go to."""
    user: Reference | None = None
    """The user at the mail server, as a reference. null: no login."""
    password: Reference | None = None
    """Its password, as a reference."""
    clusters: Annotated[list[str], Field(max_length=100)] = Field(default=[])
    """Only events of these Kafka clusters (ids). []: of all."""
    teams: Annotated[list[str], Field(max_length=100)] = Field(default=[])
    """Only events of these teams: the `owner` of the rule, else the team of `teams` that owns the
    client or the topic. []: of all, also of none.
    """
    severities: list[Literal["critical", "warning", "info"]] = Field(default=[])
    """Only events of these severities. []: of all."""
    kinds: list[Kind] = Field(default=[])
    """Only events of these kinds. []: of all."""
    timeout_s: Annotated[float, Field(gt=0, le=60)] = 10.0
    """Seconds for a connection, and for an answer; above 0, at most 60."""
    max_attempts: Annotated[int, Field(ge=1, le=10)] = 3
    """How often one event is sent without a good answer; 1 to 10."""
    max_events: Annotated[int, Field(ge=1, le=1_000)] = 20
    """Events that one run sends one by one; 1 to 1,000. More become one summary, but for ends of
    what is open at a webhook, pagerduty or alertmanager.
    """

    @model_validator(mode="after")
    def _has_its_keys(self) -> "Receiver":
        needed = _NEEDS.get(self.format, ("url",))
        if missing := [key for key in needed if not getattr(self, key)]:
            raise ValueError(f"{self.name}: {self.format} needs {missing[0]}")
        allowed = {*needed, *_ALSO.get(self.format, ())}
        if foreign := [k for k in _OF_FORMATS if getattr(self, k) and k not in allowed]:
            raise ValueError(f"{self.name}: {self.format} has no {foreign[0]}")
        for one, other in (("user", "password"), ("password", "user")):
            if getattr(self, one) and not getattr(self, other):
                raise ValueError(f"{self.name}: {self.format} needs {other}, because it has {one}")
        return self


class Silence(Section):
    """A time in which matching events are not sent, nor after it. Ends of what was sent are."""

    since: Moment
    """From this time on (ISO 8601; without a zone in UTC)."""
    until: Moment
    """Up to this time."""
    rules: Patterns = Field(default=[])
    """Only alerts of rules with these names; `*` matches any text. []: all events."""
    kinds: list[Kind] = Field(default=[])
    """Only events of these kinds. []: of all."""
    labels: dict[str, Pattern] = Field(default={})
    """Only events with these labels (docs/alerts.md#what-does-a-receiver-get), such as `client_id:
    batch-*`; `*` matches any text.
    """

    @model_validator(mode="after")
    def _ends(self) -> "Silence":
        if self.until <= self.since:
            raise ValueError("a silence must end after it begins")
        return self
