"""`tagwire versions`: which versions of each API brokers serve, what they share, and what tagwire speaks to them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from tagwire.cli.options import Json, addresses
from tagwire.cli.terminal import print_rows

if TYPE_CHECKING:
    from tagwire.rpc import Range


def versions(
    brokers: Annotated[str, typer.Argument(metavar="HOST:PORT[,HOST:PORT]", callback=addresses, show_default=False)],
    as_json: Json = False,
) -> None:
    """Show the versions that brokers serve, per API.

    One column for each broker, then what all of them serve, then the version tagwire speaks to them. An empty place
    under tagwire is an API it does not use; "none" is one it uses, but of which no version is shared.

    \b
    Examples:
      tagwire versions 127.0.0.1:9092
      tagwire versions kafka-1:9092,kafka-2:9092 --json | jq 'select(.all == null)'
    """
    from tagwire.client.config import addresses_of
    from tagwire.client.versions import OURS
    from tagwire.rpc import api_name, intersect, negotiate

    sides = {address: _ranges(*address) for address in addresses_of(brokers)}
    shared = intersect(*sides.values())
    used = negotiate(OURS, shared)
    apis = sorted({api for ranges in sides.values() for api in ranges} | set(OURS))
    if as_json:
        for api in apis:
            row = {
                "api": api_name(api),
                "key": api,
                "brokers": {_name(*address): ranges.get(api) for address, ranges in sides.items()},
                "all": shared.get(api),
                "tagwire": used.get(api),
                "tagwire_range": OURS.get(api),
            }
            print(json.dumps(row))
        return
    several = {2: ["both"]}.get(len(sides), ["all"]) if len(sides) > 1 else []
    rows = []
    for api in apis:
        ranges = [_text(ranges.get(api)) for ranges in sides.values()] + [_text(shared.get(api)) for _ in several]
        rows.append((api_name(api), *ranges, str(used.get(api, "none")) if api in OURS else ""))
    hosts = [host for host, _ in sides]
    names = hosts if len(set(hosts)) == len(hosts) else [_name(*address) for address in sides]
    print_rows(("API", *names, *several, "tagwire"), rows)
    print(_summary(len(sides), [api_name(api) for api in OURS if api not in used]))


def _ranges(host: str, port: int) -> dict[int, Range]:
    from tagwire.client import Client

    with Client(_name(host, port)) as client:
        return client.versions()


def _summary(brokers: int, missing: list[str]) -> str:
    count = "1 broker" if brokers == 1 else f"{brokers} brokers"
    if missing:
        return f"{count}; tagwire has no version in common for {', '.join(missing)}."
    return f"{count}; everything tagwire uses is there."


def _name(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _text(versions: Range | None) -> str:
    from tagwire.rpc.negotiation import range_text

    return range_text(versions) if versions is not None else "-"
