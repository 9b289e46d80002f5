"""The section `serve` of conf: who may read the pages of `quotaflow serve`."""

from typing import Annotated

from pydantic import Field

from quotaflow.pipelines.config.base import Section, matches


class ServeSection(Section):
    """Pages for browsers. `token` is a secret, so it is a reference; an address other than
    loopback needs it. `hosts` are names by which browsers reach the server beside its addresses.
    """

    token: (
        Annotated[
            str, matches("(env|secret|file):.+", "write env:NAME, secret:scope/key or file:PATH")
        ]
        | None
    ) = None
    hosts: list[
        Annotated[str, matches(r"[a-z0-9.-]{1,253}", "write a name in lower case, without a port")]
    ] = Field(default_factory=list)
    refresh_s: Annotated[int, Field(ge=5, le=3_600)] = 30
