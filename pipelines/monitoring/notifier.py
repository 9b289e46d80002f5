"""Sends events to the receivers of conf: each at least once, and a summary instead of a flood."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from quotaflow.pipelines.config import AlertsSection, Conf
from quotaflow.pipelines.config.cluster import is_like
from quotaflow.pipelines.config.receivers import Receiver, Silence
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.monitoring import notifications, open_incidents, senders, sent_log
from quotaflow.pipelines.monitoring.notifications import Notification
from quotaflow.pipelines.monitoring.open_incidents import OpenIncidents
from quotaflow.pipelines.monitoring.senders import Send
from quotaflow.pipelines.monitoring.sent_log import SentLog
from quotaflow.pipelines.monitoring.webhook import UnreachedError

_SUMMARY = "summary"
_SEVERITIES = ("critical", "warning", "info")
_REMEMBERED = timedelta(days=30)
"""How long it is remembered that a beginning was sent, so that its end is sent in a silence too."""


@dataclass(slots=True)
class Delivery:
    """The outcome at a receiver: events sent, summarized, refused, and pending for `problem`."""

    receiver: str
    sent: int = 0
    summarized: int = 0
    refused: list[str] = field(default_factory=list)
    pending: int = 0
    problem: str | None = None


def pending(conf: Conf, now: datetime) -> list[tuple[Notification, list[str]]]:
    """Events to send now, oldest first, and to whom. Raises ConfigError if conf has no receiver."""
    log = sent_log.open_log(conf)
    notices, _ = _read(conf, log, now)
    names: dict[str, list[str]] = {}
    for receiver in conf.alerts.receivers:
        for notice in _due(notices, receiver, conf.alerts, log):
            names.setdefault(notice.key, []).append(receiver.name)
    return [(notice, names[notice.key]) for notice in notices if notice.key in names]


def deliver(conf: Conf, now: datetime) -> list[Delivery]:
    """Send each receiver its oldest events one by one, and those over its limit in one summary.

    Raises ConfigError for invalid conf; a receiver that fails is the `problem` of its result.
    """
    if not conf.alerts.receivers:
        raise _without_receivers()
    sends = [(each, senders.sender(each, now)) for each in conf.alerts.receivers]
    log = sent_log.open_log(conf)
    notices, incidents = _read(conf, log, now)
    oldest = now - timedelta(seconds=conf.alerts.max_age_s)
    log.forget(oldest)
    incidents.save(oldest)
    return [_deliver(notices, each, send, conf.alerts, log) for each, send in sends]


def summary(notices: Sequence[Notification]) -> Notification:
    """One event for those over the limit: counts by kind, first and last time."""
    counts = dict(sorted(Counter(notice.kind for notice in notices).items()))
    key = sha256("".join(sorted(notice.key for notice in notices)).encode()).hexdigest()[:32]
    clusters = {notice.cluster_id for notice in notices}
    return Notification(
        key=key,
        kind=_SUMMARY,
        cluster_id=clusters.pop() if len(clusters) == 1 else "",
        event_time=notices[-1].event_time,
        text=f"{len(notices)} more: {', '.join(f'{n} {kind}' for kind, n in counts.items())}",
        details={**counts, "first_event_time": notices[0].event_time.astimezone(UTC).isoformat()},
        subject=key,
        group=_SUMMARY,
        severity=min((notice.severity for notice in notices), key=_SEVERITIES.index),
    )


def _read(conf: Conf, log: SentLog, now: datetime) -> tuple[list[Notification], OpenIncidents]:
    """What is to send, oldest first, and which incidents are open now."""
    if not conf.alerts.receivers:
        raise _without_receivers()
    since = now - timedelta(seconds=conf.alerts.max_age_s)
    notices = notifications.read_notifications(conf, since, now)
    incidents = open_incidents.open_incidents(conf)
    shown = notifications.open_now(conf)
    if shown is None:
        return notices, incidents
    reopened = incidents.update(shown, now)
    for notice in notices:
        if notice.subject in reopened:
            for receiver in conf.alerts.receivers:
                log.times.pop(_key(receiver, notice.key), None)
    ends = (notifications.incident_end(conf, row) for row in incidents.ended())
    return sorted([*notices, *ends], key=lambda each: (each.event_time, each.key)), incidents


def _deliver(
    notices: Sequence[Notification],
    receiver: Receiver,
    send: Send,
    alerts: AlertsSection,
    log: SentLog,
) -> Delivery:
    delivery = Delivery(receiver.name)
    left = list(_due(notices, receiver, alerts, log))
    one_by_one, more = left[: receiver.max_events], left[receiver.max_events :]
    try:
        for notice in one_by_one:
            if _is_accepted(send, notice, delivery):
                _remember(log, receiver, [notice])
                delivery.sent += 1
        if more and _is_accepted(send, summary(more), delivery):
            _remember(log, receiver, more)
            delivery.summarized = len(more)
    except UnreachedError as error:
        delivery.problem = f"{receiver.name}: {error}"
    waiting = sum(not log.has(_key(receiver, notice.key)) for notice in left)
    delivery.pending = waiting - len(delivery.refused)
    return delivery


def _is_accepted(send: Send, notice: Notification, delivery: Delivery) -> bool:
    problem = send(notice)
    if problem is not None:
        delivery.refused.append(f"{notice.kind} {notice.key}: {problem}")
    return problem is None


def _due(
    notices: Sequence[Notification], receiver: Receiver, alerts: AlertsSection, log: SentLog
) -> Iterator[Notification]:
    opened = set[str]()
    for notice in notices:
        subject = notice.subject
        if log.has(_key(receiver, notice.key)) or not _is_for(notice, receiver):
            continue
        was_sent = notice.is_end and (subject in opened or log.has(_key(receiver, subject)))
        if was_sent or not any(_is_silent(notice, silence) for silence in alerts.silences):
            opened.add(subject)
            yield notice


def _is_for(notice: Notification, receiver: Receiver) -> bool:
    """Whether the filters of a receiver let an event through."""
    filters = (
        (receiver.clusters, notice.cluster_id),
        (receiver.teams, notice.owner),
        (receiver.severities, notice.severity),
        (receiver.kinds, notice.group),
    )
    return all(not allowed or value in allowed for allowed, value in filters)


def _is_silent(notice: Notification, silence: Silence) -> bool:
    if not silence.since <= notice.event_time < silence.until:
        return False
    rule = notice.labels.get("rule") if notice.group == "alert" else None
    if silence.rules and not any(rule and is_like(rule, each) for each in silence.rules):
        return False
    if silence.kinds and notice.group not in silence.kinds:
        return False
    return all(is_like(notice.labels.get(k, ""), text) for k, text in silence.labels.items())


def _remember(log: SentLog, receiver: Receiver, notices: Sequence[Notification]) -> None:
    openings = [notice for notice in notices if notice.lasts and not notice.is_end]
    log.add(
        [
            *((_key(receiver, notice.key), notice.event_time) for notice in notices),
            *((_key(receiver, each.subject), each.event_time + _REMEMBERED) for each in openings),
        ]
    )


def _key(receiver: Receiver, key: str) -> str:
    return f"{receiver.name} {key}"


def _without_receivers() -> ConfigError:
    return ConfigError(
        "alerts.receivers is empty: write `alerts: {receivers: [{name: chat, format: slack, "
        "url: env:NAME}]}` into conf"
    )
