"""A server on this machine that takes what programs post, and answers as a test says."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


class Endpoint(ThreadingHTTPServer):
    """`came` is what was posted: path, headers and content, as `read` makes it of the bytes.

    `answers` are the next statuses, then `status` forever, each with these headers and this body.
    `before` runs before an answer, whose head and body come with `head_pause_s` and `pause_s`
    before each byte.
    """

    def __init__(self, path: str, read: Callable[[bytes], Any]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}{path}"
        self.read = read
        self.came: list[tuple[str, dict[str, str], Any]] = []
        self.answers: list[int] = []
        self.status, self.body = 200, b""
        self.headers: dict[str, str] = {}
        self.before: Callable[[], None] = lambda: None
        self.head_pause_s = self.pause_s = 0.0


class _Handler(BaseHTTPRequestHandler):
    server: Endpoint
    _headers_buffer: list[bytes]

    def do_POST(self) -> None:
        content = self.server.read(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.came.append((self.path, dict(self.headers), content))
        self.server.before()
        status = self.server.answers.pop(0) if self.server.answers else self.server.status
        self.send_response(status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(self.server.body)))
        with suppress(ConnectionError):
            self.end_headers()
            self._write(self.server.body, self.server.pause_s)

    def flush_headers(self) -> None:
        head, self._headers_buffer = b"".join(self._headers_buffer), []
        self._write(head, self.server.head_pause_s)

    def _write(self, content: bytes, pause_s: float) -> None:
        for part in (bytes([byte]) for byte in content) if pause_s else (content,):
            time.sleep(pause_s)
            self.wfile.write(part)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def listening(path: str = "/", read: Callable[[bytes], Any] = bytes) -> Iterator[Endpoint]:
    """An endpoint at this path, until the block ends."""
    with Endpoint(path, read) as endpoint:
        thread = Thread(target=endpoint.serve_forever, args=(0.01,))
        thread.start()
        yield endpoint
        endpoint.shutdown()
        thread.join()
