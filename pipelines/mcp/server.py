"""The server of the Model Context Protocol: the tools, and reference pages as resources."""

import asyncio
import functools
import socket
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from quotaflow.pipelines import extras
from quotaflow.pipelines.errors import MissingToolError
from quotaflow.pipelines.mcp import untrusted
from quotaflow.pipelines.mcp.tools import Answer, NoAnswerError, Tools
from quotaflow.pipelines.reference.__main__ import PAGES
from quotaflow.pipelines.serve.access import Access

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

PATH = "/mcp"
_INSTRUCTIONS = (
    "quotaflow knows what Kafka brokers say about their clients: quotas, throttles, lag, racks, "
    "producer ids, moves. Start with `incidents`, then `why` with a name, then `show`, `describe` "
    f"and `sql`. Nothing here changes a cluster or a table. {untrusted.NOTICE}"
)
_MAX_CONNECTIONS = 32
_MAX_REQUEST_BYTES = 64_000


def server(tools: Tools, version: str) -> "MCPServer[Any]":
    """The server of these tools. Raises MissingToolError without the extra."""
    try:
        from mcp.server.mcpserver import MCPServer  # noqa: PLC0415  an extra
        from mcp.server.mcpserver.exceptions import ToolError  # noqa: PLC0415
        from mcp.server.mcpserver.resources import FunctionResource  # noqa: PLC0415
        from mcp.types import ToolAnnotations  # noqa: PLC0415
    except ModuleNotFoundError as error:
        install = extras.install("mcp")
        raise MissingToolError(f"the server for assistants needs {error.name}: {install}") from None

    made = MCPServer[Any](
        "quotaflow", version=version, instructions=_INSTRUCTIONS, log_level="CRITICAL"
    )
    reads = ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    for tool in (
        *(tools.incidents, tools.why, tools.tables, tools.describe, tools.show, tools.sql),
        tools.plan,
    ):
        made.add_tool(_refusing(tool, ToolError), annotations=reads)
    for name, text in PAGES.items():
        made.add_resource(
            FunctionResource(
                uri=f"quotaflow://docs/{name}", name=name, mime_type="text/markdown", fn=text
            )
        )
    return made


def _refusing(tool: Callable[..., Answer], refused: type[Exception]) -> Callable[..., Answer]:
    """The tool, with a refusal as the error that the SDK shows to the assistant."""

    @functools.wraps(tool)
    def reply(**given: Any) -> Answer:
        try:
            return tool(**given)
        except NoAnswerError as error:
            raise refused(str(error)) from None

    return reply


def listen(address: str, port: int) -> socket.socket:
    """A socket that is bound. Raises OSError if the address is in use."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address, port), family=family)


def serve_http(made: "MCPServer[Any]", access: Access, bound: socket.socket) -> None:
    """Answer at PATH of the socket until Ctrl-C or SIGTERM. Each request is checked by itself."""
    import uvicorn  # noqa: PLC0415  an extra
    from mcp.server.transport_security import TransportSecuritySettings  # noqa: PLC0415

    app = made.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=_MAX_REQUEST_BYTES,
        # Access checks Host, and the token too.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    config = uvicorn.Config(
        _guarded(app, access),
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_graceful_shutdown=10,
    )
    asyncio.run(uvicorn.Server(config).serve(sockets=[bound]))


def _guarded(app: Any, access: Access) -> Any:
    """The ASGI application behind the checks of `quotaflow serve`."""

    async def guarded(scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        refusal = _refusal(scope, access) if scope["type"] == "http" else None
        if refusal is None:
            await app(scope, receive, send)
            return
        body = f"{refusal.phrase}\n".encode()
        headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(body))]
        if refusal is HTTPStatus.UNAUTHORIZED:
            headers.append((b"www-authenticate", b"Bearer"))
        await send({"type": "http.response.start", "status": refusal.value, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return guarded


def _refusal(scope: Mapping[str, Any], access: Access) -> HTTPStatus | None:
    """Why a request gets nothing. A page of a browser is no assistant: it sends its origin."""
    sent = [
        (name.decode("latin-1").title(), text.decode("latin-1")) for name, text in scope["headers"]
    ]
    once = {name: text for name, text in sent if [each for each, _ in sent].count(name) == 1}
    if any(name == "Origin" for name, _ in sent):
        return HTTPStatus.FORBIDDEN
    return access.refusal(once)
