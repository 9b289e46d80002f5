"""Who may read the pages: by a token, its cookie, or a proxy that names the user."""

import hmac
import ipaddress
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

COOKIE = "quotaflow"
_BEARER = "bearer "
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Proxies:
    """The addresses of proxies, which sign people in and name them in a header.

    With `groups` a user must be in one of them.
    """

    networks: tuple[Network, ...] = ()
    user_header: str = ""
    groups_header: str = ""
    groups: frozenset[str] = frozenset()

    def has(self, peer: str) -> bool:
        """Whether a connection comes from a proxy."""
        address = address_of(peer)
        return address is not None and any(address in each for each in self.networks)

    def refusal(self, headers: Mapping[str, str]) -> HTTPStatus | None:
        """Why a request of a proxy gets nothing; None if it names a user who may read."""
        if not headers.get(self.user_header, "").strip():
            return HTTPStatus.UNAUTHORIZED
        groups = {each.strip() for each in headers.get(self.groups_header, "").split(",")} - {""}
        return HTTPStatus.FORBIDDEN if self.groups and not self.groups & groups else None


@dataclass(frozen=True)
class Access:
    """What a request must have. With no token and no proxy everybody who reaches the address reads.

    `hosts` are names by which people reach the server. `session` takes the token's place in a
    cookie, and ends with the process.
    """

    token: bytes | None = field(default=None, repr=False)
    hosts: frozenset[str] = frozenset()
    proxies: Proxies = Proxies()
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    def refusal(self, headers: Mapping[str, str], peer: str) -> HTTPStatus | None:
        """Why a request gets nothing; None if it may read. Names of headers are in lower case."""
        host = headers.get("host", "")
        if not self._is_our_host(host) or _is_embedded(headers) or _is_of_another(headers, host):
            return HTTPStatus.FORBIDDEN
        if self.has_token(headers) or self._has_session(headers):
            return None
        if self.proxies.has(peer):
            return self.proxies.refusal(headers)
        is_open = self.token is None and not self.proxies.networks
        return None if is_open else HTTPStatus.UNAUTHORIZED

    def has_token(self, headers: Mapping[str, str]) -> bool:
        """Whether a request sends the token as bearer, compared in constant time."""
        sent = headers.get("authorization", "")
        is_bearer = sent.lower().startswith(_BEARER)
        return (
            self.token is not None
            and is_bearer
            and hmac.compare_digest(sent[len(_BEARER) :].strip().encode(), self.token)
        )

    def cookie(self, headers: Mapping[str, str], peer: str, scheme: str) -> str:
        """The header Set-Cookie. No script reads it, and no other site sends it along."""
        forwarded = headers.get("x-forwarded-proto") if self.proxies.has(peer) else None
        secure = "; Secure" if "https" in {scheme, forwarded} else ""
        return f"{COOKIE}={self.session}; Path=/; HttpOnly; SameSite=Strict{secure}"

    def _has_session(self, headers: Mapping[str, str]) -> bool:
        try:
            sent = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        own = self.session.encode()
        return (
            self.token is not None
            and sent is not None
            and hmac.compare_digest(sent.value.encode(), own)
        )

    def _is_our_host(self, host: str) -> bool:
        """An attacker's name that resolves to this address (DNS rebinding) is not ours.

        An address as such is no name, so nobody can make it resolve to another.
        """
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name == "localhost" or name in self.hosts or address_of(name) is not None


def address_of(text: str) -> Address | None:
    """The IP address that a text is; an IPv4 address in IPv6 as itself."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def sent_once(headers: Iterable[tuple[bytes, bytes]]) -> Mapping[str, str]:
    """Headers by their names in lower case; of those sent twice none counts."""
    sent = [(name.decode("latin-1").lower(), text.decode("latin-1")) for name, text in headers]
    times = Counter(name for name, _ in sent)
    return {name: text for name, text in sent if times[name] == 1}


def _is_embedded(headers: Mapping[str, str]) -> bool:
    """Whether another site's page loads it as a part of itself; links to pages are no such part."""
    is_foreign = headers.get("sec-fetch-site", "") in {"cross-site", "same-site"}
    return is_foreign and headers.get("sec-fetch-dest", "") != "document"


def _is_of_another(headers: Mapping[str, str], host: str) -> bool:
    """Whether a script of another site asks: a browser then sends the origin of that site."""
    origin = headers.get("origin")
    return origin is not None and origin.partition("://")[2] != host
