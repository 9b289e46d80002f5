"""The HTTP server: GET alone, bounded connections, and headers that let a page load only itself."""

import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET6, SHUT_RD, socket
from typing import Any, Protocol

from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.serve.access import Access

LOGIN = "/login"
"""The path that gives a cookie to who sends the token."""
OPEN_PATHS = ("/static/page.css", "/static/serve.css", "/static/sign_in.js")
"""What the page that asks for the token needs: nothing from tables."""

_MAX_CONNECTIONS = 32
_SOCKET_TIMEOUT_S = 10
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


class Site(Protocol):
    """What is served."""

    def answer(self, target: str) -> Response:
        """The answer to a path with its query."""
        ...

    def sign_in(self) -> Response:
        """The page that asks for the token."""
        ...


class Server(ThreadingHTTPServer):
    """Answers each connection in a thread of its own, and refuses too many at once."""

    # A thread within DuckDB while Python ends would abort the process: each is waited for.
    daemon_threads = False
    block_on_close = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], site: Site, access: Access) -> None:
        """Bind the address. Raises OSError if it is in use."""
        self.site, self.access = site, access
        self._free = threading.BoundedSemaphore(_MAX_CONNECTIONS)
        self._open: set[socket] = set()
        if ":" in address[0]:
            self.address_family = AF_INET6
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread; a connection past the bound is closed."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and free the place of the connection."""
        self._open.add(request)
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._open.discard(request)
            self._free.release()

    def server_close(self) -> None:
        """End connections that wait for a request, and wait for those that get an answer."""
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(SHUT_RD)
        super().server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that went away; anything else is a fault of ours."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    timeout = _SOCKET_TIMEOUT_S
    server_version = "quotaflow"
    sys_version = ""

    def do_GET(self) -> None:
        assert isinstance(self.server, Server)
        site, access = self.server.site, self.server.access
        refused = access.refusal(self._sent())
        path = self.path.partition("?")[0]
        if refused is HTTPStatus.FORBIDDEN:
            text = b"This address serves itself alone: add the name to serve.hosts of conf.\n"
            self._send(Response(text, refused, "text/plain; charset=utf-8"))
        elif path == LOGIN:
            has_token = refused is None and access.has_token(self._sent())
            status = HTTPStatus.NO_CONTENT if has_token else HTTPStatus.UNAUTHORIZED
            headers = {"Set-Cookie": access.cookie} if has_token else {}
            self._send(Response(status=status, headers=headers))
        elif refused is None or path in OPEN_PATHS:
            self._send(site.answer(self.path))
        else:
            self._send(site.sign_in())

    def _refuse(self) -> None:
        self._send(Response(status=HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": "GET"}))

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _refuse  # noqa: N815

    def send_error(self, code: int, *_: str | None, **__: str | None) -> None:
        """Refuse what is no request, without repeating a part of it."""
        status = HTTPStatus(code)
        self._send(Response(f"{status.phrase}\n".encode(), status, "text/plain; charset=utf-8"))

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: addresses of pages have names of clients."""

    def _sent(self) -> Mapping[str, str]:
        """The headers; of those sent twice none counts."""
        return {
            name.title(): values[0]
            for name in self.headers
            if len(values := self.headers.get_all(name, [])) == 1
        }

    def _send(self, response: Response) -> None:
        is_known = response.tag and self._sent().get("If-None-Match") == f'"{response.tag}"'
        status = HTTPStatus.NOT_MODIFIED if is_known else response.status
        is_small = bool(response.compressed) and "gzip" in self._sent().get("Accept-Encoding", "")
        body = b"" if is_known else response.compressed if is_small else response.body
        self.send_response(status)
        for name, value in (_HEADERS | dict(response.headers)).items():
            self.send_header(name, value)
        if "Cache-Control" not in response.headers:
            self.send_header("Cache-Control", "no-store")
        if response.tag:
            self.send_header("ETag", f'"{response.tag}"')
        if status not in {HTTPStatus.NOT_MODIFIED, HTTPStatus.NO_CONTENT}:
            self.send_header("Content-Type", response.content_type)
            self.send_header("Content-Length", str(len(body)))
        if response.compressed:
            self.send_header("Vary", "Accept-Encoding")
        if is_small and body:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serving(site: Site, address: tuple[str, int], access: Access) -> Iterator[str]:
    """Serve a site within the block; yields its URL. Raises ConfigError for an address in use."""
    try:
        server = Server(address, site, access)
    except OSError as error:
        raise ConfigError(
            f"cannot serve at {address[0]} port {address[1]}: {error.strerror}: give another --port"
        ) from None
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="serve")
    thread.start()
    host, port = server.server_address[:2]
    name = f"[{host!s}]" if ":" in str(host) else str(host)
    try:
        yield f"http://{name}:{port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
