"""A schema registry of our own, on loopback: what Confluent's answers, as far as a client asks it, and misbehaviour."""

from __future__ import annotations

import json
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

_JSON = "application/vnd.schemaregistry.v1+json"


@dataclass
class Request:
    """What a registry was asked."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any = None


@dataclass
class Answer:
    """An answer instead of the registry's own.

    Attributes:
        drip: seconds before each byte of the body; `silence` before anything is said.
    """

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    drip: float = 0.0
    silence: float = 0.0


Misbehaviour = Callable[[Request], Answer | None]


class RegistryServer:
    """Subjects with their versions; ids from 1 on, a GUID for each.

    Attributes:
        requests: all that was asked so far.
        misbehave: gives an answer instead of the registry's own; None where that is to answer.
        credentials: the Authorization that a request needs; None is none.
        guids: whether answers tell GUIDs, as registries since Confluent's 8.0 do.
        deleted: subjects that were deleted softly: their schemas are served by id, their versions on request.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.misbehave: Misbehaviour | None = None
        self.credentials: str | None = None
        self.guids = True
        self.deleted: set[str] = set()
        self.compatible: bool | list[str] = True
        self._schemas: dict[int, dict[str, Any]] = {}
        self._subjects: dict[str, list[int]] = {}
        self._connections: list[socket.socket] = []
        self._stopping = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = 64 * 1024

            def do_GET(self) -> None:
                server._handle(self)

            do_POST = do_GET  # noqa: N815

            def setup(self) -> None:
                super().setup()
                server._connections.append(self.connection)

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, request: object, client_address: object) -> None:
                pass  # clients hang up in the middle, too

        self._http = Server(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        scheme = "https" if hasattr(self._http.socket, "context") else "http"
        return f"{scheme}://127.0.0.1:{self._http.server_address[1]}"

    def start(self, context: Any = None) -> None:
        if context is not None:
            self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._http.shutdown()
        self._http.server_close()
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def add(
        self, subject: str, schema: str, kind: str = "AVRO", references: list[tuple[str, str, int]] | None = None
    ) -> int:
        """Registers a schema; its id. Nothing is checked: circles of references, too, can be made."""
        found = {"schema": schema, "schemaType": kind}
        if references:
            found["references"] = [{"name": n, "subject": s, "version": v} for n, s, v in references]
        return self._register(subject, found)

    def guid(self, schema_id: int) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, str(schema_id)))

    def asked(self, start: str = "/") -> list[str]:
        """The paths of the requests so far that begin with `start`."""
        return [each.path for each in self.requests if each.path.startswith(start)]

    def _register(self, subject: str, found: dict[str, Any]) -> int:
        known = [at for at, one in self._schemas.items() if one == found]
        schema_id = known[0] if known else len(self._schemas) + 1
        self._schemas[schema_id] = found
        versions = self._subjects.setdefault(subject, [])
        if schema_id not in versions:
            versions.append(schema_id)
        return schema_id

    def _handle(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("Content-Length") or 0)
        data = handler.rfile.read(length)
        request = Request(
            handler.command, handler.path, dict(handler.headers.items()), json.loads(data) if data else None
        )
        self.requests.append(request)
        answer = self.misbehave(request) if self.misbehave else None
        if answer is None:
            status, found = self._answer(request)
            answer = Answer(status, json.dumps(found).encode())
        if answer.silence:
            self._stopping.wait(answer.silence)
        try:
            handler.send_response(answer.status)
            handler.send_header("Content-Type", answer.headers.pop("Content-Type", _JSON))
            for name, value in answer.headers.items():
                handler.send_header(name, value)
            handler.send_header("Content-Length", str(len(answer.body)))
            handler.end_headers()
            if answer.drip:
                for at in range(len(answer.body)):
                    if self._stopping.wait(answer.drip):
                        return
                    handler.wfile.write(answer.body[at : at + 1])
                    handler.wfile.flush()
            else:
                handler.wfile.write(answer.body)
        except OSError:
            handler.close_connection = True

    def _answer(self, request: Request) -> tuple[int, Any]:
        if self.credentials is not None and request.headers.get("Authorization") != self.credentials:
            return 401, {"error_code": 401, "message": "Unauthorized"}
        parts = urlsplit(request.path)
        query = parse_qs(parts.query)
        names = [unquote(each) for each in parts.path.strip("/").split("/")]
        match request.method, *names:
            case "GET", "schemas", "ids", number:
                return self._by_id(int(number)) if number.isdecimal() else (404, {"error_code": 404, "message": ""})
            case "GET", "schemas", "guids", guid if self.guids:
                known = [each for each in self._schemas if self.guid(each) == guid]
                return self._by_id(known[0] if known else -1)
            case "GET", "subjects":
                return 200, list(self._subjects)
            case "GET", "subjects", subject, "versions":
                return self._of_subject(subject) or (200, list(range(1, len(self._subjects[subject]) + 1)))
            case "GET", "subjects", subject, "versions", version:
                return self._of_subject(subject, "deleted" in query) or self._version(subject, version)
            case "POST", "subjects", subject, "versions":
                schema_id = self._register(subject, _schema_of(request.body))
                return 200, {"id": schema_id, **self._guid_of(schema_id)}
            case "POST", "subjects", subject:
                return self._of_subject(subject) or self._lookup(subject, _schema_of(request.body))
            case "POST", "compatibility", "subjects", subject, "versions", _:
                missing = self._of_subject(subject)
                said = self.compatible if isinstance(self.compatible, list) else []
                return missing or (200, {"is_compatible": self.compatible is True, "messages": said})
            case "GET", "config", subject if query.get("defaultToGlobal"):
                return 200, {"compatibilityLevel": "BACKWARD"}
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _by_id(self, schema_id: int) -> tuple[int, Any]:
        if schema_id not in self._schemas:
            return 404, {"error_code": 40403, "message": f"Schema {schema_id} not found"}
        return 200, {**_without_avro(self._schemas[schema_id]), **self._guid_of(schema_id)}

    def _of_subject(self, subject: str, deleted: bool = False) -> tuple[int, Any] | None:
        if subject in self._subjects and (deleted or subject not in self.deleted):
            return None
        return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}

    def _version(self, subject: str, version: str) -> tuple[int, Any]:
        ids = self._subjects[subject]
        number = len(ids) if version == "latest" else int(version)
        if not 0 < number <= len(ids):
            return 404, {"error_code": 40402, "message": f"Version {number} not found."}
        found = _without_avro(self._schemas[ids[number - 1]])
        return 200, {
            "subject": subject,
            "version": number,
            "id": ids[number - 1],
            **found,
            **self._guid_of(ids[number - 1]),
        }

    def _lookup(self, subject: str, wanted: dict[str, Any]) -> tuple[int, Any]:
        for at, schema_id in enumerate(self._subjects[subject]):
            if self._schemas[schema_id] == wanted:
                return self._version(subject, str(at + 1))
        return 404, {"error_code": 40403, "message": "Schema not found"}

    def _guid_of(self, schema_id: int) -> dict[str, str]:
        return {"guid": self.guid(schema_id)} if self.guids else {}


def _schema_of(body: dict[str, Any]) -> dict[str, Any]:
    return {"schemaType": "AVRO", **body}


def _without_avro(schema: dict[str, Any]) -> dict[str, Any]:
    """Registries leave out the type that was once the only one."""
    return {name: value for name, value in schema.items() if name != "schemaType" or value != "AVRO"}


@contextmanager
def registry_server(context: Any = None) -> Iterator[RegistryServer]:
    """A registry that is served until the end of the block."""
    server = RegistryServer()
    server.start(context)
    try:
        yield server
    finally:
        server.stop()


def dripping(body: bytes, seconds: float) -> Misbehaviour:
    """Answers byte by byte."""
    return lambda request: Answer(200, body, drip=seconds)


def for_a_while(count: int, status: int, headers: dict[str, str] | None = None) -> Misbehaviour:
    """Fails the first `count` requests."""
    left = [count]

    def misbehave(request: Request) -> Answer | None:
        left[0] -= 1
        body = json.dumps({"error_code": status, "message": "not now"}).encode()
        return Answer(status, body, dict(headers or {})) if left[0] >= 0 else None

    return misbehave


def wait_for(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Waits until something holds."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it never came to be"
        time.sleep(0.005)
