"""Durations and times as people write them."""

import re
from datetime import UTC, datetime, time, timedelta

from quotaflow.pipelines.errors import ConfigError

FORMS = "10m ago, 19:45+02:00 or 2026-01-31T12:00 (UTC unless it has a zone)"
"""The forms of a time, for help texts."""

_DURATION = re.compile(r"(\d{1,9})(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def seconds(duration: str) -> int:
    """Seconds in a duration such as 10s, 5m, 2h or 1d; at least 1."""
    match = _DURATION.fullmatch(duration.strip())
    if match is None or not int(match[1]):
        raise ConfigError(f"{duration!r} is no duration: write 10s, 5m, 2h or 1d")
    return int(match[1]) * _SECONDS[match[2]]


def since(text: str, now: datetime, option: str = "--since") -> datetime:
    """The time a duration ago, an ISO time, or the last time that a clock showed this hour.

    A time without a zone is UTC, on a machine of any zone. Raises ConfigError.
    """
    if _DURATION.fullmatch(text.strip()):
        return _ago(text, now, option)
    try:
        moment = _of_clock(text.strip(), now) or datetime.fromisoformat(text.strip())
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise ConfigError(
            f"{option} {text!r}: write how long ago (10m, 2h), a time of the last 24 hours "
            "(19:45+02:00) or an ISO time (2026-01-31T12:00:00Z); without a zone it is UTC"
        ) from None


def _of_clock(text: str, now: datetime) -> datetime | None:
    """The newest time up to now at which a clock showed this; None for a text with a date."""
    if ":" not in text[:3]:
        return None
    shown = time.fromisoformat(text)
    zone = shown.tzinfo or UTC
    today = datetime.combine(now.astimezone(zone).date(), shown, zone)
    return today if today <= now else today - timedelta(days=1)


def _ago(duration: str, now: datetime, option: str) -> datetime:
    try:
        return now - timedelta(seconds=seconds(duration))
    except OverflowError:
        raise ConfigError(f"{option} {duration} is before the year 1: give a shorter one") from None
