"""A catalog that speaks Iceberg's REST protocol on loopback, over pyiceberg's own of SQLite.

It has what a landing job asks of one: its configuration, namespaces, tables made, loaded and changed. With a table it
gives the properties of its store, credentials among them, as catalogs do that clients have no keys beside.
Source: Apache Iceberg's REST catalog, OpenAPI specification.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.table import CommitTableRequest, Table

TOKEN = "the-token-of-the-catalog"

_STATUS: Mapping[type[Exception], int] = {
    CommitFailedException: HTTPStatus.CONFLICT,
    NamespaceAlreadyExistsError: HTTPStatus.CONFLICT,
    TableAlreadyExistsError: HTTPStatus.CONFLICT,
    NoSuchNamespaceError: HTTPStatus.NOT_FOUND,
    NoSuchTableError: HTTPStatus.NOT_FOUND,
}


class RestCatalog:
    """The server's catalog.

    Attributes:
        catalog: what it keeps its tables in.
        given: a client's properties of a table's store, which it gets with the table.
        on_commit: called around each commit with `done`, which makes it; its answer is the status, None is the usual.
    """

    def __init__(self, folder: Path, warehouse: str, given: Mapping[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        uri = f"sqlite:///{folder}/rest.db"
        self.catalog = SqlCatalog("rest", uri=uri, warehouse=warehouse, **given)
        self.given = dict(given)
        self.on_commit: Callable[[Callable[[], None]], int | None] | None = None
        self.lock = threading.Lock()

    def answer(self, method: str, path: list[str], body: bytes) -> tuple[int, Any]:
        """Status and document."""
        match method, path:
            case "GET", ["config"]:
                return 200, {"defaults": {}, "overrides": {}}
            case "POST", ["namespaces"]:
                self.catalog.create_namespace(".".join(json.loads(body)["namespace"]))
                return 200, json.loads(body)
            case "HEAD" | "GET", ["namespaces", space]:
                self.catalog.load_namespace_properties(space)
                return 200, {"namespace": [space], "properties": {}}
            case "POST", ["namespaces", space, "tables"]:
                asked = CreateTableRequest.model_validate({"location": None, **json.loads(body)})
                table = self.catalog.create_table(
                    f"{space}.{asked.name}",
                    asked.table_schema,
                    asked.location,
                    asked.partition_spec,
                    asked.write_order,
                    asked.properties,
                )
                return 200, self._told(table)
            case "HEAD" | "GET", ["namespaces", space, "tables", name]:
                return 200, self._told(self.catalog.load_table(f"{space}.{name}"))
            case "POST", ["namespaces", space, "tables", name]:
                return self._changed(f"{space}.{name}", CommitTableRequest.model_validate_json(body))
        return 404, _error("NoSuchEndpoint", f"{method} {'/'.join(path)}")

    def _changed(self, identifier: str, asked: CommitTableRequest) -> tuple[int, Any]:
        def done() -> None:
            self.catalog.commit_table(self.catalog.load_table(identifier), asked.requirements, asked.updates)

        status = None
        if self.on_commit is None:
            done()
        else:
            status = self.on_commit(done)
        if status is not None:
            return status, _error("Failed", "as the test has it")
        return 200, self._told(self.catalog.load_table(identifier))

    def _told(self, table: Table) -> dict[str, Any]:
        metadata = json.loads(table.metadata.model_dump_json())
        return {"metadata-location": table.metadata_location, "metadata": metadata, "config": self.given}


def _error(kind: str, message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "code": 0}}


@contextmanager
def serving(catalog: RestCatalog) -> Iterator[str]:
    """The URL of a server of the catalog; it answers nobody without `TOKEN`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = self.path.partition("?")[0].removeprefix("/v1/").split("/")
            try:
                if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                    status, document = 401, _error("NotAuthorizedException", f"not {self.headers['Authorization']}")
                else:
                    status, document = catalog.answer(self.command, path, body)
            except tuple(_STATUS) as error:
                status, document = _STATUS[type(error)], _error(type(error).__name__, str(error))
            except Exception as error:
                status, document = 500, _error(type(error).__name__, str(error))
            data = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_POST = do_HEAD = do_DELETE = respond  # noqa: N815

        def log_message(self, *given: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
