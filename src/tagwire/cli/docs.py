"""`tagwire docs`: the protocol's reference, in a browser, as text, as JSON or as files."""

from __future__ import annotations

import json
import re
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tagwire.cli.completing import pages
from tagwire.cli.options import Json
from tagwire.cli.terminal import safe_json
from tagwire.errors import ConfigError
from tagwire.suggestions import did_you_mean

if TYPE_CHECKING:
    from tagwire.reference import Page, Shelf

_VERSION = re.compile(r"(?P<name>.+)@v?(?P<version>[0-9]{1,5})", re.ASCII)


def docs(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME[@VERSION]]", show_default=False, autocompletion=pages),
    ] = None,
    specs: Annotated[
        Path | None,
        typer.Option(
            "--specs", metavar="PATH", help="A spec file of your own, or a directory of them: pages for those."
        ),
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="DIR", file_okay=False, help="Write all pages there, as files.")
    ] = None,
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="Serve here; 0 is any free one.")
    ] = 0,
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
    as_json: Json = False,
) -> None:
    """Open the reference of Kafka's protocol, or print one page of it.

    NAME is an API (Fetch), a message (FetchResponse), a record type (OffsetCommit), a spec file, or releases, diff,
    errors or kips. With a version, such as Fetch@v12, what that version changed and its bytes, each with its meaning.
    Without a name, all pages are served to a browser on 127.0.0.1 until Ctrl-C.

    \b
    Examples:
      tagwire docs
      tagwire docs Fetch
      tagwire docs Fetch@v12
      tagwire docs errors --json | jq '.errors[] | select(.retriable)'
      tagwire docs --specs proposal/ --to reference
    """
    if name is not None:
        if to is not None:
            raise typer.BadParameter("writes all pages: leave NAME out", param_hint="'--to'")
        _print(_page(name, specs), _VERSION.fullmatch(name) is not None, as_json)
        return
    shelf = _shelf(specs)
    if to is not None:
        from tagwire.reference import write

        written = write(to, shelf)
        first = str(to / "index.html")
        print(json.dumps({"pages": len(written), "first": first}) if as_json else f"{len(written)} pages; open {first}")
        return
    _serve(shelf, port, browser, as_json)


def _print(page: Page, one_version: bool, as_json: bool) -> None:
    if as_json:
        print(safe_json(json.dumps(page.facts, ensure_ascii=False)))
        return
    from tagwire.reference.text import lines

    width = shutil.get_terminal_size((120, 24)).columns
    for line in lines(page, width, with_bytes=one_version):
        print(line)
    if not one_version and "details" in page.facts:
        print(
            f"\nWhat every byte of a version means: tagwire docs {page.title}@v{page.facts['details'][-1]['version']}"
        )


def _page(name: str, specs: Path | None) -> Page:
    from tagwire.reference import subject_pages
    from tagwire.reference.subjects import named, names, of_specs

    match = _VERSION.fullmatch(name)
    wanted, version = (match["name"], int(match["version"])) if match else (name, None)
    own = of_specs(specs) if specs is not None else ()
    if specs is None and wanted.endswith(".json") and Path(wanted).is_file():
        own = of_specs(Path(wanted))
        return subject_pages.page(own[0], version)
    shelf = _shelf(specs)
    found = named(wanted, shelf.subjects)
    if found is not None:
        return subject_pages.page(found, version)
    if version is None and wanted in shelf.general:
        return shelf.page(wanted)
    meant = did_you_mean(wanted, [*names(shelf.subjects), *shelf.general])
    raise ConfigError(f"{wanted!r} is no API, message, record type or page of the reference{meant}")


def _shelf(specs: Path | None) -> Shelf:
    from tagwire.reference import Shelf
    from tagwire.reference.subjects import of_specs

    return Shelf(of_specs(specs) if specs is not None else ())


def _serve(shelf: Shelf, port: int, browser: bool, as_json: bool) -> None:
    from tagwire.reference.serving import ReferenceServer

    try:
        serving = ReferenceServer(shelf, port)
    except OSError as error:
        raise ConfigError(f"cannot listen on 127.0.0.1:{port}: {error.strerror or error}") from error
    with serving as server:
        if as_json:
            print(json.dumps({"url": server.url}), flush=True)
        else:
            print(f"The reference is at {server.url} until Ctrl-C.", flush=True)
        if browser and sys.stdout.isatty():
            import webbrowser

            webbrowser.open(server.url)
        with suppress(KeyboardInterrupt):
            server.serve_forever()
