"""Sends events to a webhook: each at least once, and a summary instead of a flood."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.config.alerts import Webhook
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.monitoring import notifications, sent_log, webhook
from quotaflow.pipelines.monitoring.notifications import Notification
from quotaflow.pipelines.monitoring.sent_log import SentLog
from quotaflow.pipelines.monitoring.webhook import Receiver, UnreachedError

_SUMMARY = "summary"
# Slack reads these as its own markup: <!channel> notifies everyone.
_ESCAPES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"))


@dataclass(slots=True)
class Delivery:
    """The outcome: events sent, summarized, refused, and pending because of `problem`."""

    sent: int = 0
    summarized: int = 0
    refused: list[str] = field(default_factory=list)
    pending: int = 0
    problem: str | None = None


def pending(conf: Conf, now: datetime) -> list[Notification]:
    """Events to send now, oldest first. Raises ConfigError if conf has no webhook."""
    since = now - timedelta(seconds=_webhook(conf).max_age_s)
    log = sent_log.open_log(conf)
    return [
        notice
        for notice in notifications.read_notifications(conf, since, now)
        if not log.has(notice.key)
    ]


def deliver(conf: Conf, now: datetime) -> Delivery:
    """Send the oldest events one by one, and those over the limit in one summary.

    Raises ConfigError for invalid conf; a webhook that fails is the `problem` of the result.
    """
    target = _webhook(conf)
    receiver, log = webhook.receiver(target), sent_log.open_log(conf)
    left = pending(conf, now)
    log.forget(now - timedelta(seconds=target.max_age_s))
    delivery = Delivery()
    try:
        _one_by_one(left[: target.max_events], receiver, log, delivery)
        _in_summary(left[target.max_events :], receiver, log, delivery)
    except UnreachedError as error:
        delivery.problem = str(error)
    delivery.pending = sum(not log.has(notice.key) for notice in left) - len(delivery.refused)
    return delivery


def body(notice: Notification) -> dict[str, Any]:
    """The posted object: `text` is what Slack shows, the rest is for programs."""
    return {
        "text": escaped(notice.text),
        "id": notice.key,
        "kind": notice.kind,
        "cluster_id": notice.cluster_id,
        "event_time": notice.event_time.astimezone(UTC).isoformat(),
        "details": {name: _plain(value) for name, value in notice.details.items()},
    }


def escaped(text: str) -> str:
    """Text with Slack's markup escaped."""
    for character, escape in _ESCAPES:
        text = text.replace(character, escape)
    return text


def _one_by_one(
    notices: Sequence[Notification], receiver: Receiver, log: SentLog, delivery: Delivery
) -> None:
    for notice in notices:
        problem = receiver.post(notice.key, body(notice))
        if problem is None:
            log.add([(notice.key, notice.event_time)])
            delivery.sent += 1
        else:
            delivery.refused.append(f"{notice.kind} {notice.key}: {problem}")


def _in_summary(
    notices: Sequence[Notification], receiver: Receiver, log: SentLog, delivery: Delivery
) -> None:
    if not notices:
        return
    key = sha256("".join(sorted(notice.key for notice in notices)).encode()).hexdigest()[:32]
    problem = receiver.post(key, summary(key, notices))
    if problem is None:
        log.add((notice.key, notice.event_time) for notice in notices)
        delivery.summarized = len(notices)
    else:
        delivery.refused.append(f"{_SUMMARY} {key}: {problem}")


def summary(key: str, notices: Sequence[Notification]) -> dict[str, Any]:
    """One object for the events over the limit: counts by kind, first and last time."""
    counts: Mapping[str, int] = Counter(notice.kind for notice in notices)
    of_kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    first, last = (notices[n].event_time.astimezone(UTC).isoformat() for n in (0, -1))
    return {
        "text": f"{len(notices)} more: {of_kinds}",
        "id": key,
        "kind": _SUMMARY,
        "counts": dict(sorted(counts.items())),
        "first_event_time": first,
        "event_time": last,
    }


def _plain(value: Any) -> Any:
    # JSON has neither NaN nor infinity.
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _webhook(conf: Conf) -> Webhook:
    if conf.alerts.webhook is None:
        raise ConfigError(
            "alerts.webhook is not set: write `alerts: {webhook: {url: env:NAME}}` into conf"
        )
    return conf.alerts.webhook
