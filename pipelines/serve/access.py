"""Who may read the pages: the token, the cookie in its place, and the Host header."""

import hmac
import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

COOKIE = "quotaflow"
_BEARER = "bearer "


@dataclass(frozen=True)
class Access:
    """What a request must have. Without a token everybody who reaches the address may read.

    `hosts` are names by which people reach the server. `session` takes the token's place in a
    cookie, and ends with the process.
    """

    token: bytes | None = field(default=None, repr=False)
    hosts: frozenset[str] = frozenset()
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    def refusal(self, headers: Mapping[str, str]) -> HTTPStatus | None:
        """Why a request gets nothing; None if it may read."""
        if not self._is_our_host(headers.get("Host", "")) or _is_embedded(headers):
            return HTTPStatus.FORBIDDEN
        if self.token is None or self.has_token(headers) or self._has_session(headers):
            return None
        return HTTPStatus.UNAUTHORIZED

    def has_token(self, headers: Mapping[str, str]) -> bool:
        """Whether a request sends the token as bearer, compared in constant time."""
        sent = headers.get("Authorization", "")
        is_bearer = sent.lower().startswith(_BEARER)
        return (
            self.token is not None
            and is_bearer
            and hmac.compare_digest(_bytes(sent[len(_BEARER) :].strip()), self.token)
        )

    @property
    def cookie(self) -> str:
        """The header Set-Cookie. No script reads it, and no other site sends it along."""
        return f"{COOKIE}={self.session}; Path=/; HttpOnly; SameSite=Strict"

    def _has_session(self, headers: Mapping[str, str]) -> bool:
        try:
            sent = SimpleCookie(headers.get("Cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return sent is not None and hmac.compare_digest(_bytes(sent.value), _bytes(self.session))

    def _is_our_host(self, host: str) -> bool:
        """An attacker's name that resolves to this address (DNS rebinding) is not ours.

        An address as such is no name, so nobody can make it resolve to another.
        """
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name == "localhost" or name in self.hosts or is_address(name)


def is_address(text: str) -> bool:
    """Whether a text is an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_embedded(headers: Mapping[str, str]) -> bool:
    """Whether another site's page loads it as a part of itself; links to pages are no such part."""
    is_foreign = headers.get("Sec-Fetch-Site", "") in {"cross-site", "same-site"}
    return is_foreign and headers.get("Sec-Fetch-Dest", "") != "document"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
