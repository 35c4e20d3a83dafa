"""An OAuth 2.0 token endpoint on the loopback interface, and what it signs tokens with."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

CLIENT_ID = "alice"
CLIENT_SECRET = "hunter2+/=:horse"
BASIC = "Basic " + base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def jwt(claims: Mapping[str, Any], sign: Any = None) -> str:
    """A JWT with these claims; without `sign`, one that nobody vouches for."""
    header = {"alg": "none"} if sign is None else {"alg": "RS256", "kid": "key-1"}
    signed = ".".join(base64url(json.dumps(part).encode()) for part in (header, claims))
    return f"{signed}.{base64url(b'' if sign is None else sign(signed.encode()))}"


@cache
def _key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@dataclass
class Answer:
    """What the endpoint says; `late` are seconds before, `drip` those between any two bytes."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    late: float = 0.0
    drip: float = 0.0


class TokenEndpoint:
    """Gives whoever knows the secret a token for `lifetime` seconds, unless it is told what to say next.

    Attributes:
        requests: method, path, headers and body of each request.
        answers: what it says to the next ones.
        claims: of every token, beside its times.
    """

    def __init__(self, lifetime: float = 3600.0) -> None:
        self.lifetime = lifetime
        self.requests: list[tuple[str, str, dict[str, str], str]] = []
        self.answers: deque[Answer] = deque()
        self.claims: dict[str, Any] = {"sub": "alice", "aud": "kafka", "iss": "tests", "scope": "produce"}
        self.url = ""
        self._stopped = threading.Event()

    def token(self, **claims: Any) -> str:
        """A token that it has signed."""
        now = time.time()
        told = {"iat": int(now), "exp": int(now + self.lifetime), **self.claims, **claims}
        return jwt(told, lambda data: _key().sign(data, padding.PKCS1v15(), SHA256()))

    def keys(self) -> bytes:
        """Its JSON Web Key Set."""
        numbers = _key().public_key().public_numbers()
        n, e = (base64url(number.to_bytes((number.bit_length() + 7) // 8)) for number in (numbers.n, numbers.e))
        key = {"kty": "RSA", "kid": "key-1", "use": "sig", "alg": "RS256", "n": n, "e": e}
        return json.dumps({"keys": [key]}).encode()

    @contextmanager
    def listening(self, tls: ssl.SSLContext | None = None) -> Iterator[TokenEndpoint]:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._say(Answer(body=endpoint.keys()) if self.path == "/jwks" else Answer(404))

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                endpoint.requests.append(("POST", self.path, dict(self.headers), body))
                if endpoint.answers:
                    self._say(endpoint.answers.popleft())
                elif self.headers.get("Authorization") != BASIC:
                    self._say(Answer(401, b'{"error":"invalid_client","error_description":"hunter"}'))
                else:
                    told = {"access_token": endpoint.token(), "token_type": "Bearer", "expires_in": endpoint.lifetime}
                    self._say(Answer(body=json.dumps(told).encode()))

            def _say(self, answer: Answer) -> None:
                endpoint._stopped.wait(answer.late)
                self.send_response(answer.status)
                for name, value in {**answer.headers, "Content-Length": str(len(answer.body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                try:
                    if not answer.drip:
                        self.wfile.write(answer.body)
                    for at in range(len(answer.body) if answer.drip else 0):
                        self.wfile.write(answer.body[at : at + 1])
                        endpoint._stopped.wait(answer.drip)
                except OSError:
                    return

            def log_message(self, *_: Any) -> None:
                return

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        scheme = "http" if tls is None else "https"
        self.url = f"{scheme}://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._stopped.set()
            server.shutdown()
            server.server_close()
            thread.join(5)
