"""Sends an event to a receiver of conf, in its format: by HTTP, or by mail."""

import smtplib
import ssl
import time
from collections.abc import Callable
from datetime import datetime
from email.message import EmailMessage

from quotaflow.pipelines.config import secrets
from quotaflow.pipelines.config.receivers import Receiver
from quotaflow.pipelines.monitoring import formats, webhook
from quotaflow.pipelines.monitoring.notifications import Notification
from quotaflow.pipelines.monitoring.webhook import Address, UnreachedError

Send = Callable[[Notification], str | None]
"""Sends one event; returns why it was refused, None if it was accepted.

Raises UnreachedError after the last attempt, because each further event would wait as long.
"""
_PAGERDUTY = "https://events.pagerduty.com/v2/enqueue"
_ALERTS = "/api/v2/alerts"
_SMTPS = 465
_PASSING = 500
"""From this answer of a mail server on an attempt is of no use."""
_BACKOFF_S = 0.5


def sender(conf: Receiver, now: datetime) -> Send:
    """What sends events to a receiver. Raises ConfigError, without repeating a secret."""
    if conf.format == "mail":
        return _by_mail(conf)
    address = webhook.address(conf, conf.url or _PAGERDUTY, _key(conf, "url"))
    if conf.format == "alertmanager":
        whole = Address(f"{address.url.rstrip('/').removesuffix(_ALERTS)}{_ALERTS}", address.pool)
        return lambda notice: whole.post(notice.key, formats.alertmanager(notice, now))
    if conf.format == "pagerduty":
        key = secrets.look_up(_key(conf, "routing_key"), conf.routing_key or "").strip()
        return lambda notice: address.post(notice.key, formats.pagerduty(notice, key))
    shaped = formats.PLAIN[conf.format]
    return lambda notice: address.post(notice.key, shaped(notice))


def _by_mail(conf: Receiver) -> Send:
    login = tuple(
        secrets.look_up(_key(conf, name), reference)
        for name, reference in (("user", conf.user), ("password", conf.password))
        if reference is not None
    )
    host, _, port = str(conf.smtp).rpartition(":")

    def send(notice: Notification) -> str | None:
        message = formats.mail(notice, str(conf.sender), conf.to)
        for attempt in range(conf.max_attempts):
            time.sleep(_BACKOFF_S * (2**attempt - 1))
            try:
                return _delivered(host, int(port), conf.timeout_s, login, message)
            except (smtplib.SMTPException, OSError) as error:
                problem = f"it was not reached: {_named(error)}"
        raise UnreachedError(problem)

    return send


def _delivered(
    host: str, port: int, timeout_s: float, login: tuple[str, ...], message: EmailMessage
) -> str | None:
    """Why the server refuses a mail; raises SMTPException or OSError for what may pass."""
    tls = ssl.create_default_context()
    is_tls = port == _SMTPS
    with (
        smtplib.SMTP_SSL(host, port, timeout=timeout_s, context=tls)
        if is_tls
        else smtplib.SMTP(host, port, timeout=timeout_s)
    ) as smtp:
        if not is_tls and not webhook.is_loopback(host):
            smtp.starttls(context=tls)
        if len(login) == len(("user", "password")):
            smtp.login(*login)
        try:
            refused = smtp.send_message(message)
        except smtplib.SMTPRecipientsRefused as error:
            refused = error.recipients
        except smtplib.SMTPResponseException as error:
            if error.smtp_code < _PASSING:
                raise
            return f"it answered {error.smtp_code}"
    codes = sorted({code for code, _ in refused.values()})
    if refused and codes[0] < _PASSING and len(refused) == len(message["To"].addresses):
        raise smtplib.SMTPResponseException(codes[0], b"")
    return f"it refused {len(refused)} of the addresses: {codes[0]}" if refused else None


def _named(error: Exception) -> str:
    """An error of the mail server without its text, which may have names or a login."""
    code = getattr(error, "smtp_code", None)
    return f"{type(error).__name__} {code}" if code else type(error).__name__


def _key(conf: Receiver, name: str) -> str:
    return f"alerts.receivers.{conf.name}.{name}"
