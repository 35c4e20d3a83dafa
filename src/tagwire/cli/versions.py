"""`tagwire versions`: which versions of each API brokers serve, what they share, and what tagwire speaks to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tagwire.cli.completing import releases
from tagwire.cli.connecting import BOOTSTRAP, connect
from tagwire.cli.options import Bootstrap, Json, addresses
from tagwire.cli.spec_files import apis_in
from tagwire.cli.terminal import print_json, print_rows, printable

if TYPE_CHECKING:
    from tagwire.rpc import Apis, BrokerFeatures, Features, Range, Ranges


def versions(
    context: typer.Context,
    brokers: Annotated[
        str | None,
        typer.Argument(
            metavar="[HOST:PORT[,HOST:PORT]]", callback=addresses, help="As --bootstrap.", show_default=False
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="RELEASE",
            autocompletion=releases,
            help="Compare with a release of Kafka: what would go, what come.",
        ),
    ] = None,
    feature: Annotated[
        Path | None,
        typer.Option("--feature", metavar="FILE", help="TOML tables of APIs and ranges: can these brokers do them?"),
    ] = None,
    specs: Annotated[
        Path | None,
        typer.Option(
            "--specs", metavar="PATH", help="Specs of your own: their APIs as well, and what they say of versions."
        ),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Show the versions that brokers serve, per API.

    One column for each broker, then what all of them serve, then the version tagwire speaks to them. An empty place
    under tagwire is an API it does not use; "none" is one it uses, but of which no version is shared. Versions that are
    deprecated, or not to be used, are marked: tagwire speaks those last, and never. With --feature,
    the exit code is 1 where a feature cannot be used. The features of the cluster itself, such as metadata.version, are
    told with the level that it has settled on.

    \b
    Examples:
      tagwire versions
      tagwire versions kafka-1:9092,kafka-2:9092 --against 4.3
      tagwire versions kafka-1:9092 --feature features.toml
      tagwire versions kafka-1:9092 --specs proposal/
      tagwire versions kafka-1:9092,kafka-2:9092 --json | jq 'select(.api and .all == null)'
    """
    from tagwire.client.config import addresses_of
    from tagwire.rpc import Features, ranges_of

    source = context.get_parameter_source("bootstrap")
    if brokers is not None and source is not None and source.name == "COMMANDLINE":
        raise typer.BadParameter("brokers are named twice", param_hint="'--bootstrap'")
    target = None if against is None else ranges_of(against)
    features = None if feature is None else Features.load(feature)
    apis = {} if specs is None else apis_in(specs)
    told = {_name(*address): _features_of(*address) for address in addresses_of(brokers or bootstrap)}
    sides = {name: ranges for name, (ranges, _) in told.items()}
    rows = _compared(sides, target, apis)
    levels = _levels({name: features for name, (_, features) in told.items()})
    answers = [] if features is None else _answers(features, sides)
    if as_json:
        print_json([*rows, *levels, *answers])
    else:
        _print(rows, levels, sides, against)
        for answer in answers:
            print(printable(answer["answer"]))
    if not all(answer["usable"] for answer in answers):
        raise typer.Exit(1)


def _compared(sides: Mapping[str, Ranges], target: Ranges | None, apis: Apis) -> list[dict[str, Any]]:
    """A row for each API that anybody serves, or that tagwire uses."""
    from tagwire.client.versions import OURS
    from tagwire.rpc import api_name, intersect, negotiate

    shared = intersect(*sides.values())
    ours = {**OURS, **{api.key: api.versions for api in apis.values()}}
    used = negotiate(ours, shared, apis=apis)
    rows = []
    for api in sorted({api for ranges in sides.values() for api in ranges} | set(ours) | set(target or ())):
        served = [ranges[api] for ranges in sides.values() if api in ranges]
        row = {
            "api": apis[api].request.spec.name.removesuffix("Request") if api in apis else api_name(api),
            "key": api,
            "brokers": {name: ranges.get(api) for name, ranges in sides.items()},
            "all": shared.get(api),
            "tagwire": used.get(api),
            "tagwire_range": ours.get(api),
            **_marks(api, served, apis),
        }
        if target is not None:
            row["against"] = target.get(api)
            row["note"] = note(shared.get(api), target.get(api))
        rows.append(row)
    return rows


def _marks(api: int, served: Sequence[Range], apis: Apis) -> dict[str, Any]:
    """What the API's spec says of the versions that any of the brokers serves."""
    from tagwire.rpc import not_to_be_used
    from tagwire.rpc.apis import request_spec
    from tagwire.spec import Versions

    spec = request_spec(api, apis)
    if spec is None or not served:
        return {"deprecated": None, "do_not_use": {}}
    anywhere = min(low for low, _ in served), max(high for _, high in served)
    deprecated = spec.deprecated_versions & Versions(*anywhere)
    return {
        "deprecated": str(deprecated) if deprecated else None,
        "do_not_use": {str(mark.versions): mark.reason for mark in not_to_be_used(api, anywhere, apis)},
    }


def _levels(told: Mapping[str, BrokerFeatures]) -> list[dict[str, Any]]:
    """A row for each feature of KIP-584 that a broker supports, with the level that the cluster has settled on."""
    newest = max(told.values(), key=lambda features: features.epoch)
    names = sorted({name for features in told.values() for name in features.supported} | set(newest.finalized))
    return [
        {
            "cluster_feature": name,
            "level": newest.finalized.get(name),
            "brokers": {side: features.supported.get(name) for side, features in told.items()},
        }
        for name in names
    ]


def note(now: Range | None, then: Range | None) -> str:
    """What the other release takes away, and what it adds; "" where there is no difference."""
    if now is None or then is None:
        return "" if now == then else "goes" if then is None else "comes"
    changes = {
        "drops": [version for version in range(now[0], now[1] + 1) if not then[0] <= version <= then[1]],
        "adds": [version for version in range(then[0], then[1] + 1) if not now[0] <= version <= now[1]],
    }
    return ", ".join(f"{verb} {_spans(found)}" for verb, found in changes.items() if found)


def _spans(found: list[int]) -> str:
    """`[0, 1, 2, 9]` is "0-2 and 9"."""
    spans: list[list[int]] = []
    for version in found:
        if spans and version == spans[-1][1] + 1:
            spans[-1][1] = version
        else:
            spans.append([version, version])
    return " and ".join(range_text_of((low, high)) for low, high in spans)


def _answers(features: Features, sides: Mapping[str, Ranges]) -> list[dict[str, Any]]:
    from tagwire.client.versions import speakable

    found = [features.usable(name, sides, speakable()) for name in features]
    return [{"feature": answer.feature, "usable": bool(answer), "answer": str(answer)} for answer in found]


def _print(
    rows: list[dict[str, Any]], levels: list[dict[str, Any]], sides: Mapping[str, Ranges], against: str | None
) -> None:
    several = {2: ["both"]}.get(len(sides), ["all"]) if len(sides) > 1 else []
    hosts = [name.rpartition(":")[0] for name in sides]
    names = hosts if len(set(hosts)) == len(hosts) else list(sides)
    compared = [] if against is None else [against, "note"]
    marked = ["marked"] if any(row["deprecated"] or row["do_not_use"] for row in rows) else []
    table = []
    for row in rows:
        ranges = [*row["brokers"].values(), *(row["all"] for _ in several)]
        speaks = "" if row["tagwire_range"] is None else str("none" if row["tagwire"] is None else row["tagwire"])
        other = [] if against is None else [range_text_of(row["against"]), row["note"]]
        told = [f"deprecated {row['deprecated']}"] if row["deprecated"] else []
        told += [f"do not use {versions}" for versions in row["do_not_use"]]
        table.append((row["api"], *map(range_text_of, ranges), speaks, *other, *("; ".join(told) for _ in marked)))
    print_rows(("API", *names, *several, "tagwire", *compared, *marked), table)
    for row in rows:
        for versions, reason in row["do_not_use"].items():
            print(printable(f"{row['api']} {versions} must not be used: {reason}"))
    settled = [f"{row['cluster_feature']} {row['level']}" for row in levels if row["level"] is not None]
    if settled:
        print(printable(f"The cluster has settled on {', '.join(settled)}."))
    print(_summary(sides, rows))
    if against is not None:
        print(_outlook(rows, against))


def _summary(sides: Mapping[str, Ranges], rows: list[dict[str, Any]]) -> str:
    from tagwire.client.versions import DISPENSABLE
    from tagwire.rpc import resembling

    count = "1 broker" if len(sides) == 1 else f"{len(sides)} brokers"
    names = [" or ".join(resembling(ranges)) for ranges in sides.values()]
    releases = ", ".join(f"Kafka {name}" if name else "no release of Kafka" for name in names)
    missing = [
        row["api"]
        for row in rows
        if row["tagwire_range"] is not None and row["tagwire"] is None and row["key"] not in DISPENSABLE
    ]
    used = "everything tagwire needs is there"
    if missing:
        used = f"tagwire has no version in common for {', '.join(missing)}"
    return f"{count}: {releases} by {'its' if len(sides) == 1 else 'their'} ranges; {used}."


def _outlook(rows: list[dict[str, Any]], against: str) -> str:
    from tagwire.rpc.ranges import overlap

    lost = [
        row["api"]
        for row in rows
        if row["tagwire"] is not None and (row["against"] is None or not overlap(row["tagwire_range"], row["against"]))
    ]
    narrower = sum("drops" in row["note"] or row["note"] == "goes" for row in rows)
    count = f"{narrower} API{'' if narrower == 1 else 's'} lose{'s' if narrower == 1 else ''} versions with {against}"
    return f"{count}; " + (f"tagwire loses {', '.join(lost)}." if lost else "nothing tagwire uses is lost.")


def _features_of(host: str, port: int) -> tuple[dict[int, Range], BrokerFeatures]:
    with connect(_name(host, port)) as client:
        return client.versions(), client.features()


def _name(host: str, port: int) -> str:
    from tagwire.rpc.addresses import address_text

    return address_text((host, port))


def range_text_of(versions: Range | None) -> str:
    """`0-9`, or `-` where there is none."""
    from tagwire.rpc import range_text

    return range_text(versions) if versions is not None else "-"
