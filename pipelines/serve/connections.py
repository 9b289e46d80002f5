"""Connections of the HTTP server: each has a place and deadlines."""

import asyncio
import ipaddress
import ssl
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from quotaflow.pipelines.serve.access import Proxies, address_of

_RETRY_S = 5
_PREFIX = 64
"""The network of an IPv6 address: its owner has all addresses of that network."""


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """How many connections there are at once, and how long the parts of a request take."""

    connections: int = 128
    of_address: int = 64
    request_s: float = 10
    """Until a connection has sent a whole request, with its handshake of TLS."""
    answer_s: float = 30
    """Until a client has read an answer, and then sent the next request."""
    refusal_s: float = 2


@dataclass
class Places:
    """The connections that are open, the oldest first, and those that read why they are refused."""

    bounds: ConnectionBounds
    proxies: Proxies
    tls: ssl.SSLContext | None
    opened: "dict[PageConnection, None]" = field(default_factory=dict)
    refused: "set[PageConnection]" = field(default_factory=set)

    def take(self, new: "PageConnection") -> bool:
        """Take a place; False if there is none.

        Where all are taken, the oldest connection that has not shown a token is refused instead.
        """
        of_address = [each for each in self.opened if each.source and each.source == new.source]
        crowd = of_address if len(of_address) >= self.bounds.of_address else []
        if len(self.opened) >= self.bounds.connections:
            crowd = list(self.opened)
        if crowd:
            oldest = next((each for each in crowd if not each.is_trusted), None)
            if oldest is None:
                return False
            oldest.refuse(HTTPStatus.SERVICE_UNAVAILABLE)
        self.opened[new] = None
        return True

    def leave(self, old: "PageConnection") -> None:
        """Free the place of a connection."""
        self.opened.pop(old, None)
        self.refused.discard(old)


class PageConnection(H11Protocol):
    """A connection of uvicorn that ends when its client is too slow, or its place is needed."""

    def __init__(self, places: Places, **given: Any) -> None:
        """A connection that the loop accepted."""
        super().__init__(**given)
        self.app_state = {**self.app_state, "connection": self}
        self.places = places
        self.is_trusted = False
        """Whether a request of it was allowed to read."""
        self.source = ""
        self._deadline: asyncio.TimerHandle | None = None
        self._handshake: asyncio.Task[None] | None = None
        self._early: bytes | None = None
        """What came with the end of the handshake; None without one that goes on."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a place and start TLS."""
        self.transport = transport
        self.source = self._source(transport)
        self._end_after(self.places.bounds.request_s)
        has_place = self.places.take(self)
        if self.places.tls is None:
            super().connection_made(transport)
            if not has_place:
                self.refuse(HTTPStatus.SERVICE_UNAVAILABLE)
        elif has_place:
            transport.pause_reading()
            self._early = b""
            self._handshake = self.loop.create_task(self._start_tls(transport, self.places.tls))
        else:
            transport.abort()

    def _source(self, transport: asyncio.Transport) -> str:
        """The address that has a bound; empty for a proxy."""
        peer = transport.get_extra_info("peername")[0]
        address = address_of(peer)
        if self.places.proxies.has(peer):
            return ""
        if isinstance(address, ipaddress.IPv6Address):
            return str(ipaddress.ip_network((address, _PREFIX), strict=False))
        return str(address)

    async def _start_tls(self, transport: asyncio.Transport, tls: ssl.SSLContext) -> None:
        secured = None
        try:
            secured = await self.loop.start_tls(transport, self, tls, server_side=True)
        except OSError:  # no TLS, or the client went away
            pass
        finally:
            if secured is None:
                transport.abort()
                self._forget()
        if secured is not None:
            super().connection_made(secured)
            early, self._early = self._early, None
            if early:
                self.data_received(early)

    def connection_lost(self, exc: Exception | None) -> None:
        """Free the place."""
        self._forget()
        super().connection_lost(exc)

    def _forget(self) -> None:
        self._end_after(None)
        self.places.leave(self)

    def _end_after(self, delay_s: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if delay_s is None else self.loop.call_later(delay_s, self._end)

    def _end(self) -> None:
        if self._is_waited_for and self not in self.places.refused:
            self.refuse(HTTPStatus.REQUEST_TIMEOUT)
        else:
            self.transport.abort()

    @property
    def _is_waited_for(self) -> bool:
        """Whether nothing is left to send: the client has to go on."""
        is_answered = self.cycle is None or self.cycle.response_complete
        return self.flow is not None and is_answered and not self.transport.get_write_buffer_size()

    @property
    def _is_answering(self) -> bool:
        return (
            self.cycle is not None and not self.cycle.more_body and not self.cycle.response_complete
        )

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        if self._early is not None:
            self._early += data
        elif self not in self.places.refused:
            super().data_received(data)

    def handle_events(self) -> None:
        """Start an answer: it has no deadline until there is something to read."""
        super().handle_events()
        if self._is_answering and not self.flow.write_paused:
            self._end_after(None)

    def pause_writing(self) -> None:
        """Give the client time to read what waits."""
        super().pause_writing()
        self._end_after(self.places.bounds.answer_s)

    def resume_writing(self) -> None:
        """Go on with the answer, since the client has read."""
        super().resume_writing()
        if self._is_answering:
            self._end_after(None)

    def on_response_complete(self) -> None:
        """Give the client time to read the rest, and to ask again."""
        self._end_after(self.places.bounds.answer_s)
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """Refuse what is no request, without repeating a part of it."""
        self.refuse(HTTPStatus.BAD_REQUEST)

    def refuse(self, status: HTTPStatus) -> None:
        """End the connection with a status, if no other answer is on its way."""
        self.places.leave(self)
        is_full = len(self.places.refused) >= self.places.bounds.connections
        if is_full or not self._is_waited_for:
            self.transport.abort()
            return
        self.places.refused.add(self)
        self._unset_keepalive_if_required()
        body = f"{status.phrase}\n".encode()
        headers = {
            b"Content-Type": b"text/plain; charset=utf-8",
            b"Content-Length": b"%d" % len(body),
            b"Connection": b"close",
        }
        if status is HTTPStatus.SERVICE_UNAVAILABLE:
            headers[b"Retry-After"] = b"%d" % _RETRY_S
        every = (*self.server_state.default_headers, *headers.items())
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode()
        lines = b"".join(b"%s: %s\r\n" % each for each in every)
        self.transport.write(head + lines + b"\r\n" + body)
        # A connection with unread bytes that is closed at once loses its answer.
        self._end_after(self.places.bounds.refusal_s)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()
