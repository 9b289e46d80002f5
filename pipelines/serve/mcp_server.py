"""The server of the Model Context Protocol: the tools, and reference pages as resources."""

import asyncio
import functools
import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from quotaflow.pipelines import extras
from quotaflow.pipelines.errors import MissingToolError
from quotaflow.pipelines.reference.__main__ import PAGES
from quotaflow.pipelines.serve import untrusted
from quotaflow.pipelines.serve.access import Access, sent_once
from quotaflow.pipelines.serve.mcp_tools import CALL, Answer, Call, NoAnswerError, Tools
from quotaflow.pipelines.serve.server import running

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

PATH = "/mcp"
_INSTRUCTIONS = (
    "quotaflow knows what Kafka brokers say about their clients: quotas, throttles, lag, racks, "
    "producer ids, moves. Start with `incidents`, then `why` with a name, then `show`, `describe` "
    f"and `sql`. Nothing here changes a cluster or a table. {untrusted.NOTICE}"
)
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


def _refusing(
    tool: Callable[..., Answer], refused: type[Exception]
) -> Callable[..., Awaitable[Answer]]:
    """The tool, with a refusal as the error that the SDK shows to the assistant.

    It computes in a thread. If nobody waits for the answer any more, its queries end.
    """

    @functools.wraps(tool)
    async def reply(**given: Any) -> Answer:
        call = Call()
        CALL.set(call)
        try:
            return await asyncio.to_thread(tool, **given)
        except NoAnswerError as error:
            raise refused(str(error)) from None
        finally:
            call.stop()

    return reply


@contextmanager
def serving(
    made: "MCPServer[Any]",
    address: tuple[str, int],
    access: Access,
    tls: ssl.SSLContext | None = None,
) -> Iterator[str]:
    """Answer at PATH within the block, by the server of pages; yields the URL."""
    from mcp.server.transport_security import TransportSecuritySettings  # noqa: PLC0415

    app = made.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=_MAX_REQUEST_BYTES,
        # Access checks Host, and the token too.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    with running(_guarded(app, access), address, access, tls) as url:
        yield f"{url.removesuffix('/')}{PATH}"


def _guarded(app: Any, access: Access) -> Any:
    """The ASGI application behind the checks of `quotaflow serve`."""

    async def guarded(scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        refusal = _refusal(scope, access) if scope["type"] == "http" else None
        if refusal is None:
            if scope["type"] == "http":
                scope["state"]["connection"].is_trusted = True
            await app(scope, receive, send)
            return
        body = f"{refusal.phrase}\n".encode()
        headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(body))]
        if refusal is HTTPStatus.UNAUTHORIZED:
            headers.append((b"www-authenticate", b"Bearer"))
        # What is left of a request that is refused is not read as another one.
        headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": refusal.value, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return guarded


def _refusal(scope: Mapping[str, Any], access: Access) -> HTTPStatus | None:
    """Why a request gets nothing. A page of a browser is no assistant: it sends its origin."""
    headers = {name for name, _ in scope["headers"]}
    if b"origin" in headers:
        return HTTPStatus.FORBIDDEN
    if {b"transfer-encoding", b"content-length"} <= headers:
        return HTTPStatus.BAD_REQUEST
    return access.refusal(sent_once(scope["headers"]), scope["client"][0])
