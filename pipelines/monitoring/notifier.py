"""Sends events to the receivers of conf: each at least once, and a summary instead of a flood."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from quotaflow.pipelines.areas.diagnoses import OF_CLIENTS
from quotaflow.pipelines.config import AlertsSection, Conf
from quotaflow.pipelines.config.cluster import is_like
from quotaflow.pipelines.config.receivers import Receiver, Silence
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.monitoring import notifications, open_incidents, senders, sent_log
from quotaflow.pipelines.monitoring.notifications import INCIDENT_ENDED, Notification
from quotaflow.pipelines.monitoring.open_incidents import OpenIncidents
from quotaflow.pipelines.monitoring.senders import Send
from quotaflow.pipelines.monitoring.sent_log import SentLog
from quotaflow.pipelines.monitoring.webhook import UnreachedError

_SUMMARY = "summary"
_SEVERITIES = ("critical", "warning", "info")
_IDENTITY = ("severity", "owner", "labels")
_KEEPS_STATE = {"webhook", "pagerduty", "alertmanager"}
"""Formats whose receiver has something open until its end comes."""


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

    Raises ConfigError without a receiver, and if the log cannot be written. A receiver that fails,
    or whose address or secret is invalid, is the `problem` of its result.
    """
    log = sent_log.open_log(conf)
    notices, incidents = _read(conf, log, now)
    oldest = now - timedelta(seconds=conf.alerts.max_age_s)
    log.forget(oldest)
    incidents.save(oldest)
    return [_deliver(notices, each, conf.alerts, log, now) for each in conf.alerts.receivers]


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
    tables = notifications.open_tables(conf, since, now)
    notices = notifications.read_notifications(tables, conf, since, now)
    incidents = open_incidents.open_incidents(conf)
    shown = notifications.open_now(tables)
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
    alerts: AlertsSection,
    log: SentLog,
    now: datetime,
) -> Delivery:
    delivery = Delivery(receiver.name)
    one_by_one, more = _split(_due(notices, receiver, alerts, log), receiver, log)
    delivery.pending = len(one_by_one) + len(more)
    try:
        send = senders.sender(receiver, now)
    except ConfigError as error:
        delivery.problem = str(error)
        return delivery
    try:
        for notice in one_by_one:
            if _is_accepted(send, notice, delivery):
                _remember(log, receiver, [notice])
                delivery.sent += 1
            delivery.pending -= 1
        if more:
            if _is_accepted(send, summary(more), delivery):
                _remember(log, receiver, more, is_summary=True)
                delivery.summarized = len(more)
            delivery.pending = 0
    except UnreachedError as error:
        delivery.problem = f"{receiver.name}: {error}"
    return delivery


def _split(
    due: Iterable[Notification], receiver: Receiver, log: SentLog
) -> tuple[list[Notification], list[Notification]]:
    """Those to send one by one, and those over the limit.

    A receiver gets every end of what it has open, however many there are.
    """
    one_by_one, more, opened = list[Notification](), list[Notification](), set[str]()
    for notice in due:
        subject = notice.subject
        is_open = subject in opened or log.opening(_key(receiver, subject)) is not None
        ends = notice.is_end and is_open and receiver.format in _KEEPS_STATE
        if ends or len(one_by_one) < receiver.max_events:
            one_by_one.append(notice)
            opened.add(subject)
        else:
            more.append(notice)
    return one_by_one, more


def _is_accepted(send: Send, notice: Notification, delivery: Delivery) -> bool:
    refusal = send(notice)
    if refusal is not None:
        delivery.refused.append(f"{notice.kind} {notice.key}: {refusal.problem}")
    return refusal is None or refusal.is_partial


def _due(
    notices: Sequence[Notification], receiver: Receiver, alerts: AlertsSection, log: SentLog
) -> Iterator[Notification]:
    """What a receiver has not been sent.

    The end is in its form that of the beginning, though the rule or the owner has changed since:
    filters let it through, and Alertmanager recognizes it by its labels. An end that the tables do
    not have is sent only to receivers that were sent its beginning.
    """
    opened: dict[str, Mapping[str, Any]] = {}
    for notice in notices:
        if log.has(_key(receiver, notice.key)):
            continue
        subject = notice.subject
        opening = opened.get(subject) or log.opening(_key(receiver, subject))
        is_noticed = notice.kind == INCIDENT_ENDED and notice.labels["symptom"] not in OF_CLIENTS
        if is_noticed and opening is None:
            continue
        shown = notice if opening is None else replace(notice, **_identity(opening))
        was_sent = notice.is_end and opening is not None
        is_silent = any(_is_silent(shown, each) for each in alerts.silences)
        if was_sent or (_is_for(shown, receiver) and not is_silent):
            if notice.lasts and opening is None:
                opened[subject] = _opening(shown)
            yield shown


def _opening(notice: Notification) -> dict[str, Any]:
    return {name: getattr(notice, name) for name in _IDENTITY}


def _identity(opening: Mapping[str, Any]) -> dict[str, Any]:
    return {name: opening[name] for name in _IDENTITY}


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


def _remember(
    log: SentLog, receiver: Receiver, notices: Sequence[Notification], *, is_summary: bool = False
) -> None:
    """Record what was sent. What is only counted in a summary is open nowhere."""
    for notice in notices:
        subject = _key(receiver, notice.subject)
        if notice.is_end:
            log.end(subject)
        elif notice.lasts and not (is_summary and receiver.format in _KEEPS_STATE):
            log.begin(subject, notice.event_time, _opening(notice))
    log.add((_key(receiver, notice.key), notice.event_time) for notice in notices)


def _key(receiver: Receiver, key: str) -> str:
    return f"{receiver.name} {key}"


def _without_receivers() -> ConfigError:
    return ConfigError(
        "alerts.receivers is empty: write `alerts: {receivers: [{name: chat, format: slack, "
        "url: env:NAME}]}` into conf"
    )
