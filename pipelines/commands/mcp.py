"""The command mcp: answers an assistant's questions by the Model Context Protocol."""

from enum import StrEnum
from importlib.metadata import version
from typing import Annotated

import typer

from quotaflow.pipelines import interrupts
from quotaflow.pipelines.commands import options
from quotaflow.pipelines.commands.serve import Address, access_of, tls_of, until_interrupted
from quotaflow.pipelines.serve import mcp_server
from quotaflow.pipelines.serve.mcp_tools import Tools


class Transport(StrEnum):
    """How an assistant reaches the server."""

    STDIO = "stdio"
    HTTP = "http"


Over = Annotated[
    Transport,
    typer.Option("--transport", help="stdio: for the assistant that starts it; http: for many."),
]
Port = Annotated[
    int, typer.Option("--port", min=0, max=65_535, help="Port of http; 0 takes a free one.")
]


def mcp(
    *,
    transport: Over = Transport.STDIO,
    address: Address = "127.0.0.1",
    port: Port = 9_466,
    conf: options.ConfOptions,
) -> None:
    """Answer an assistant's questions about the tables by the Model Context Protocol.

    Its tools are why, incidents, tables, describe, show, sql and plan, its resources the reference
    pages. All only read, and each answer has a size limit. Names that clients chose are escaped
    and marked as data. Over http the token of serve.token is needed as for `quotaflow serve`. Needs
    no JVM where the tables are in a folder.

    Example: quotaflow mcp

    Example: quotaflow mcp --transport http --set serve.token=env:QUOTAFLOW_TOKEN
    """
    settings = conf.of_advice()
    made = mcp_server.server(Tools(settings), version("quotaflow"))
    if transport is Transport.STDIO:
        made.run("stdio")
        return
    access, tls = access_of(settings, address), tls_of(settings)
    with (
        interrupts.noted() as is_interrupted,
        mcp_server.serving(made, (address, port), access, tls) as url,
    ):
        until_interrupted(url, is_interrupted)
