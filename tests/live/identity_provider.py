"""An identity provider on this machine: client credentials for signed tokens, and its keys."""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

CLIENT_ID, CLIENT_SECRET = "quotaflow", "client-secret"
AUDIENCE = "the-cluster"
SUBJECT = "quotaflow-service"
_LIFE_S = 300


class IdentityProvider(ThreadingHTTPServer):
    """Gives tokens for one client's secret; counts how many."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.key = rsa.generate_private_key(public_exponent=65_537, key_size=2048)
        self.tokens = 0

    @property
    def token_url(self) -> str:
        """Where clients get tokens."""
        return f"http://127.0.0.1:{self.server_port}/token"

    @property
    def keys_url(self) -> str:
        """Where brokers get the key to verify tokens by."""
        return f"http://127.0.0.1:{self.server_port}/keys"

    def keys(self) -> dict[str, Any]:
        """The public key as a JSON Web Key Set (RFC 7517)."""
        numbers = self.key.public_key().public_numbers()
        n = numbers.n.to_bytes(256, "big")
        key = {"kty": "RSA", "kid": "k1", "alg": "RS256", "use": "sig", "n": _text(n), "e": "AQAB"}
        return {"keys": [key]}

    def token(self, scope: str) -> str:
        """A signed token (RFC 7519)."""
        self.tokens += 1
        now = int(time.time())
        head = {"alg": "RS256", "typ": "JWT", "kid": "k1"}
        claims = {"sub": SUBJECT, "aud": AUDIENCE, "iat": now, "exp": now + _LIFE_S, "scope": scope}
        signed = ".".join(_text(json.dumps(part).encode()) for part in (head, claims))
        signature = self.key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_text(signature)}"


@contextmanager
def running() -> Iterator[IdentityProvider]:
    """The provider, until the block ends."""
    with IdentityProvider() as provider:
        thread = Thread(target=provider.serve_forever, args=(0.05,))
        thread.start()
        yield provider
        provider.shutdown()
        thread.join()


class _Answer(BaseHTTPRequestHandler):
    server: IdentityProvider

    def do_GET(self) -> None:
        self._send(200, self.server.keys())

    def do_POST(self) -> None:
        fields = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        login = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        if self.headers["Authorization"] != f"Basic {login}":
            self._send(401, {"error": "invalid_client"})
        elif fields.get("grant_type") != ["client_credentials"]:
            self._send(400, {"error": "unsupported_grant_type"})
        else:
            token = self.server.token(fields.get("scope", [""])[0])
            self._send(200, {"access_token": token, "expires_in": _LIFE_S, "token_type": "Bearer"})

    def _send(self, status: int, content: dict[str, Any]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")
