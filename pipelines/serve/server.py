"""The HTTP server of pages: uvicorn with bounds, GET alone, and headers for browsers."""

import asyncio
import functools
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Protocol

from quotaflow.pipelines import extras
from quotaflow.pipelines.errors import ConfigError, MissingToolError, QuotaflowError
from quotaflow.pipelines.serve.access import Access, sent_once

if TYPE_CHECKING:
    import uvicorn

    from quotaflow.pipelines.serve.connections import ConnectionBounds

LOGIN = "/login"
"""The path that gives a cookie to who sends the token."""
OPEN_PATHS = ("/static/page.css", "/static/serve.css", "/static/sign_in.js")
"""What the page that asks for the token needs: nothing from tables."""

_STOP_S = 10
_START_POLL_S = 0.01
_THREAD = "serve"
_MAX_HEAD_BYTES = 32_000
_THREADS = 8
_MAX_WAITING = 64
_RETRY_S = "5"
_FORBIDDEN = "Not for this name, user or site: see serve.hosts and serve.groups of conf."
_PLAIN = "text/plain; charset=utf-8"
# Style attributes run nothing and load nothing.
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
        "img-src data: blob:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
Asgi = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Response:
    """An answer. `tag` names what it shows: a browser that has it gets no body again.

    `compressed` is the body by gzip, if it has a use.
    """

    body: bytes = b""
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = "text/html; charset=utf-8"
    tag: str = ""
    compressed: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def _plain(status: HTTPStatus, text: str = "", **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(f"{text or status.phrase}\n".encode(), status, _PLAIN, headers=named)


class Site(Protocol):
    """What is served."""

    def answer(self, target: str) -> Response:
        """The answer to a path with its query."""
        ...

    def sign_in(self) -> Response:
        """The page that asks for the token."""
        ...

    def is_ready(self) -> bool:
        """Whether it can read what it answers from."""
        ...

    def stop(self) -> None:
        """End what still runs; every later answer fails at once."""
        ...


@dataclass
class _Pages:
    """The pages of a site as an application of ASGI. Few threads compute, so memory stays flat."""

    site: Site
    access: Access
    _threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_THREADS, "pages")
    )
    _looking: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "ready"))
    _readiness: "asyncio.Future[bool] | None" = None
    _waiting: int = 0

    async def __call__(self, scope: Mapping[str, Any], _: object, send: Any) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return
        headers = sent_once(scope["headers"])
        await _send(await self._response(scope, headers), headers, send)

    async def _response(self, scope: Mapping[str, Any], headers: Mapping[str, str]) -> Response:
        path = scope["raw_path"].decode()
        refused = self.access.refusal(headers, scope["client"][0])
        if scope["method"] != "GET":
            return _plain(HTTPStatus.METHOD_NOT_ALLOWED, Allow="GET", Connection="close")
        if not path.startswith("/") or _has_body(scope):
            return _plain(HTTPStatus.BAD_REQUEST, Connection="close")
        if refused is HTTPStatus.FORBIDDEN:
            return _plain(refused, _FORBIDDEN, Connection="close")
        return await self._open(scope, headers, path) or await self._page(scope, path, refused)

    async def _open(
        self, scope: Mapping[str, Any], headers: Mapping[str, str], path: str
    ) -> Response | None:
        """What everybody gets who reaches the server; None for another path."""
        match path:
            case "/login":
                return self._signed_in(headers, scope["client"][0], scope["scheme"])
            case "/health":
                return _plain(HTTPStatus.OK)
            case "/ready":
                return await self._ready()
        return self.site.answer(path) if path in OPEN_PATHS else None

    async def _page(
        self, scope: Mapping[str, Any], path: str, refused: HTTPStatus | None
    ) -> Response:
        if refused is not None:
            return self.site.sign_in()
        scope["state"]["connection"].is_trusted = True
        if self._waiting >= _MAX_WAITING:
            return _plain(HTTPStatus.SERVICE_UNAVAILABLE)
        query = scope["query_string"].decode()
        target = f"{path}?{query}" if query else path
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, self.site.answer, target)
        finally:
            self._waiting -= 1

    async def _ready(self) -> Response:
        """Who asks at the same time gets the same look at the tables."""
        if self._readiness is None or self._readiness.done():
            loop = asyncio.get_running_loop()
            self._readiness = loop.run_in_executor(self._looking, self.site.is_ready)
        is_ready = await asyncio.shield(self._readiness)
        return _plain(HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE)

    def _signed_in(self, headers: Mapping[str, str], peer: str, scheme: str) -> Response:
        if not self.access.has_token(headers):
            return Response(status=HTTPStatus.UNAUTHORIZED)
        cookie = {"Set-Cookie": self.access.cookie(headers, peer, scheme)}
        return Response(status=HTTPStatus.NO_CONTENT, headers=cookie)

    def stop(self) -> None:
        """End queries. A thread within DuckDB while Python ends would abort: each is waited for."""
        self.site.stop()
        self._threads.shutdown(cancel_futures=True)
        self._looking.shutdown()


def _has_body(scope: Mapping[str, Any]) -> bool:
    """Whether a request announces a body: a page takes none."""
    sent = dict(scope["headers"])
    return b"transfer-encoding" in sent or sent.get(b"content-length", b"0") != b"0"


async def _send(response: Response, sent: Mapping[str, str], send: Any) -> None:
    is_known = response.tag and sent.get("if-none-match") == f'"{response.tag}"'
    status = HTTPStatus.NOT_MODIFIED if is_known else response.status
    is_small = bool(response.compressed) and "gzip" in sent.get("accept-encoding", "")
    body = b"" if is_known else response.compressed if is_small else response.body
    headers = {"Cache-Control": "no-store"} | dict(response.headers)
    if response.tag:
        headers["ETag"] = f'"{response.tag}"'
    if status not in {HTTPStatus.NOT_MODIFIED, HTTPStatus.NO_CONTENT}:
        headers |= {"Content-Type": response.content_type, "Content-Length": str(len(body))}
    if status is HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = _RETRY_S
    if response.compressed:
        headers["Vary"] = "Accept-Encoding"
    if is_small and body:
        headers["Content-Encoding"] = "gzip"
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status.value, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


@contextmanager
def serving(
    site: Site,
    address: tuple[str, int],
    access: Access,
    tls: ssl.SSLContext | None = None,
    bounds: "ConnectionBounds | None" = None,
) -> Iterator[str]:
    """Serve a site within the block; yields its URL. Raises ConfigError for an address in use.

    At its end requests that are being answered have some seconds. Then queries are ended, so that
    these answers are errors.
    """
    pages = _Pages(site, access)
    late = threading.Timer(_STOP_S, site.stop)
    try:
        with running(pages, address, access, tls, bounds) as url:
            try:
                yield url
            finally:
                late.start()
    finally:
        late.cancel()
        pages.stop()


@contextmanager
def running(
    app: Asgi,
    address: tuple[str, int],
    access: Access,
    tls: ssl.SSLContext | None = None,
    bounds: "ConnectionBounds | None" = None,
) -> Iterator[str]:
    """Run an application of ASGI within the block; yields its URL. Raises as serving."""
    try:
        import uvicorn  # noqa: PLC0415  an extra

        from quotaflow.pipelines.serve import connections  # noqa: PLC0415
    except ModuleNotFoundError as error:
        install = extras.install("report")
        raise MissingToolError(f"a server of pages needs {error.name}: {install}") from None
    places = connections.Places(bounds or connections.ConnectionBounds(), access.proxies, tls)
    config = uvicorn.Config(
        app,
        http=functools.partial(connections.PageConnection, places),  # type: ignore[arg-type]
        ws="none",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        headers=list(_HEADERS.items()),
        h11_max_incomplete_event_size=_MAX_HEAD_BYTES,
        timeout_graceful_shutdown=2 * _STOP_S,
    )
    server = uvicorn.Server(config)
    bound = _bound(address)
    host, port = bound.getsockname()[:2]
    failures: list[Exception] = []
    thread = threading.Thread(target=_run, args=(server, bound, failures), name=_THREAD)
    thread.start()
    name = f"[{host}]" if ":" in host else host
    try:
        _wait_for(server, thread, failures)
        yield f"http{'s' if tls else ''}://{name}:{port}/"
    finally:
        server.should_exit = True
        thread.join()
        bound.close()


def _run(server: "uvicorn.Server", bound: socket.socket, failures: list[Exception]) -> None:
    try:
        asyncio.run(server.serve([bound]))
    except (OSError, RuntimeError) as error:
        failures.append(error)


def _wait_for(
    server: "uvicorn.Server", thread: threading.Thread, failures: list[Exception]
) -> None:
    while thread.is_alive() and not server.started:
        time.sleep(_START_POLL_S)
    if not server.started:
        reason = failures[0] if failures else "it ended"
        raise QuotaflowError(f"the server has not started: {reason}")


def is_running() -> bool:
    """Whether the thread of a server runs."""
    return any(each.name == _THREAD for each in threading.enumerate())


def _bound(address: tuple[str, int]) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        return socket.create_server(address, family=family)
    except OSError as error:
        raise ConfigError(
            f"cannot serve at {address[0]} port {address[1]}: {error.strerror}: give another --port"
        ) from None
