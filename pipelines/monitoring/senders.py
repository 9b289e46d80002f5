"""Sends an event to a receiver of conf, in its format: by HTTP, or by mail."""

import smtplib
import ssl
import time
from collections.abc import Callable, Collection
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import datetime
from email.message import EmailMessage

from quotaflow.pipelines.config import addresses, secrets
from quotaflow.pipelines.config.receivers import Receiver
from quotaflow.pipelines.monitoring import formats, webhook
from quotaflow.pipelines.monitoring.notifications import Notification
from quotaflow.pipelines.monitoring.webhook import Address, Refusal, UnreachedError

Send = Callable[[Notification], Refusal | None]
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
    server = _Server(host, int(port), conf.timeout_s, login)

    def send(notice: Notification) -> Refusal | None:
        mail = formats.mail(notice, str(conf.sender), conf.to)
        everyone = set(conf.to)
        left, lost, problem = everyone, dict[str, int](), ""
        for attempt in range(conf.max_attempts):
            time.sleep(_BACKOFF_S * (2**attempt - 1))
            try:
                codes = server.refused(mail, left)
            except (smtplib.SMTPException, OSError) as error:
                problem = f"it was not reached: {_named(error)}"
                continue
            lost |= {address: code for address, code in codes.items() if code >= _PASSING}
            left = codes.keys() - lost.keys()
            codes |= lost
            if codes:
                problem = f"it refused {len(codes)} of the addresses: {min(codes.values())}"
            if not left:
                break
        without = left | lost.keys()
        if left and without == everyone:
            raise UnreachedError(problem)
        return Refusal(problem, is_partial=without != everyone) if without else None

    return send


@dataclass(frozen=True, slots=True)
class _Server:
    host: str
    port: int
    timeout_s: float
    login: tuple[str, ...] = field(repr=False)

    def refused(self, mail: EmailMessage, to: Collection[str]) -> dict[str, int]:
        """The addresses that the server refuses, with its answers.

        Raises SMTPException or OSError if none has the mail.
        """
        with closing(self._connected()) as smtp:
            try:
                answers = smtp.send_message(mail, to_addrs=sorted(to))
            except smtplib.SMTPRecipientsRefused as error:
                answers = error.recipients
            except smtplib.SMTPResponseException as error:
                answers = dict.fromkeys(to, (error.smtp_code, b""))
            # Who has the mail must not get it again because of what comes after it.
            with suppress(smtplib.SMTPException, OSError):
                smtp.quit()
        return {address: code for address, (code, _) in answers.items()}

    def _connected(self) -> smtplib.SMTP:
        tls = ssl.create_default_context()
        if self.port == _SMTPS:
            smtp: smtplib.SMTP = smtplib.SMTP_SSL(
                self.host, self.port, timeout=self.timeout_s, context=tls
            )
        else:
            smtp = smtplib.SMTP(self.host, self.port, timeout=self.timeout_s)
        try:
            if self.port != _SMTPS and not addresses.is_loopback(self.host):
                smtp.starttls(context=tls)
            if self.login:
                smtp.login(*self.login)
        except BaseException:
            smtp.close()
            raise
        return smtp


def _named(error: Exception) -> str:
    """An error of the mail server without its text, which may have names or a login."""
    code = getattr(error, "smtp_code", None)
    return f"{type(error).__name__} {code}" if code else type(error).__name__


def _key(conf: Receiver, name: str) -> str:
    return f"alerts.receivers.{conf.name}.{name}"
