"""`tagwire broker`: a broker, or a cluster, in the foreground, until it is told to stop; and how one that runs is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tagwire.cli.options import Json
from tagwire.cli.terminal import print_rows, printable, safe_json

if TYPE_CHECKING:
    from tagwire.broker import Listener

Fsync = Literal["batch", "interval", "never"]
Unsupported = Literal["close", "empty"]
LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]

Tell = Callable[[dict[int, list[str]], str], None]
"""What says where each node listens, and where its data is."""

DEFAULT_LISTEN = "127.0.0.1:9092"


def broker(
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="DIR",
            file_okay=False,
            envvar="TAGWIRE_BROKER_DATA",
            help="Where topics are kept.",
            show_default=False,
        ),
    ] = None,
    listen: Annotated[
        list[str] | None,
        typer.Option(
            "--listen",
            metavar="HOST:PORT",
            help=f"Where clients connect, {DEFAULT_LISTEN} if not said; port 0 takes a free one. May be given again.",
        ),
    ] = None,
    advertise: Annotated[
        list[str] | None,
        typer.Option(
            "--advertise",
            metavar="HOST:PORT",
            help="Where clients are told to connect, one for each --listen; by default what they have reached.",
        ),
    ] = None,
    nodes: Annotated[
        int,
        typer.Option(
            "--nodes",
            min=1,
            max=100,
            metavar="N",
            help="Several nodes in this process, for trying clients on a cluster: they share what is on the disk, and "
            "replicate nothing. A port is the first one's; the others' follow.",
        ),
    ] = 1,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            dir_okay=False,
            envvar="TAGWIRE_BROKER_CONFIG",
            help="Settings in TOML, TLS and users among them; options given here come first.",
        ),
    ] = None,
    fsync: Annotated[
        Fsync | None,
        typer.Option(
            "--fsync",
            help="When an acknowledged record is on the disk: batch, before it is acknowledged (the default); "
            "interval, within a second; never, when the operating system likes.",
        ),
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", min=1, metavar="N", help="Partitions of a topic created without saying."),
    ] = None,
    auto_create: Annotated[
        bool | None,
        typer.Option("--auto-create/--no-auto-create", help="Whether producing to a missing topic creates it."),
    ] = None,
    as_release: Annotated[
        str | None,
        typer.Option("--as-release", metavar="RELEASE", help="Serve nothing that this release of Kafka did not."),
    ] = None,
    unsupported: Annotated[
        Unsupported | None,
        typer.Option("--unsupported", help="Close the connection on a request that is not served, or respond empty."),
    ] = None,
    register: Annotated[
        list[Path] | None,
        typer.Option(
            "--register",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Names of header keys (TOML), for topics of the int-headers dialect. May be given again.",
        ),
    ] = None,
    log_format: Annotated[
        LogFormat, typer.Option("--log-format", help="What is logged to stderr: text, or JSON lines.")
    ] = "text",
    log_level: Annotated[LogLevel, typer.Option("--log-level", help="How much is logged.")] = "warning",
    stats: Annotated[
        bool, typer.Option("--stats", help="Ask the broker that runs on --data how it is, and exit.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run a broker in the foreground. Says where it listens when it is ready, with --json as one object; SIGINT or
    SIGTERM stop it.

    \b
    Examples:
      tagwire broker --data ./data
      tagwire broker --data ./data --listen 127.0.0.1:0 --fsync never
      tagwire broker --config broker.toml --log-format json
      tagwire broker --data ./data --stats
      tagwire broker --data ./data --nodes 3 --json
    """
    given: dict[str, Any] = {}
    if config is not None:
        from tagwire.broker.config_file import read_config

        given = read_config(config)
    options = {
        "data_dir": data,
        "fsync": fsync,
        "num_partitions": partitions,
        "auto_create_topics": auto_create,
        "as_release": as_release,
        "unsupported": unsupported,
    }
    given.update({name: value for name, value in options.items() if value is not None})
    if register:
        from tagwire.records import HeaderRegister

        given["register"] = HeaderRegister.load(*register)
    if "data_dir" not in given:
        raise typer.BadParameter("it has to be said here or in a --config", param_hint="'--data'")
    if stats:
        _print_stats(given["data_dir"], as_json)
        return
    if listen or advertise or "listeners" not in given:
        given["listeners"] = _listeners(listen or [DEFAULT_LISTEN], advertise or [])
    _run(given, nodes, _tell_json if as_json else _tell, log_format, log_level)


def _run(given: dict[str, Any], nodes: int, tell: Tell, log_format: LogFormat, log_level: LogLevel) -> None:
    from tagwire.broker import Cluster, Settings
    from tagwire.broker.foreground import serve, serve_cluster
    from tagwire.broker.storage.data_directory import NODE_ID
    from tagwire.broker.telemetry.log_format import logging_to_stderr

    given = {"requests_kept": 0, **given}
    where = str(given["data_dir"])
    if nodes == 1:
        settings = Settings(**given)
        with logging_to_stderr(log_format, log_level):
            serve(settings, lambda addresses: tell({NODE_ID: addresses}, where))
    else:
        cluster = Cluster(nodes, **given)
        with logging_to_stderr(log_format, log_level):
            serve_cluster(cluster, lambda addresses: tell(addresses, where))


def _tell(addresses: dict[int, list[str]], where: str) -> None:
    for node, listening in addresses.items() if len(addresses) > 1 else ():
        print(f"node {node}: {', '.join(listening)}")
    everywhere = ", ".join(address for listening in addresses.values() for address in listening)
    print(f"listening on {everywhere}, data in {printable(where)}", flush=True)


def _tell_json(addresses: dict[int, list[str]], where: str) -> None:
    nodes = [{"node": node, "addresses": listening} for node, listening in addresses.items()]
    print(safe_json(json.dumps({"nodes": nodes, "data": where})), flush=True)


def _listeners(listen: list[str], advertise: list[str]) -> tuple[Listener, ...]:
    from tagwire.broker import Listener
    from tagwire.errors import ConfigError
    from tagwire.rpc.addresses import address_of

    if advertise and len(advertise) != len(listen):
        raise typer.BadParameter(
            f"there are {len(advertise)} for {len(listen)} addresses to listen on", param_hint="'--advertise'"
        )
    try:
        return tuple(
            Listener(*address_of(one, "--listen"), address_of(told, "--advertise") if told else None)
            for one, told in zip(listen, advertise or [""] * len(listen))
        )
    except ConfigError as error:
        raise typer.BadParameter(str(error)) from None


def _print_stats(data: Path, as_json: bool) -> None:
    from tagwire.broker.telemetry.statistics import tables
    from tagwire.broker.telemetry.status import read_status

    document = read_status(data)
    if as_json:
        print(safe_json(json.dumps(document)))
        return
    told, connections = document["broker"], document["connections"]
    print(
        f"broker {told['node_id']} of cluster {told['cluster_id']}, up {told['uptime_s']:,.0f} s, "
        f"fsync {told['fsync']}; {connections['open']} connections, {document['groups']} groups"
    )
    for titles, rows in tables(document):
        if rows:
            print()
            numbers = [column for column in range(1, len(titles)) if all(row[column].isdigit() for row in rows)]
            print_rows(titles, rows, numbers=numbers)
