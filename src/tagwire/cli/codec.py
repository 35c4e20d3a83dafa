"""`tagwire decode` and `tagwire encode`: one message, as bytes and as Kafka's JSON form."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tagwire.cli.completing import messages
from tagwire.cli.options import Json
from tagwire.cli.spec import message_named
from tagwire.cli.terminal import print_json, print_rows, safe_json
from tagwire.errors import ConfigError, StorageError
from tagwire.suggestions import did_you_mean

if TYPE_CHECKING:
    from tagwire.codec.annotate import Span

Message = Annotated[str, typer.Argument(metavar="MESSAGE", show_default=False, autocompletion=messages)]
Version = Annotated[int, typer.Option("--version", metavar="N", help="The version of the message.", show_default=False)]


def decode(
    message: Annotated[
        str | None, typer.Argument(metavar="[MESSAGE]", show_default=False, autocompletion=messages)
    ] = None,
    version: Annotated[int | None, typer.Option("--version", metavar="N", help="The version of the message.")] = None,
    frame: Annotated[
        bool, typer.Option("--frame", help="Whole frames: size, header, body. Requests say which they are.")
    ] = False,
    records: Annotated[
        bool, typer.Option("--records", help="Record batches and message sets: what every byte of them means.")
    ] = False,
    hex_text: Annotated[
        str | None, typer.Option("--hex", metavar="HEX", help="The bytes, in hexadecimal; - is standard input.")
    ] = None,
    base64_text: Annotated[
        str | None, typer.Option("--base64", metavar="TEXT", help="The bytes, in base64; - is standard input.")
    ] = None,
    file: Annotated[Path | None, typer.Option("--file", metavar="FILE", help="A file that holds the bytes.")] = None,
    annotate: Annotated[bool, typer.Option("--annotate", help="Say what every byte means instead.")] = False,
    lenient: Annotated[bool, typer.Option("--lenient", help="Read as Kafka's Java reader does.")] = False,
    as_json: Json = False,
) -> None:
    """Print the message that bytes hold, as JSON. Where no option has the bytes, they come from standard input.

    MESSAGE is one of Kafka's messages or a spec file; the bytes are its body. With --frame they are whole frames with
    size and header: of requests, API and version are read from there; of responses, MESSAGE is the API and --version
    what was to be found. With --json a message, or with --annotate a run of bytes, is one line.

    \b
    Examples:
      tagwire decode MetadataRequest --version 12 --hex 00010000
      tagwire decode MetadataRequest --version 12 --hex 00010000 --annotate
      tagwire decode --frame --annotate --hex 0000000d0012000000000007000378797a
      tagwire decode MetadataResponse --version 12 --frame --file response.bin
      tagwire decode --records --file 00000000000000000000.log
    """
    if records:
        from tagwire.codec.annotate_records import annotate_records

        if message is not None or version is not None or frame:
            raise typer.BadParameter("record batches are no message and no frame", param_hint="'--records'")
        data = _input(hex_text, base64_text, file)
        _print_spans(annotate_records(data), data, as_json)
        return
    if not frame and (message is None or version is None):
        missing = "MESSAGE" if message is None else "--version"
        raise typer.BadParameter("only --frame reads from the bytes what they are", param_hint=f"'{missing}'")
    data = _input(hex_text, base64_text, file)
    if frame:
        from tagwire.rpc.whole_frames import frames

        api, responses = (None, False) if message is None else _api_of(message)
        found = frames(data, api, version, responses=responses)
        if annotate:
            _print_spans((span for one in found for span in one.spans(data)), data, as_json)
            return
        for one in found:
            document = one.document(data, lenient=lenient)
            _print_document(document, as_json)
            _warn_of_tags(one.body.decode(data[one.header_end : one.end], one.version, lenient=lenient))
    elif message is not None and version is not None:
        _decode_body(message, version, data, annotate=annotate, lenient=lenient, as_json=as_json)


def _api_of(message: str) -> tuple[int, bool]:
    """The key of an API, and whether its responses are meant: `Metadata` and `MetadataResponse` mean those."""
    from tagwire.rpc.names import api_key
    from tagwire.spec.api_keys import API_NAMES

    for suffix, is_response in (("Request", False), ("Response", True), ("", True)):
        key = api_key(message.removesuffix(suffix)) if message.endswith(suffix) else None
        if key in API_NAMES:
            return key, is_response
    known = [f"{name}{kind}" for name in API_NAMES.values() for kind in ("Request", "Response")]
    raise ConfigError(f"{message!r} is no request or response of Kafka's{did_you_mean(message, known)}")


def _decode_body(message: str, version: int, data: bytes, *, annotate: bool, lenient: bool, as_json: bool) -> None:
    from tagwire.codec import message_class
    from tagwire.codec.annotate import annotate as spans_of

    kind = message_class(message_named(message))
    if annotate:
        _print_spans(spans_of(kind.spec, data, version), data, as_json)
        return
    found = kind.decode(data, version, lenient=lenient)
    _print_document(found.to_json(version), as_json)
    _warn_of_tags(found)


def _warn_of_tags(message: Any) -> None:
    if _has_unknown_tags(message):
        print("tagwire: the JSON form leaves out unknown tags; --annotate shows them", file=sys.stderr)


def _has_unknown_tags(value: Any) -> bool:
    """Whether a message, or a struct at any depth of it, has any."""
    from tagwire.codec.classes import Structure

    if isinstance(value, list):
        return any(map(_has_unknown_tags, value))
    if not isinstance(value, Structure):
        return False
    return bool(value.unknown_tags) or any(_has_unknown_tags(getattr(value, name)) for name in value._fields)


def _print_document(document: Any, as_json: bool) -> None:
    if as_json:
        print_json([document])
    else:
        print(safe_json(json.dumps(document, indent=2, ensure_ascii=False)))


def _print_spans(spans: Iterator[Span], data: bytes, as_json: bool) -> None:
    """What could be read is printed before what could not be is raised."""
    from tagwire.errors import DecodeError

    told: list[Span] = []
    failure = None
    try:
        for span in spans:
            told.append(span)
    except DecodeError as error:
        failure = error
    if as_json:
        print_json(
            {
                "byte": span.start,
                "bytes": data[span.start : span.end].hex(),
                "field": span.path,
                "type": span.type,
                "value": span.value,
                "rule": span.rule,
            }
            for span in told
        )
    else:
        rows = []
        for span in told:
            shown = data[span.start : span.end]
            text = shown.hex(" ") if len(shown) <= 16 else f"{shown[:16].hex(' ')} … {len(shown)} bytes"
            rows.append((str(span.start), text, span.path, span.type, span.value, span.rule))
        print_rows(("byte", "bytes", "field", "type", "value", "rule"), rows, numbers=[0])
    if failure is not None:
        raise failure


def encode(
    message: Message,
    version: Version,
    file: Annotated[
        Path, typer.Option("--file", metavar="FILE", help="The message as JSON; - is standard input.")
    ] = Path("-"),
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write the bytes here.")] = None,
) -> None:
    """Print the bytes of a message that is given as JSON, in hexadecimal. Keys left out get their default.

    \b
    Examples:
      echo '{"topics": null}' | tagwire encode MetadataRequest --version 12
      tagwire encode MyRequest.json --version 0 --file value.json --out value.bin
    """
    from tagwire.codec import message_class

    kind = message_class(message_named(message))
    try:
        text = sys.stdin.read() if str(file) == "-" else _content(file).decode("utf-8")
        doc = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: not JSON: {error}") from None
    data = kind.from_json(doc, version).encode(version)
    if out is not None:
        out.write_bytes(data)
    else:
        print(data.hex())


def _input(hex_text: str | None, base64_text: str | None, file: Path | None) -> bytes:
    if sum(given is not None for given in (hex_text, base64_text, file)) > 1:
        raise typer.BadParameter("--hex, --base64 and --file exclude each other")
    if hex_text is not None:
        text = _text(hex_text, "--hex")
        try:
            return bytes.fromhex(text.strip().removeprefix("0x").replace(":", " "))
        except ValueError:
            raise typer.BadParameter(f"{text[:40]!r} is not hexadecimal", param_hint="'--hex'") from None
    if base64_text is not None:
        text = _text(base64_text, "--base64")
        try:
            return base64.b64decode("".join(text.split()), validate=True)
        except ValueError:
            raise typer.BadParameter(f"{text[:40]!r} is not base64", param_hint="'--base64'") from None
    return _content(file) if file is not None else sys.stdin.buffer.read()


def _text(given: str, option: str) -> str:
    """What was given, or stands on standard input. Raises typer.BadParameter for bytes that are no text."""
    try:
        return sys.stdin.read() if given == "-" else given
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"standard input is no text: {error.reason}", param_hint=f"'{option}'") from None


def _content(file: Path) -> bytes:
    """All that a file or a pipe holds. Raises StorageError for a device: it may have no end."""
    from tagwire.records.files.opening import strange_kind

    if strange_kind(file) == "a device":
        raise StorageError(f"{file}: a device, where a file should be")
    return file.read_bytes()
