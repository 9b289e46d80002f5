"""Addresses that programs post to: looked up, checked and connected; no error has one."""

import ipaddress
import logging
import socket
from collections.abc import Collection, Mapping
from contextlib import suppress
from threading import Timer
from typing import Any, Self

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import LocationParseError
from urllib3.util import Retry, Timeout, parse_url

from quotaflow.pipelines.config import secrets
from quotaflow.pipelines.errors import ConfigError

_BACKOFF_S, _MAX_WAIT_S = 0.5, 10.0
_LATER_S = 0.2
"""A read that brings nothing ends by its own timeout, which errors name."""


def checked(reference: str, key: str, *, plain_http: bool = False) -> str:
    """The address of a reference, or the text itself; `key` of conf names it in errors.

    Raises ConfigError for a forbidden one, without repeating it.
    """
    # urllib3 logs each retry with the path, which is secret.
    logging.getLogger("urllib3").setLevel(logging.CRITICAL)
    url = secrets.look_up(key, reference).strip()
    try:
        parts = parse_url(url)
    except LocationParseError:
        raise ConfigError(f"{key} does not refer to an address: https://host/path") from None
    if not parts.host or parts.scheme not in {"http", "https"}:
        raise ConfigError(f"{key} does not refer to an address: https://host/path")
    if parts.auth is not None:
        raise ConfigError(f"{key}: an address with a login: remove it")
    if parts.scheme == "http" and not plain_http and not is_loopback(parts.host):
        raise ConfigError(f"{key}: plain http: only https, but for this machine itself")
    return url


def is_loopback(host: str) -> bool:
    """Whether an address is of this machine itself."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def connections(
    headers: Mapping[str, str],
    retried: Collection[int],
    *,
    timeout_s: float,
    max_attempts: int,
    respects_wait: bool,
) -> urllib3.PoolManager:
    """Connections to post by, without redirects: `retried` are the statuses to post again after.

    `respects_wait`: a receiver decides how long to wait, up to a bound.
    """
    retries = _Retry(
        total=max_attempts - 1,
        redirect=False,
        status_forcelist=retried,
        allowed_methods=("POST",),
        backoff_factor=_BACKOFF_S,
        backoff_max=_MAX_WAIT_S,
        respect_retry_after_header=respects_wait,
        raise_on_status=False,
    )
    timeout = Timeout(connect=timeout_s, read=timeout_s)
    pool = urllib3.PoolManager(retries=retries, timeout=timeout, headers=headers)
    pool.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}
    return pool


class _BoundedHead(HTTPConnection):
    """The head of an answer comes within the timeout, which urllib3 gives to each read of it."""

    def getresponse(self) -> Any:
        timer = Timer(float(self.timeout or 0) + _LATER_S, self._end)
        timer.daemon = True
        timer.start()
        try:
            return super().getresponse()
        finally:
            timer.cancel()

    def _end(self) -> None:
        with suppress(OSError, AttributeError):
            self.sock.shutdown(socket.SHUT_RDWR)


class _BoundedHeadOverTls(_BoundedHead, HTTPSConnection):
    pass


class _HttpPool(urllib3.HTTPConnectionPool):
    ConnectionCls: Any = _BoundedHead


class _HttpsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls: Any = _BoundedHeadOverTls


class _Retry(Retry):
    """Waits no longer than we do by ourselves, and reads no answer that decides nothing."""

    def get_retry_after(self, response: Any) -> float | None:
        given = super().get_retry_after(response)
        return None if given is None else min(given, _MAX_WAIT_S)

    def increment(self, *args: Any, **others: Any) -> Self:
        retries = super().increment(*args, **others)
        if others.get("response") is not None:
            others["response"].close()
        return retries
