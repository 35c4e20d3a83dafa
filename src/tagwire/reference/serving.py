"""The reference on a loopback address, each page made when a browser asks for it."""

from __future__ import annotations

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from tagwire.reference.html import HtmlRenderer
from tagwire.reference.shelf import Shelf
from tagwire.reference.writing import entry_of, facts_json, files, whole

_HOSTS = frozenset({"127.0.0.1", "localhost"})
_TYPES = {"css": "text/css", "js": "text/javascript", "csv": "text/csv", "json": "application/json"}


class ReferenceServer(ThreadingHTTPServer):
    """Serves a reference on 127.0.0.1 until it is shut down.

    Args:
        port: 0 takes any that is free.

    Raises:
        OSError: the port is taken.
    """

    daemon_threads = True

    def __init__(self, shelf: Shelf, port: int = 0) -> None:
        self.shelf = shelf
        self.files = files()
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def url(self) -> str:
        """The address of the front page."""
        return f"http://127.0.0.1:{self.server_address[1]}/"

    def content(self, path: str) -> tuple[str, bytes] | None:
        """Media type and content of what stands at `path`, which begins with a slash; None where nothing does."""
        name = unquote(path).removeprefix("/")
        if name in self.files:
            return f"{_TYPES[name.rpartition('.')[2]]}; charset=utf-8", self.files[name]
        wants_facts = name.rpartition("/")[2] == "index.json"
        place = name.removesuffix("index.json").removesuffix("/")
        try:
            page = self.shelf.page(place)
        except KeyError:
            return None
        if wants_facts:
            return f"{_TYPES['json']}; charset=utf-8", facts_json(page).encode()
        renderer = HtmlRenderer()
        return "text/html; charset=utf-8", whole(entry_of(page, renderer), renderer).encode()


class _Handler(BaseHTTPRequestHandler):
    server: ReferenceServer

    def do_GET(self) -> None:
        if self.headers.get("Host", "").partition(":")[0] not in _HOSTS:  # a page elsewhere whose name leads here
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return
        path = urlsplit(self.path).path
        found = self.server.content(path)
        if found is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        kind, data = found
        if kind.startswith("text/html") and not path.endswith("/"):
            self.send_response(HTTPStatus.MOVED_PERMANENTLY)  # links in a page are relative to its directory
            self.send_header("Location", f"/{path.strip('/')}/")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: the terminal is the user's."""
