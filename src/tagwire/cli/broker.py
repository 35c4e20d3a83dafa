"""`tagwire broker`: a broker in the foreground, until it is told to stop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from tagwire.cli.terminal import printable

Fsync = Literal["batch", "interval", "never"]


def broker(
    data: Annotated[
        Path, typer.Option("--data", metavar="DIR", file_okay=False, help="Where topics are kept.", show_default=False)
    ],
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="Where clients connect; port 0 takes a free one.")
    ] = "127.0.0.1:9092",
    fsync: Annotated[
        Fsync,
        typer.Option(
            "--fsync",
            help="When an acknowledged record is on the disk: batch, before it is acknowledged; interval, within a "
            "second; never, when the operating system likes.",
        ),
    ] = "batch",
    partitions: Annotated[
        int, typer.Option("--partitions", min=1, metavar="N", help="Partitions of a topic created without saying.")
    ] = 1,
    auto_create: Annotated[
        bool, typer.Option("--auto-create/--no-auto-create", help="Whether producing to a missing topic creates it.")
    ] = True,
) -> None:
    """Run a broker in the foreground. Says where it listens when it is ready; SIGINT or SIGTERM stop it.

    \b
    Examples:
      tagwire broker --data ./data
      tagwire broker --data ./data --listen 127.0.0.1:0 --fsync never
    """
    from tagwire.broker import Listener, Settings, serve

    host, port = _address(listen)
    settings = Settings(
        data_dir=data,
        listeners=(Listener(host, port),),
        fsync=fsync,
        num_partitions=partitions,
        auto_create_topics=auto_create,
        requests_kept=0,
    )
    serve(settings, lambda found: print(f"listening on {found[0]}, data in {printable(str(data))}", flush=True))


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not (colon and host and port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 65536):
        raise typer.BadParameter(f"{text!r} is not HOST:PORT", param_hint="'--listen'")
    return host, int(port)
