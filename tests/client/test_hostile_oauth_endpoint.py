"""Whatever a token endpoint writes, and however much of it, is a typed error or a token, and is read in bounds."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tagwire.client import ClientCredentials
from tagwire.client.oauth_endpoint import MAX_RESPONSE
from tagwire.errors import ConnectError, TokenError

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
LAST = OK + b"Connection: close\r\n\r\n"

NOT_HTTP = "no response of HTTP"
NO_JSON = "is no JSON object"
TOO_MUCH = f"more than {MAX_RESPONSE} bytes"
UNKNOWN_END = "nothing tells when the token ends"

# Name: what comes first, what comes again and again behind it, and what is told of it.
WRITES: dict[str, tuple[bytes, bytes, type[Exception], str]] = {
    "a bomb of gzip": (LAST + gzip.compress(b" " * 20_000_000), b"", TokenError, NO_JSON),
    "a length that is not kept": (OK + b"Content-Length: 99999999999999\r\n\r\n", b" " * 65536, TokenError, TOO_MUCH),
    "a length that is not reached": (OK + b'Content-Length: 100\r\n\r\n{"access_', b"", ConnectError, NOT_HTTP),
    "a length below zero": (OK + b"Content-Length: -5\r\n\r\n", b" " * 65536, TokenError, TOO_MUCH),
    "a huge chunk": (CHUNKED + b"ffffffffffffffff\r\n", b" " * 65536, TokenError, TOO_MUCH),
    "a chunk below zero": (CHUNKED + b"-5\r\n", b" " * 65536, ConnectError, NOT_HTTP),
    "a chunk's extension without an end": (CHUNKED + b"1;", b"a" * 1000, ConnectError, NOT_HTTP),
    "chunks without an end": (CHUNKED, b"1\r\n \r\n", ConnectError, "timed out"),
    "trailers without an end": (CHUNKED + b"0\r\n", b"X: y\r\n", ConnectError, "timed out"),
    "a header without an end": (OK + b"X: ", b"a" * 65536, ConnectError, NOT_HTTP),
    "headers without an end": (OK, b"X: y\r\n" * 1000, ConnectError, NOT_HTTP),
    "a status without an end": (b"HTTP/1.1 ", b"2" * 65536, ConnectError, NOT_HTTP),
    "to be continued for ever": (b"", b"HTTP/1.1 100 Continue\r\n\r\n", ConnectError, "timed out"),
    "another protocol": (b"HTTP/1.1 101 Switching\r\n\r\n", b"a" * 1000, ConnectError, "status 101"),
    "TLS": (b"\x16\x03\x01\x02\x00\x01", b"\0" * 1000, ConnectError, NOT_HTTP),
    "nothing": (b"", b"", ConnectError, "closed connection without response"),
    "a number of 5000 digits": (
        LAST + b'{"access_token":"a","expires_in":' + b"9" * 5000 + b"}",
        b"",
        TokenError,
        NO_JSON,
    ),
    "an end at no number": (LAST + b'{"access_token":"a","expires_in":NaN}', b"", TokenError, UNKNOWN_END),
    "an end at infinity": (LAST + b'{"access_token":"a","expires_in":1e400}', b"", TokenError, UNKNOWN_END),
    "half a character": (LAST + b'{"access_token":"\\ud800","expires_in":60}', b"", TokenError, "no bearer token has"),
    "a type that moves the cursor": (
        b"HTTP/1.1 200 OK\r\nContent-Type: \x1b[31m\x07\r\nContent-Length: 2\r\n\r\n[]",
        b"",
        TokenError,
        r"\x1b[31m\x07",
    ),
}


@contextmanager
def writing(first: bytes, again: bytes) -> Iterator[str]:
    """Where somebody listens who writes this to whoever asks, until that hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                asked = b""
                while not asked.endswith(b"client_credentials"):
                    asked += connection.recv(65536)
                try:
                    connection.sendall(first)
                    while again:
                        connection.sendall(again)
                except OSError:  # it has hung up
                    return

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/token"
        thread.join()


@pytest.mark.parametrize("what", WRITES)
def test_whatever_an_endpoint_writes_is_an_error_that_names_it_and_no_secret(what: str) -> None:
    first, again, kind, says = WRITES[what]
    with writing(first, again) as url:
        endpoint = ClientCredentials(
            url, "alice", "hunter2", read_timeout=0.3, retry_backoff=0.1, retry_backoff_max=0.05
        )
        with pytest.raises(kind) as caught:
            endpoint.token(time.time)
    assert str(caught.value).startswith(f"token endpoint {url}: ")
    assert says in str(caught.value)
    assert len(str(caught.value)) < 300
    assert "hunter2" not in str(caught.value)
