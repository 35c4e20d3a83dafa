"""Whatever answers in a registry's place: a typed error in bounded time and memory, and no secret in it."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

import pytest

from tagwire.errors import SchemaRegistryError, ValueSchemaError
from tagwire.values.registry import SchemaRegistry, registry_settings

from .registry_server import Answer, RegistryServer, Request, dripping, registry_server

SECRET = "pen,c=il-hunter2"


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with registry_server() as running:
        yield running


def client(url: str, **more: str) -> SchemaRegistry:
    given = {"max.retries": "0", "request.timeout.ms": "20000", "basic.auth.user.info": f"alice:{SECRET}"}
    return SchemaRegistry(
        registry_settings({"url": url, **given, **{name.replace("_", "."): value for name, value in more.items()}})
    )


@contextmanager
def talker(talk: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that says what `talk` does, whatever it is asked; its URL."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    with connection, suppress(OSError):
                        talk(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(10)


GARBAGE = {
    "HTML": b"<!doctype html><html>Sign in</html>",
    "nothing": b"",
    "half": b'{"schema": "\\"int',
    "no JSON": b"\xff\xfe\x00\x1b[31m",
    "deep": b"[" * 100_000,
    "number": b"1" * 10_000,
    "list": b"[1, 2]",
    "null": b"null",
    "no schema": b"{}",
    "schema of another type": b'{"schema": 7}',
    "references of another type": b'{"schema": "{}", "references": {"a": 1}}',
    "reference of another type": b'{"schema": "{}", "references": [7]}',
    "reference without version": b'{"schema": "{}", "references": [{"name": "a", "subject": "b"}]}',
}


@pytest.mark.parametrize("body", GARBAGE.values(), ids=GARBAGE)
@pytest.mark.parametrize("status", [200, 404, 500])
def test_an_answer_that_is_none_of_a_registrys_is_an_outage(server: RegistryServer, body: bytes, status: int) -> None:
    server.misbehave = lambda request: Answer(status, body, {"Content-Type": "text/html"})
    for ask in (lambda: client(server.url).latest("t-value"), client(server.url).subjects):
        with pytest.raises(SchemaRegistryError) as error:
            ask()
        assert not error.value.not_found
        assert len(str(error.value)) < 1000
        assert "\x1b" not in str(error.value)
        assert SECRET not in str(error.value)
    with pytest.raises(SchemaRegistryError) as error:
        client(server.url).by_id(7)
    assert not error.value.not_found


ODD_SCHEMAS = {
    "another type": {"schema": "{}", "schemaType": "THRIFT"},
    "a type that is none": {"schema": "{}", "schemaType": ["AVRO"]},
    "half a surrogate pair": {"schema": "\ud800"},
}


@pytest.mark.parametrize("answer", ODD_SCHEMAS.values(), ids=ODD_SCHEMAS)
def test_a_schema_that_is_none_is_an_error_about_it(server: RegistryServer, answer: dict[str, object]) -> None:
    server.misbehave = lambda request: Answer(200, json.dumps(answer).encode())
    with pytest.raises(ValueSchemaError):
        client(server.url).by_id(7)


def test_a_response_beyond_the_bound_is_not_read_on(server: RegistryServer) -> None:
    server.misbehave = lambda request: Answer(200, json.dumps({"schema": "x" * 300_000}).encode())
    with pytest.raises(SchemaRegistryError, match=r"longer than 100000 bytes \(max\.response\.bytes\)"):
        client(server.url, max_response_bytes="100000").by_id(7)
    assert len(client(server.url).by_id(7).schema.text) == 300_000


def test_a_response_without_an_end_is_cut_at_the_bound() -> None:
    sent = []

    def talk(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        while True:
            connection.sendall(b" " * 65536)
            sent.append(1)

    with talker(talk) as url, pytest.raises(SchemaRegistryError, match="longer than 1000000 bytes"):
        client(url, max_response_bytes="1000000").by_id(7)
    assert len(sent) < 1000


def test_a_compressed_response_is_not_unpacked(server: RegistryServer) -> None:
    bomb = gzip.compress(b" " * 10_000_000)
    server.misbehave = lambda request: Answer(200, bomb, {"Content-Encoding": "gzip"})
    with pytest.raises(SchemaRegistryError, match="compressed"):
        client(server.url).by_id(7)


def test_silence_ends_in_an_error(server: RegistryServer) -> None:
    server.misbehave = lambda request: Answer(silence=30)
    with pytest.raises(SchemaRegistryError, match="no response in time"):
        client(server.url, http_read_timeout_ms="100").by_id(7)


def test_a_drip_ends_when_the_request_has_had_its_time(server: RegistryServer) -> None:
    server.misbehave = dripping(b'{"schema": "' + b"x" * 100_000, 0.01)
    begun = time.monotonic()
    with pytest.raises(SchemaRegistryError, match=r"no response within 0\.4 s"):
        client(server.url, request_timeout_ms="400", max_retries="50").by_id(7)
    assert time.monotonic() - begun < 10


DRIPS = {
    "headers": b"HTTP/1.1 200 OK\r\nX-A: ",
    "status": b"HTTP/1.1 200 ",
    "interim responses": b"",
}


@pytest.mark.parametrize("start", DRIPS.values(), ids=DRIPS)
def test_a_drip_of_what_stands_before_the_content_ends_likewise(start: bytes) -> None:
    piece = b"a" if start else b"HTTP/1.1 100 Continue\r\n\r\n"

    def talk(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(start)
        while True:
            connection.sendall(piece)
            time.sleep(0.005)

    begun = time.monotonic()
    with talker(talk) as url, pytest.raises(SchemaRegistryError):
        client(url, request_timeout_ms="400", max_retries="50").by_id(7)
    assert time.monotonic() - begun < 10


def test_a_drip_ends_likewise_that_begins_when_the_request_has_had_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """No timeout bounds how long a name takes to be resolved."""
    resolved = socket.getaddrinfo
    begun = time.monotonic()

    def resolve(*asked: Any, **more: Any) -> Any:
        time.sleep(0.5)
        return resolved(*asked, **more)

    def talk(connection: socket.socket) -> None:
        while time.monotonic() < begun + 15:
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            time.sleep(0.005)

    monkeypatch.setattr("urllib3.util.connection.socket.getaddrinfo", resolve)
    with talker(talk) as url, pytest.raises(SchemaRegistryError, match=r"no response within 0\.3 s"):
        client(url, request_timeout_ms="300").by_id(7)
    assert time.monotonic() - begun < 10


def test_a_handshake_that_never_ends_ends() -> None:
    def talk(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(b"\x16\x03\x03\x40\x00")  # a record of 16 KiB
        while True:
            connection.sendall(b"\x02")
            time.sleep(0.005)

    begun = time.monotonic()
    with talker(talk) as url, pytest.raises(SchemaRegistryError):
        client(url.replace("http", "https"), request_timeout_ms="400").by_id(7)
    assert time.monotonic() - begun < 10


TALKS = {
    "nothing": b"",
    "no HTTP": b"SSH-2.0-OpenSSH_9.6\r\n",
    "a long line": b"HTTP/1.1 200 " + b"a" * 100_000,
    "many headers": b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 1000 + b"\r\n",
    "a wrong length": b"HTTP/1.1 200 OK\r\nContent-Length: -7\r\n\r\n{}",
    "a length that is not met": b'HTTP/1.1 200 OK\r\nContent-Length: 70\r\n\r\n{"schema": "1"}',
    "wrong chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
    "a chunk without an end": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{",
}


@pytest.mark.parametrize("said", TALKS.values(), ids=TALKS)
def test_what_is_no_http_is_an_error(said: bytes) -> None:
    def talk(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(said)

    with talker(talk) as url, pytest.raises(SchemaRegistryError) as error:
        client(url).by_id(7)
    assert not error.value.not_found
    assert len(str(error.value)) < 1000


def test_a_registry_that_is_no_tls_is_an_error() -> None:
    with (
        talker(lambda connection: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as url,
        pytest.raises(SchemaRegistryError, match="TLS"),
    ):
        client(url.replace("http", "https")).by_id(7)


def test_what_the_caller_is_in_the_midst_of_is_no_reason_of_the_registrys() -> None:
    with talker(lambda connection: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as url:
        try:
            raise KeyError("the caller's own")
        except KeyError:
            with pytest.raises(SchemaRegistryError, match="TLS"):
                client(url.replace("http", "https")).by_id(7)


def test_references_in_a_circle_are_refused(server: RegistryServer) -> None:
    server.add("a", '"int"', "AVRO", [("b", "b", 1)])
    server.add("b", '"long"', "AVRO", [("a", "a", 1)])
    server.add("self", '"bytes"', "AVRO", [("self", "self", 1)])
    with pytest.raises(ValueSchemaError, match="in a circle: a 1 → b 1 → a 1"):
        client(server.url).version("a", 1)
    with pytest.raises(ValueSchemaError, match="in a circle: b 1 → a 1 → b 1"):
        client(server.url).by_id(1)
    with pytest.raises(ValueSchemaError, match="in a circle: self 1 → self 1"):
        client(server.url).latest("self")
    assert len(server.requests) < 10


def referring(further: Callable[[int], list[int]]) -> Callable[[Request], Answer]:
    """Answers that are a schema, `further` gives the numbers of the subjects that number N refers to."""

    def answer(request: Request) -> Answer:
        number = int(request.path.split("/")[2]) if request.path.startswith("/subjects") else 0
        references = [{"name": f"r{each}", "subject": str(each), "version": 1} for each in further(number)]
        return Answer(200, json.dumps({"schema": '"int"', "references": references}).encode())

    return answer


def test_references_without_an_end_are_refused(server: RegistryServer) -> None:
    numbers = count(1000)
    server.misbehave = referring(lambda number: [number + 1])
    with pytest.raises(ValueSchemaError, match="more than 50 deep"):
        client(server.url).by_id(7)
    server.misbehave = referring(lambda number: [next(numbers) for _ in range(30)] if number < 1030 else [])
    with pytest.raises(ValueSchemaError, match="more than 500 others"):
        client(server.url).by_id(7)
    server.misbehave = referring(lambda number: list(range(2000, 2600)))
    with pytest.raises(ValueSchemaError, match="600 others"):
        client(server.url).by_id(7)
    assert len(server.requests) < 800


def test_references_that_unfold_out_of_proportion_are_refused(server: RegistryServer) -> None:
    server.misbehave = referring(lambda number: [number + 1] * 2 if number < 40 else [])
    begun = time.monotonic()
    with pytest.raises(ValueSchemaError, match="more than 10000"):
        client(server.url).by_id(7)
    assert len(server.requests) < 60
    assert time.monotonic() - begun < 10


def test_a_schema_that_many_refer_to_is_fetched_once(server: RegistryServer) -> None:
    server.misbehave = referring(lambda number: [number + 1] * 2 if number < 8 else [])
    found = client(server.url).by_id(7).schema
    assert len(server.requests) == 9
    assert [name for name, _ in found.references] == ["r1", "r1"]


def test_no_secret_is_in_any_error(server: RegistryServer) -> None:
    said = []
    for answer in (
        Answer(401, json.dumps({"error_code": 401, "message": "no"}).encode()),
        Answer(403, b""),
        Answer(500, b"x"),
        Answer(302, b"", {"Location": f"http://bob:{SECRET}@127.0.0.1:1/x"}),
        Answer(302, b"", {"Location": f"ftp://bob:{SECRET}@127.0.0.1:1/x"}),
    ):
        server.misbehave = lambda request, answer=answer: Answer(answer.status, answer.body, dict(answer.headers))
        with pytest.raises(SchemaRegistryError) as error:
            client(server.url).by_id(7)
        said += [str(error.value), repr(error.value)]
    assert not [text for text in said if SECRET in text]
