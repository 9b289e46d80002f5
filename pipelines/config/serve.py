"""The section `serve` of conf: who may read the pages of `quotaflow serve`."""

import ipaddress
from typing import Annotated

from pydantic import AfterValidator, Field

from quotaflow.pipelines.config.base import Section, matches

_Header = Annotated[str, matches(r"[A-Za-z0-9-]{1,64}", "write the name of a header")]


def _network(text: str) -> str:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        raise ValueError("write an address or a network, such as 10.0.0.5 or 10.0.0.0/28") from None
    return text


class ServeSection(Section):
    """Who may read the pages of `quotaflow serve`: docs/serve.md#who-can-read-the-pages."""

    token: (
        Annotated[
            str, matches("(env|secret|file):.+", "write env:NAME, secret:scope/key or file:PATH")
        ]
        | None
    ) = None
    """Reference to a token of 32 bytes or more, which a browser or program must send. null: none,
    and only loopback is served.
    """
    hosts: list[
        Annotated[str, matches(r"[a-z0-9.-]{1,253}", "write a name in lower case, without a port")]
    ] = Field(default=[])
    """Names by which browsers reach the server, in lower case, beside `localhost` and addresses."""
    tls_cert: str | None = None
    """PEM file of the certificate of the server, with its chain. null: HTTP without TLS."""
    tls_key: str | None = None
    """PEM file of the key of `tls_cert`, without a password. null: the key is in `tls_cert`."""
    proxies: list[Annotated[str, AfterValidator(_network)]] = Field(default=[])
    """Addresses and networks of proxies that sign people in. From these, `user_header` is enough to
    read; from all others it is ignored.
    """
    user_header: _Header = "X-Forwarded-User"
    """Header in which a proxy names the user."""
    groups_header: _Header = "X-Forwarded-Groups"
    """Header in which a proxy names the groups of the user, with commas between them."""
    groups: list[
        Annotated[
            str, matches(r"[^\s,]([^,]*[^\s,])?", "write the name of a group, without a comma")
        ]
    ] = Field(default=[])
    """Groups or teams whose members may read by a proxy. Empty: each user whom a proxy names."""
    refresh_s: Annotated[int, Field(ge=5, le=3_600)] = 30
    """Seconds after which a page asks for news; 5 to 3600."""
