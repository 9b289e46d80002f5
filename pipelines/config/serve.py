"""The section `serve` of conf: who may read the pages of `quotaflow serve`."""

from typing import Annotated

from pydantic import Field

from quotaflow.pipelines.config.base import Section, matches


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
    ] = Field(default_factory=list)
    """Names by which browsers reach the server, in lower case, beside `localhost` and addresses."""
    refresh_s: Annotated[int, Field(ge=5, le=3_600)] = 30
    """Seconds after which a page asks for news; 5 to 3600."""
