"""`tagwire tap`: a recording proxy before a broker."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tagwire.cli.options import Json, host_and_port
from tagwire.cli.terminal import print_json

if TYPE_CHECKING:
    from tagwire.capture.tap import Passed, Tap


def tap(
    upstream: Annotated[str, typer.Option("--upstream", metavar="HOST:PORT", help="The broker.", show_default=False)],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", file_okay=False, help="Where the pcap files go.", show_default=False)
    ],
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="Where clients connect.")
    ] = "127.0.0.1:9093",
    file_mib: Annotated[int, typer.Option("--file-mib", min=1, help="Begin another file at this size.")] = 256,
    keep_credentials: Annotated[
        bool, typer.Option("--keep-credentials", help="Record passwords, tokens and other secrets as they are.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Hand connections on to a broker, and record them as pcap files for `tagwire audit` and any other tool.

    Credentials are written over in the files, which only their owner may read: what SASL sends, salted passwords,
    delegation tokens, secret settings. Records are not.

    Every byte goes through unchanged, so clients go where the broker's metadata sends them: let the broker advertise
    the tap's address, and run a tap for each broker. TLS passes, but cannot be read afterwards. A full disk ends the
    recording, never a connection. Ctrl-C ends it.

    With --json one object says where it listens, and at the end another what passed.

    \b
    Examples:
      tagwire tap --listen 0.0.0.0:9093 --upstream 127.0.0.1:9092 --out captures
      tagwire tap --listen 127.0.0.1:0 --upstream kafka-1:9092 --out captures --json
    """
    import asyncio

    from tagwire.capture.tap import Files, Passed, Tap

    here, broker = host_and_port(listen, "--listen"), host_and_port(upstream, "--upstream")
    logging.basicConfig(format="%(levelname)s %(message)s")
    passed = Passed()
    files = Files(out, passed, file_bytes=file_mib << 20)
    proxy = Tap(broker, files, passed, keep_credentials=keep_credentials)
    try:
        asyncio.run(_until_signalled(proxy, *here, _listening_json if as_json else _listening))
    finally:
        files.close()
    if as_json:
        print_json([asdict(passed)])
    else:
        _print(passed)
    if passed.failure is not None:
        raise typer.Exit(2)


def _print(passed: Passed) -> None:
    left_out = f", {passed.left_out} of them not recorded" if passed.left_out else ""
    connections = "1 connection" if passed.connections == 1 else f"{passed.connections} connections"
    print(f"{connections}, {passed.bytes} bytes{left_out}.")
    if passed.failure is not None:
        print(f"Recording had ended: {passed.failure}.")


async def _until_signalled(proxy: Tap, host: str, port: int, on_listening: Callable[[str, int], None]) -> None:
    import asyncio

    task = asyncio.create_task(proxy.serve(host, port, on_listening))
    loop = asyncio.get_running_loop()
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup's: a closed terminal ends nothing then
        numbers.append(signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, task.cancel)
    with suppress(asyncio.CancelledError):
        await task


def _listening(host: str, port: int) -> None:
    from tagwire.rpc.addresses import address_text

    print(f"Listening on {address_text((host, port))}.", flush=True)


def _listening_json(host: str, port: int) -> None:
    from tagwire.rpc.addresses import address_text

    print_json([{"listening": address_text((host, port))}])
    sys.stdout.flush()
