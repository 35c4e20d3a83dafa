"""`tagwire capture`: what packets between clients and brokers say, as a person would read it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tagwire.cli.options import Json
from tagwire.cli.terminal import cut, print_json, printable, utc

if TYPE_CHECKING:
    from tagwire.capture import Exchange, Losses

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Read captured traffic.")

_TEXT = 400


@app.callback()
def capture() -> None:
    """Read captured traffic."""


@app.command()
def show(
    paths: Annotated[list[str], typer.Argument(metavar="FILE", show_default=False)],
    api: Annotated[
        list[str] | None, typer.Option("--api", metavar="API", help="Only this API, by name or key; may be repeated.")
    ] = None,
    client: Annotated[
        str | None, typer.Option("--client", metavar="TEXT", help="Only clients whose id, software or address has it.")
    ] = None,
    errors: Annotated[bool, typer.Option("--errors", help="Only answers with an error code, or no answer.")] = False,
    bodies: Annotated[bool, typer.Option("--bodies", help="Requests and answers whole, as JSON.")] = False,
    as_json: Json = False,
) -> None:
    """Print the requests in pcap and pcapng files with their answers, in the order the answers came.

    Passwords, tokens and secret settings are left out of the bodies.

    \b
    Examples:
      tagwire capture show capture.pcap
      tagwire capture show capture.pcap --api Produce --errors --bodies
      tagwire capture show captures/*.pcap.gz --client billing --json | jq .request
    """
    from tagwire.capture import Losses, exchanged, paths_of
    from tagwire.capture.bodies import error_codes

    wanted = _keys(api)
    losses = Losses()
    for path in paths_of(paths, losses):
        for exchange in exchanged(Path(path), losses, bodies=True):
            if wanted and exchange.header.api_key not in wanted:
                continue
            if client is not None and not any(client in text for text in _names(exchange)):
                continue
            codes = error_codes(exchange, losses)
            if errors and exchange.response_bytes is not None and not codes:
                continue
            if as_json:
                print_json([_document(exchange, codes, losses, bodies=bodies)])
            else:
                for line in _lines(exchange, codes, losses, bodies=bodies):
                    print(printable(line))
    for reason, count in losses.counts.most_common():
        typer.echo(printable(f"Left out: {count} x {reason}, first in {losses.first[reason]}."), err=True)


def _keys(names: list[str] | None) -> frozenset[int]:
    from tagwire.rpc.names import api_key

    keys = {name: api_key(name) for name in names or ()}
    for name, key in keys.items():
        if key is None:
            raise typer.BadParameter(f"no API is called {name!r}", param_hint="'--api'")
    return frozenset(key for key in keys.values() if key is not None)


def _names(exchange: Exchange) -> tuple[str, ...]:
    return (exchange.header.client_id or "", exchange.software_name, exchange.principal, str(exchange.client))


def _lines(exchange: Exchange, codes: tuple[int, ...] | None, losses: Losses, *, bodies: bool) -> Iterator[str]:
    from tagwire.rpc import api_name

    header = exchange.header
    who = f"{exchange.client} > {exchange.broker}  {header.client_id or '-'}"
    what = f"{api_name(header.api_key)} v{header.api_version} #{header.correlation_id}"
    if exchange.response_bytes is None:
        answer = f"{exchange.request_bytes} bytes, no answer seen"
    else:
        took = (exchange.answered - exchange.time) / 1000
        answer = f"{exchange.request_bytes} > {exchange.response_bytes} bytes in {took:.3f} ms"
    said = f"  {_errors(codes)}" if codes else ""
    yield f"{utc(exchange.time // 1000)}  {who}  {what}  {answer}{said}"
    if bodies:
        for name, body in _bodies(exchange, losses).items():
            yield f"  {name}: {cut(json.dumps(body, ensure_ascii=False), _TEXT)}"


def _errors(codes: tuple[int, ...]) -> str:
    from tagwire.errors import Error

    known = {error.value: error.name for error in Error}
    return ", ".join(f"{known.get(code, 'error')} ({code})" for code in codes)


def _bodies(exchange: Exchange, losses: Losses) -> dict[str, Any]:
    from tagwire.capture.bodies import request_of, response_of
    from tagwire.codec.classes import blank_secrets

    version = exchange.header.api_version
    found = {"request": request_of(exchange, losses), "response": response_of(exchange, losses)}
    blank_secrets(list(found.values()))
    return {name: message.to_json(version) for name, message in found.items() if message is not None}


def _document(exchange: Exchange, codes: tuple[int, ...] | None, losses: Losses, *, bodies: bool) -> dict[str, Any]:
    from tagwire.rpc import api_name

    header = exchange.header
    answered = exchange.response_bytes is not None
    return {
        "time": exchange.time,
        "took_us": exchange.answered - exchange.time if answered else None,
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
        "error_codes": codes,
        "file": exchange.place.file,
        "position": exchange.place.position,
        **(_bodies(exchange, losses) if bodies else {}),
    }
