"""The command mcp: answers an assistant's questions by the Model Context Protocol."""

from enum import StrEnum
from importlib.metadata import version
from typing import Annotated

import typer

from quotaflow.pipelines import interrupts
from quotaflow.pipelines.commands import options
from quotaflow.pipelines.commands.serve import Address, access_of
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.mcp import server as mcp_server
from quotaflow.pipelines.mcp.tools import Tools
from quotaflow.pipelines.terminal import output


class Transport(StrEnum):
    """How an assistant reaches the server."""

    STDIO = "stdio"
    HTTP = "http"


Over = Annotated[
    Transport,
    typer.Option("--transport", help="stdio: of the assistant that starts it; http: of many."),
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
    pages. All only read, and each answer has bounds. What clients named is escaped, and marked as
    data. Over http the token of serve.token is needed as for `quotaflow serve`. Needs no JVM where
    the tables are in a folder.

    Example: quotaflow mcp

    Example: quotaflow mcp --transport http --set serve.token=env:QUOTAFLOW_TOKEN
    """
    settings = conf.of_tables()
    made = mcp_server.server(Tools(settings), version("quotaflow"))
    if transport is Transport.STDIO:
        made.run("stdio")
        return
    access = access_of(settings, address)
    try:
        bound = mcp_server.listen(address, port)
    except OSError as error:
        raise ConfigError(
            f"cannot serve at {address} port {port}: {error.strerror}: give another --port"
        ) from None
    host, at = bound.getsockname()[:2]
    name = f"[{host}]" if ":" in host else host
    output.lines([f"serving at http://{name}:{at}{mcp_server.PATH} (Ctrl-C ends it)"])
    with interrupts.noted():
        mcp_server.serve_http(made, access, bound)
    raise typer.Exit(interrupts.EXIT_CODE)
