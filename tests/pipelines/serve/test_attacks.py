"""Requests that are no requests, clients that are slow on purpose, and who is served meanwhile."""

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from quotaflow.pipelines import config
from quotaflow.pipelines.commands.serve import tls_of
from quotaflow.pipelines.serve import server
from quotaflow.pipelines.serve.access import Access
from quotaflow.pipelines.serve.connections import ConnectionBounds
from quotaflow.pipelines.serve.server import Response, running

from ...cases import cases
from .serving_pages import HIDDEN, Fixed, get, served

TOKEN = "t" * 32
SIGNED_IN = {"Authorization": f"Bearer {TOKEN}"}
HEAD = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
SOON = ConnectionBounds(request_s=0.4, answer_s=0.4)
DRIP_S = 0.05


def connected(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname or "", parts.port or 0), timeout=20)


def received(client: socket.socket) -> bytes:
    """All that comes until the server ends the connection."""
    parts = []
    while part := _part(client):
        parts.append(part)
    return b"".join(parts)


def _part(client: socket.socket) -> bytes:
    try:
        return client.recv(65_536)
    except ConnectionError:
        return b""


def shown(client: socket.socket) -> bytes:
    """What came until the end of a page."""
    came = b""
    while HIDDEN.encode() not in came and (part := _part(client)):
        came += part
    return came


def raw(url: str, sent: bytes) -> bytes:
    with connected(url) as client:
        client.sendall(sent)
        return received(client)


@cases(
    ("sent", "status"),
    ("two hosts", HEAD + b"Host: evil.example\r\n\r\n", 400),
    ("no host", b"GET / HTTP/1.1\r\n\r\n", 400),
    ("no host of HTTP 1.0", b"GET / HTTP/1.0\r\n\r\n", 403),
    ("an address of another", b"GET http://evil.example/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 400),
    ("a user before the host", b"GET / HTTP/1.1\r\nHost: 127.0.0.1@evil.example\r\n\r\n", 403),
    ("half of an IPv6 address", b"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", 403),
    ("no IPv6 address", b"GET / HTTP/1.1\r\nHost: [::zz]\r\n\r\n", 403),
    ("a host that is 1 to a resolver", b"GET / HTTP/1.1\r\nHost: 127.1\r\n\r\n", 403),
    ("a script of another site", HEAD + b"Origin: http://evil.example\r\n\r\n", 403),
    ("a page without an origin", HEAD + b"Origin: null\r\n\r\n", 403),
    ("a line end in a header", HEAD + b"X: a\rSet-Cookie: b\r\n\r\n", 400),
    ("a blank before the colon", b"GET / HTTP/1.1\r\nHost : 127.0.0.1\r\n\r\n", 400),
    ("NUL in the path", b"GET /\x00 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 400),
    ("bytes in the path", b"GET /\xff HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 400),
    ("NUL in a header", HEAD + b"X: \x00\r\n\r\n", 400),
    ("a long line", HEAD[:5] + b"x" * 40_000, 400),
    ("a long header", HEAD + b"X: " + b"x" * 40_000, 400),
    ("many headers", HEAD + b"X: 1\r\n" * 10_000, 400),
    ("a body", HEAD + b"Content-Length: 5\r\n\r\n", 400),
    ("a body in chunks", HEAD + b"Transfer-Encoding: chunked\r\n\r\n", 400),
    ("another encoding", HEAD + b"Transfer-Encoding: xchunked\r\n\r\n", 400),
    ("a length below zero", HEAD + b"Content-Length: -1\r\n\r\n", 400),
    ("two lengths", HEAD + b"Content-Length: 0\r\nContent-Length: 9\r\n\r\n", 400),
    ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    ("HTTP 2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 405),
    ("another version", b"GET / HTTP/9\r\n\r\n", 400),
    ("a made-up method", b"<b> / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 400),
    ("an upgrade", HEAD + b"Connection: close, Upgrade\r\nUpgrade: websocket\r\n\r\n", 200),
)  # fmt: skip
def test_what_is_no_request_is_one_short_answer(sent: bytes, status: int) -> None:
    with served(Fixed(), bounds=ConnectionBounds(request_s=2)) as url:
        came = raw(url, sent)
        head, _, body = came.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 %d " % status)
        assert b"content-security-policy: default-src 'none'" in head.lower()
        assert b"Set-Cookie" not in came
        if status != 200:
            assert len(body) < 200
            assert not {b"evil", b"xxx", b"<b>", HIDDEN.encode()} & {body, *body.split()}
        assert get(url).status == 200, "it goes on"


@cases(
    ("framing",),
    ("a length", b"Content-Length: %d\r\n\r\n%s"),
    ("chunks and a length", b"Transfer-Encoding: chunked\r\nContent-Length: %d\r\n\r\n0\r\n\r\n%s"),
    ("a length in a list", b"Content-Length: %d, 5\r\n\r\n%s"),
    ("chunks behind a tab", b"Transfer-Encoding:\tchunked\r\nX: %d\r\n\r\n0\r\n\r\n%s"),
)  # fmt: skip
def test_no_request_is_smuggled_behind_another(framing: bytes) -> None:
    smuggled = b"GET /smuggled HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with served(Fixed()) as url:
        came = raw(url, HEAD + framing % (len(smuggled), smuggled))
    assert came.count(b"HTTP/1.1 ") == 1
    assert b"smuggled" not in came


def test_requests_of_one_connection_are_answered_in_turn() -> None:
    last = b"GET /last HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    with served(Fixed()) as url:
        came = raw(url, (HEAD + b"\r\n") * 9 + last)
    assert came.count(HIDDEN.encode()) == 10
    assert came.endswith(b"/last")


class Large(Fixed):
    """More than all buffers on the way have room for."""

    def answer(self, target: str) -> Response:  # noqa: ARG002
        return Response(b"x" * 50_000_000)


async def read_body(_: Any, receive: Any, send: Any) -> None:
    """An application that waits for the body."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"whole"})


def dripped(client: socket.socket) -> int:
    """How many bytes a client gets rid of, one at a time, before the connection ends."""
    client.settimeout(DRIP_S)
    for sent in range(200):
        try:
            client.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            client.sendall(b"x")
        except ConnectionError:
            return sent
        else:
            return sent
    return 200


def test_a_slow_head_ends_at_the_deadline() -> None:
    with served(Fixed(), bounds=SOON) as url, connected(url) as client:
        client.sendall(HEAD + b"X: ")
        assert dripped(client) <= 1 + SOON.request_s / DRIP_S
        assert received(client).startswith(b"HTTP/1.1 408 ")
    with served(Fixed(), bounds=SOON) as url, connected(url) as silent:
        assert received(silent).startswith(b"HTTP/1.1 408 ")


def test_a_slow_body_ends_at_the_deadline() -> None:
    with (
        running(read_body, ("127.0.0.1", 0), Access(), bounds=SOON) as url,
        connected(url) as client,
    ):
        client.sendall(HEAD + b"Content-Length: 1000\r\n\r\n")
        assert dripped(client) <= 1 + SOON.request_s / DRIP_S
        assert received(client) == b""


def test_a_slow_reader_ends_at_the_deadline() -> None:
    with served(Large(), bounds=SOON) as url, connected(url) as client:
        client.sendall(HEAD + b"\r\n")
        client.recv(1_000)
        time.sleep(3 * SOON.answer_s)
        assert len(received(client)) < 25_000_000


def test_a_long_answer_has_no_deadline_until_it_is_sent() -> None:
    class Late(Fixed):
        def answer(self, target: str) -> Response:
            time.sleep(3 * SOON.request_s)
            return super().answer(target)

    with served(Late(), bounds=SOON) as url:
        assert HIDDEN in get(url).text


SLOW = {
    "heads": HEAD + b"X: ",
    "bodies": HEAD + b"Content-Length: 1000\r\n\r\n",
    "readers": (HEAD + b"\r\n") * 500,
}


def test_fifty_slow_clients_of_each_kind_leave_pages_to_who_has_the_token() -> None:
    """All at one address, which has fewer places. Each page comes by its first request."""
    bounds = ConnectionBounds(connections=64, of_address=48)
    with served(Fixed(), Access(TOKEN.encode()), bounds=bounds) as url, ExitStack() as opened:
        slow: list[socket.socket] = []
        for number in range(50):
            for sent in SLOW.values():
                client = opened.enter_context(connected(url))
                client.sendall(sent)
                slow.append(client)
            assert HIDDEN in get(url, f"/{number}", **SIGNED_IN).text
        first = received(slow[0])
        assert first.startswith(b"HTTP/1.1 503 ")
        assert b"\r\nRetry-After: 5\r\n" in first
    assert len(slow) == 150


def test_who_has_shown_the_token_keeps_the_place() -> None:
    bounds = ConnectionBounds(connections=8, of_address=8)
    request = b"%sAuthorization: Bearer %s\r\n\r\n" % (HEAD, TOKEN.encode())
    with served(Fixed(), Access(TOKEN.encode()), bounds=bounds) as url, ExitStack() as opened:
        readers = [opened.enter_context(connected(url)) for _ in range(7)]
        for client in readers:
            client.sendall(request)
            assert HIDDEN.encode() in shown(client)
        with ExitStack() as slow:
            for _ in range(20):
                slow.enter_context(connected(url)).sendall(HEAD)
        for client in readers:
            client.sendall(request)
            assert HIDDEN.encode() in shown(client)
        last = opened.enter_context(connected(url))
        last.sendall(request)
        assert HIDDEN.encode() in shown(last)
        refused = received(opened.enter_context(connected(url)))
        assert refused.startswith(b"HTTP/1.1 503 "), "all places are of those with the token"


@contextmanager
def answering(pages: "Blocked", url: str) -> Iterator[list[str]]:
    """A request that is being answered within the block, and what came of it after that."""
    came: list[str] = []

    def ask() -> None:
        came.append(get(url).text)

    asking = threading.Thread(target=ask)
    asking.start()
    assert pages.is_started.wait(20)
    yield came


class Blocked(Fixed):
    """Answers when it may, or when it is stopped."""

    def __init__(self) -> None:
        self.is_started, self.may_go = threading.Event(), threading.Event()
        self.is_stopped = False

    def answer(self, target: str) -> Response:
        self.is_started.set()
        assert self.may_go.wait(20)
        return super().answer(target)

    def stop(self) -> None:
        self.is_stopped = True
        self.may_go.set()


def test_a_stop_lets_running_requests_end() -> None:
    pages = Blocked()
    with served(pages) as url, answering(pages, url) as came:
        threading.Timer(0.5, pages.may_go.set).start()
    assert HIDDEN in came[0]


def test_a_stop_ends_what_runs_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_STOP_S", 0.3)
    pages = Blocked()
    with served(pages) as url, answering(pages, url) as came:
        pass
    assert pages.is_stopped
    assert HIDDEN in came[0], "its error has some seconds too"


def test_more_requests_than_wait_are_told_to_ask_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_MAX_WAITING", 1)
    pages = Blocked()
    with served(pages) as url, answering(pages, url) as came:
        second = get(url)
        assert (second.status, second.headers["Retry-After"]) == (503, "5")
        assert get(url, "/health").status == 200, "it is alive"
        pages.may_go.set()
    assert HIDDEN in came[0]


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of 127.0.0.1 with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "pages")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    signed = made.sign(key, hashes.SHA256())
    of_key = (
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    file = tmp_path_factory.mktemp("pem") / "both.pem"
    file.write_bytes(signed.public_bytes(serialization.Encoding.PEM) + key.private_bytes(*of_key))
    return file


def context(pem: Path) -> ssl.SSLContext | None:
    return tls_of(config.Conf(serve=config.ServeSection(tls_cert=str(pem))))


def test_a_request_in_the_segment_that_ends_the_handshake_is_answered(pem: Path) -> None:
    trusting = ssl.create_default_context(cafile=str(pem))
    trusting.check_hostname = False
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = trusting.wrap_bio(incoming, outgoing)
    with served(Fixed(), tls=context(pem)) as url, connected(url) as client:
        while True:
            try:
                session.do_handshake()
                break
            except ssl.SSLWantReadError:
                client.sendall(outgoing.read())
                incoming.write(client.recv(65_536))
        session.write(HEAD + b"\r\n")
        came = b""
        while not came:
            client.sendall(outgoing.read())
            incoming.write(client.recv(65_536))
            with suppress(ssl.SSLWantReadError):
                came = session.read(65_536)
        assert came.startswith(b"HTTP/1.1 200 ")


def test_pages_by_tls(pem: Path) -> None:
    trusting = ssl.create_default_context(cafile=str(pem))
    trusting.check_hostname = False
    access = Access(TOKEN.encode())
    with served(Fixed(), access, context(pem), SOON) as url:
        assert url.startswith("https://")
        with connected(url) as plain:
            plain.sendall(HEAD + b"\r\n")
            assert HIDDEN.encode() not in received(plain)
        with connected(url) as silent:
            assert received(silent) == b"", "a handshake has the deadline of a request"
        with trusting.wrap_socket(connected(url)) as client:
            client.sendall(
                b"GET /login HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n"
                % TOKEN.encode()
            )
            assert b"; SameSite=Strict; Secure" in client.recv(10_000)
            client.sendall(HEAD + b"X: ")
            came = b"".join(iter(lambda: _part(client), b""))
            assert came.startswith(b"HTTP/1.1 408 ")
