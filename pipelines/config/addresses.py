"""Addresses that programs post to: looked up and checked. They are secrets: no error has them."""

import ipaddress
import logging

from urllib3.exceptions import LocationParseError
from urllib3.util import parse_url

from quotaflow.pipelines.config import secrets
from quotaflow.pipelines.errors import ConfigError


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
