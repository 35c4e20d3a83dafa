"""`tagwire capture`: what clients and brokers were seen to say, as a person would read it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tagwire.cli.completing import apis
from tagwire.cli.options import Json
from tagwire.cli.terminal import cut, print_json, printable, utc
from tagwire.errors import ConfigError
from tagwire.suggestions import did_you_mean

if TYPE_CHECKING:
    from tagwire.capture import Exchange, Logged, Losses
    from tagwire.codec.classes import MessageObject

app = typer.Typer(rich_markup_mode=None, help="Read captured traffic.")

_TEXT = 400
_CLIENTS = 1000
_NAMED = 5


@app.callback()
def capture() -> None:
    """Read captured traffic."""


@app.command()
def show(
    paths: Annotated[list[str], typer.Argument(metavar="FILE", show_default=False)],
    api: Annotated[
        list[str] | None,
        typer.Option(
            "--api", metavar="API", autocompletion=apis, help="Only this API, by name or key; may be repeated."
        ),
    ] = None,
    client: Annotated[
        str | None, typer.Option("--client", metavar="TEXT", help="Only clients whose id, software or address has it.")
    ] = None,
    errors: Annotated[bool, typer.Option("--errors", help="Only error responses, and requests without any.")] = False,
    bodies: Annotated[bool, typer.Option("--bodies", help="Requests and responses whole, as JSON.")] = False,
    as_json: Json = False,
) -> None:
    """Print the requests in pcap and pcapng files and request logs with their responses, in the order of the responses.

    FILE may be packed by gzip or zstd, a pipe, - for standard input, a directory or a pattern. A request log tells no
    sizes. Passwords, tokens and secret settings are left out of the bodies.

    \b
    Examples:
      tagwire capture show capture.pcap
      tagwire capture show capture.pcap --api Produce --errors --bodies
      tagwire capture show captures/*.pcap.gz --client billing --bodies --json | jq .request
      kubectl logs kafka-0 | tagwire capture show - --client billing
    """
    from tagwire.capture import Losses, exchanges_in, nothing_seen, paths_of

    wanted = _Wanted(_keys(api), client)
    losses = Losses()
    shown = 0
    files = paths_of(paths, losses)
    for path in files:
        for one in exchanges_in(path, losses, bodies=bodies):
            if not wanted.takes(one):
                continue
            document = _document(one, losses)
            if errors and _has_response(document) and not document["error_codes"]:
                continue
            shown += 1
            found = _bodies(one, losses) if bodies else {}
            if as_json:
                print_json([document | found])
            else:
                for line in _lines(document, found):
                    print(printable(line))
    for reason, count in losses.counts.most_common():
        typer.echo(printable(f"Left out: {count} x {reason}, first in {losses.first[reason]}."), err=True)
    if not wanted.seen:
        raise nothing_seen(files, losses)
    wanted.check()
    if not shown:
        typer.echo("No such request failed.", err=True)


def _keys(names: list[str] | None) -> dict[str, int]:
    from tagwire.rpc.names import api_key
    from tagwire.spec.api_keys import API_NAMES

    keys = {name: api_key(name) for name in names or ()}
    for name, key in keys.items():
        if key is None:
            meant = did_you_mean(name, API_NAMES.values())
            raise typer.BadParameter(f"no API is called {name!r}{meant}", param_hint="'--api'")
    return {name: key for name, key in keys.items() if key is not None}


class _Wanted:
    """The requests that the options name, and whether there is one for each name.

    Attributes:
        seen: how many requests were looked at.
    """

    def __init__(self, apis: dict[str, int], client: str | None) -> None:
        self._apis = apis
        self._client = client
        self._client_seen = client is None
        self._apis_seen: set[int] = set()
        self._clients: set[str] = set()
        self._is_any_taken = False
        self.seen = 0

    def takes(self, one: Exchange | Logged) -> bool:
        api, names = _names(one)
        is_clients = self._client is None or any(self._client in text for text in names)
        is_apis = not self._apis or api in self._apis.values()
        self.seen += 1
        self._client_seen |= is_clients
        self._apis_seen.add(api)
        if len(self._clients) < _CLIENTS:
            self._clients.add(names[0] or "no id")
        self._is_any_taken |= is_clients and is_apis
        return is_clients and is_apis

    def check(self) -> None:
        """Raises ConfigError where a name was in no request, or no request has all of them."""
        from tagwire.rpc import api_name

        for name, key in self._apis.items():
            if key not in self._apis_seen:
                seen = _some([api_name(api) for api in sorted(self._apis_seen)])
                raise ConfigError(f"--api {name}: none of {self.seen} requests is of it; there are {seen}")
        if not self._client_seen:
            seen = _some(sorted(self._clients))
            raise ConfigError(f"--client {self._client!r}: none of {self.seen} requests has it; client ids are {seen}")
        if not self._is_any_taken:
            apis = " or ".join(self._apis)
            raise ConfigError(f"--client {self._client!r}: no request of it is {apis}")


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _names(one: Exchange | Logged) -> tuple[int, tuple[str, ...]]:
    """The API's key, and by what the client may be named."""
    from tagwire.capture import Exchange

    if isinstance(one, Exchange):
        return one.header.api_key, (one.header.client_id or "", one.software_name, one.principal, str(one.client))
    seen = one.seen
    return seen.api_key, (seen.client_id or "", seen.software_name, seen.principal, str(seen.client))


def _document(one: Exchange | Logged, losses: Losses) -> dict[str, Any]:
    """What is told of a request: of packets and of logs the same."""
    from tagwire.capture import Exchange

    return _of_packets(one, losses) if isinstance(one, Exchange) else _of_log(one)


def _of_packets(exchange: Exchange, losses: Losses) -> dict[str, Any]:
    from tagwire.capture.bodies import error_codes
    from tagwire.rpc import api_name

    header = exchange.header
    is_timed = exchange.time >= 0 and exchange.responded >= 0
    return {
        "time": exchange.time,
        "took_us": exchange.responded - exchange.time if is_timed else None,
        "client": str(exchange.client),
        "broker": str(exchange.broker),
        "client_id": header.client_id,
        "software_name": exchange.software_name,
        "software_version": exchange.software_version,
        "principal": exchange.principal,
        "api": api_name(header.api_key),
        "api_key": header.api_key,
        "version": header.api_version,
        "correlation_id": header.correlation_id,
        "request_bytes": exchange.request_bytes,
        "response_bytes": exchange.response_bytes,
        "error_codes": error_codes(exchange, losses),
        "file": exchange.place.file,
        "position": exchange.place.position,
    }


def _of_log(logged: Logged) -> dict[str, Any]:
    from tagwire.rpc import api_name

    seen = logged.seen
    return {
        "time": seen.time if seen.time < 0 else seen.time - (logged.took or 0),
        "took_us": logged.took,
        "client": str(seen.client),
        "broker": str(seen.broker),
        "client_id": seen.client_id,
        "software_name": seen.software_name,
        "software_version": seen.software_version,
        "principal": seen.principal,
        "api": api_name(seen.api_key),
        "api_key": seen.api_key,
        "version": seen.api_version,
        "correlation_id": logged.correlation_id,
        "request_bytes": None,
        "response_bytes": None,
        "error_codes": seen.error_codes,
        "file": seen.place.file,
        "position": seen.place.position,
    }


def _lines(document: dict[str, Any], bodies: dict[str, Any]) -> Iterator[str]:
    who = f"{document['client']} > {document['broker']}  {document['client_id'] or '-'}"
    number = "" if document["correlation_id"] is None else f" #{document['correlation_id']}"
    what = f"{document['api']} v{document['version']}{number}"
    said = f"  {_errors(document['error_codes'])}" if document["error_codes"] else ""
    yield f"{utc(document['time'] // 1000)}  {who}  {what}  {_outcome(document)}{said}"
    for name, body in bodies.items():
        text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
        yield f"  {name}: {cut(text, _TEXT)}"


def _outcome(document: dict[str, Any]) -> str:
    """How many bytes there were, and how long it took, as far as it is known."""
    sent, received, took = (document[name] for name in ("request_bytes", "response_bytes", "took_us"))
    if not _has_response(document):
        return f"{sent} bytes, no response seen"
    sizes = "" if sent is None else f"{sent} > {received} bytes "
    return sizes + ("answered" if took is None else f"in {took / 1000:.3f} ms")


def _has_response(document: dict[str, Any]) -> bool:
    """A request is logged with its response, without sizes."""
    return document["request_bytes"] is None or document["response_bytes"] is not None


def _errors(codes: tuple[int, ...]) -> str:
    from tagwire.errors import Error

    known = {error.value: error.name for error in Error}
    return ", ".join(f"{known.get(code, 'error')} ({code})" for code in codes)


def _bodies(one: Exchange | Logged, losses: Losses) -> dict[str, Any]:
    from tagwire.capture import Exchange
    from tagwire.capture.bodies import request_of, response_of
    from tagwire.codec.classes import blank_secrets

    if not isinstance(one, Exchange):
        told = {"request": one.request, "response": one.response}
        return {name: body for name, body in told.items() if body is not None}
    version = one.header.api_version
    found = {"request": request_of(one, losses), "response": response_of(one, losses)}
    blank_secrets(list(found.values()))
    return {name: _as_json(message, version) for name, message in found.items() if message is not None}


def _as_json(message: MessageObject, version: int) -> dict[str, Any]:
    """A refusal of ApiVersions in a version that is not known here was read as one of version 0, which it is."""
    return message.to_json(version if version in message.valid_versions else 0)
