"""`tagwire decode` and `tagwire encode`: one message, as bytes and as Kafka's JSON form."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from tagwire.cli.spec import message_named
from tagwire.cli.terminal import print_rows, safe_json
from tagwire.errors import ConfigError

Message = Annotated[str, typer.Argument(metavar="MESSAGE", show_default=False)]
Version = Annotated[int, typer.Option("--version", metavar="N", help="The version of the message.", show_default=False)]


def decode(
    message: Message,
    version: Version,
    hex_text: Annotated[str | None, typer.Option("--hex", metavar="HEX", help="The bytes, in hexadecimal.")] = None,
    file: Annotated[Path | None, typer.Option("--file", metavar="FILE", help="A file that holds the bytes.")] = None,
    annotate: Annotated[bool, typer.Option("--annotate", help="Say what every byte means instead.")] = False,
    lenient: Annotated[bool, typer.Option("--lenient", help="Read as Kafka's Java reader does.")] = False,
) -> None:
    """Print the message that bytes hold, as JSON. Without --hex or --file, the bytes come from standard input.

    MESSAGE is one of Kafka's messages or a spec file; the bytes are its body, without frame or header.

    \b
    Examples:
      tagwire decode MetadataRequest --version 12 --hex 00010000
      tagwire decode MetadataRequest --version 12 --hex 00010000 --annotate
    """
    from tagwire.codec import message_class
    from tagwire.codec.annotate import annotate as spans_of
    from tagwire.errors import DecodeError

    kind = message_class(message_named(message))
    data = _input(hex_text, file)
    if annotate:
        rows, failure = [], None
        try:
            for span in spans_of(kind.spec, data, version):
                shown = data[span.start : span.end]
                text = shown.hex(" ") if len(shown) <= 16 else f"{shown[:16].hex(' ')} … {len(shown)} bytes"
                rows.append((str(span.start), text, span.path, span.type, span.value, span.rule))
        except DecodeError as error:
            failure = error
        print_rows(("byte", "bytes", "field", "type", "value", "rule"), rows, numbers=[0])
        if failure is not None:
            raise failure
        return
    found = kind.decode(data, version, lenient=lenient)
    doc = found.to_json(version)
    print(safe_json(json.dumps(doc, indent=2, ensure_ascii=False)))
    if kind.from_json(doc, version).encode(version) != data:
        print("tagwire: the JSON form leaves out unknown tags; --annotate shows them", file=sys.stderr)


def encode(
    message: Message,
    version: Version,
    file: Annotated[
        Path,
        typer.Option("--json", metavar="FILE", help="The message as JSON; - is standard input.", show_default=False),
    ],
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write the bytes here.")] = None,
) -> None:
    """Print the bytes of a message that is given as JSON, in hexadecimal. Keys left out get their default.

    \b
    Examples:
      echo '{"topics": null}' | tagwire encode MetadataRequest --version 12 --json -
      tagwire encode MyRequest.json --version 0 --json value.json --out value.bin
    """
    from tagwire.codec import message_class

    kind = message_class(message_named(message))
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
        doc = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{file}: not JSON: {error}") from None
    data = kind.from_json(doc, version).encode(version)
    if out is not None:
        out.write_bytes(data)
    else:
        print(data.hex())


def _input(hex_text: str | None, file: Path | None) -> bytes:
    if hex_text is not None and file is not None:
        raise typer.BadParameter("--hex and --file exclude each other")
    if hex_text is not None:
        try:
            return bytes.fromhex(hex_text)
        except ValueError:
            raise typer.BadParameter(f"{hex_text!r} is not hexadecimal", param_hint="'--hex'") from None
    return file.read_bytes() if file is not None else sys.stdin.buffer.read()
