"""An event as each receiver takes it: what conf's `alerts.receivers[].format` says.

They are here because the one kept library for them (apprise) neither ends an event by its key at
PagerDuty nor speaks to Alertmanager, and puts secrets into addresses.

Names of clients are in the texts. So a text goes where the receiver reads no markup, or is escaped.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from typing import Any

from quotaflow.pipelines.monitoring.notifications import Notification

Json = Any
# Slack reads these as its own markup: <!channel> notifies everyone.
_ESCAPES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"))
_LASTING, _PASSING = timedelta(days=7), timedelta(minutes=15)
"""How long an alert is open at Alertmanager if its end does not come, and one that has no end."""
_MAX_SUMMARY = 1_024
_MAX_SUBJECT = 150


def webhook(notice: Notification) -> Json:
    """JSON for programs: all that is known of the event."""
    return {
        "text": notice.text,
        "id": notice.key,
        "subject_id": notice.subject,
        "kind": notice.kind,
        "severity": notice.severity,
        "owner": notice.owner,
        "cluster_id": notice.cluster_id,
        "event_time": notice.event_time.astimezone(UTC).isoformat(),
        "labels": dict(notice.labels),
        "details": {name: _plain(value) for name, value in notice.details.items()},
    }


def slack(notice: Notification) -> Json:
    """A message of an incoming webhook of Slack, without links that it would open."""
    text = notice.text
    for character, escape in _ESCAPES:
        text = text.replace(character, escape)
    return {"text": text, "mrkdwn": False, "unfurl_links": False, "unfurl_media": False}


def teams(notice: Notification) -> Json:
    """An adaptive card for a workflow of Teams; a text run has no Markdown."""
    run = {"type": "TextRun", "text": notice.text}
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [{"type": "RichTextBlock", "inlines": [run]}],
    }
    kind = "application/vnd.microsoft.card.adaptive"
    return {"type": "message", "attachments": [{"contentType": kind, "content": card}]}


def pagerduty(notice: Notification, routing_key: str) -> Json:
    """An event of PagerDuty's Events API v2: the end resolves what the same subject triggered."""
    event = {"routing_key": routing_key, "dedup_key": notice.subject}
    if notice.is_end:
        return event | {"event_action": "resolve"}
    details = webhook(notice)
    return event | {
        "event_action": "trigger",
        "client": "quotaflow",
        "payload": {
            "summary": notice.text[:_MAX_SUMMARY],
            "source": notice.cluster_id or "quotaflow",
            "severity": notice.severity,
            "timestamp": details["event_time"],
            "class": notice.kind,
            "group": notice.owner or "",
            "custom_details": details["labels"] | details["details"],
        },
    }


def alertmanager(notice: Notification, now: datetime) -> Json:
    """The alerts of a POST to Alertmanager's API v2: it takes equal labels for the same alert."""
    own = {"alertname": notice.labels.get("rule") or notice.group, "kind": notice.group}
    own |= {"cluster_id": notice.cluster_id, "severity": notice.severity}
    own |= {"owner": notice.owner or "", "subject_id": notice.subject}
    ends_at = now + (_LASTING if notice.lasts else _PASSING)
    alert = {
        "labels": {_label(name): text for name, text in notice.labels.items()} | own,
        "annotations": {"summary": notice.text},
        "endsAt": _iso(notice.event_time if notice.is_end else ends_at),
    }
    return [alert if notice.is_end else alert | {"startsAt": _iso(notice.event_time)}]


def mail(notice: Notification, sender: str, to: list[str]) -> EmailMessage:
    """A mail of plain text; that of an end answers that of the beginning."""
    message = EmailMessage()
    message["From"], message["To"] = sender, ", ".join(to)
    short = notice.text[:_MAX_SUBJECT]
    message["Subject"] = f"[quotaflow] {notice.severity}: {short}"
    host = sender.rpartition("@")[2]
    message["Message-ID"] = f"<{notice.key}@{host}>"
    message["References"] = f"<{notice.subject}.subject@{host}>"
    message["Date"] = notice.event_time.astimezone(UTC)
    message["Auto-Submitted"] = "auto-generated"
    facts = {name: value for name, value in webhook(notice).items() if name != "text"}
    message.set_content(f"{notice.text}\n\n{json.dumps(facts, indent=2)}\n")
    return message


PLAIN: Mapping[str, Callable[[Notification], Json]] = {
    "webhook": webhook,
    "slack": slack,
    "teams": teams,
}
"""Formats that need no more than the event."""


def _iso(time: datetime) -> str:
    return time.astimezone(UTC).isoformat()


def _label(name: str) -> str:
    """A name of a label as Prometheus has it."""
    safe = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"_{safe}" if safe[:1].isdigit() else safe


def _plain(value: Any) -> Any:
    # JSON has neither NaN nor infinity.
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
