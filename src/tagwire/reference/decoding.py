"""What the decoder of the site runs, in a browser as anywhere: text that holds bytes, read and annotated.

Nothing here needs a package that browsers lack.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from tagwire.codec import message_class
from tagwire.codec.annotate import Span, annotate
from tagwire.codec.annotate_records import annotate_records
from tagwire.errors import ConfigError, DecodeError, TagwireError, UnsupportedVersionError
from tagwire.reference.blocks import Bytes
from tagwire.reference.html import HtmlRenderer
from tagwire.rpc.whole_frames import frames
from tagwire.spec import Message, catalog
from tagwire.spec.api_keys import API_NAMES

KINDS: Final = ("guess", "request", "response", "message", "records")
MAX_BYTES: Final = 1 << 20
MAX_SPANS: Final = 5000
MAX_FITTING: Final = 12
_GUESSED_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Reading:
    """What bytes were read as.

    Attributes:
        title: such as "Metadata request, version 12".
        command: what reads them so in a terminal.
        document: their JSON form, as `tagwire decode` prints it; "" for record batches and for what cannot be read.
        html: the annotated bytes.
        error: what cannot be read, and where; "" where all can.
    """

    title: str
    command: str
    document: str
    html: str
    error: str = ""


def bytes_of(text: str) -> bytes:
    """The bytes that text holds in hexadecimal, of any spacing, or else in base64.

    Raises:
        ConfigError: it is neither, it is empty, or it holds more than MAX_BYTES.
    """
    plain = re.sub(r"\\x|0x|[\s:,]", "", text)
    if not plain:
        raise ConfigError("there are no bytes: paste some in hexadecimal or base64")
    if len(plain) > 2 * MAX_BYTES:
        raise ConfigError(f"more than {MAX_BYTES:,} bytes: `tagwire decode` reads them")
    try:
        return bytes.fromhex(plain)
    except ValueError:
        pass
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except ValueError:
        raise ConfigError("neither hexadecimal nor base64") from None


def message_names() -> list[str]:
    """The messages that a body can be, in order."""
    return [message.name for message in _messages()]


def decode(text: str, kind: str = "guess", message: str = "", version: int | None = None) -> list[Reading]:
    """What `text` was read as; guessing, all that fits, the likeliest first.

    Args:
        kind: one of KINDS: a frame of a request or a response, a message's body, record batches.
        message: the API of a response, or the message of a body.
        version: of that.

    Raises:
        ConfigError: `text` holds no bytes, or what they are is not said, or there is no such message or version.
    """
    data = bytes_of(text)
    if kind == "guess":
        found = list(islice(_fitting(data), MAX_FITTING))
        return found or [_of_unknown(data)]
    if kind == "records":
        return [_of_records(data)]
    if kind == "request":
        return [_of_frames(data, None, None)]
    if version is None or not message:
        raise ConfigError("which message it is, and of which version, is not in the bytes: choose both")
    if kind == "response":
        return [_of_frames(data, _api_key(message), version)]
    return [_of_body(data, _named(message), version)]


def decode_json(text: str, kind: str, message: str, version: str) -> str:
    """`decode` for a page: a list of readings, or an object with an error, as JSON."""
    try:
        found = decode(text, kind, message.strip(), int(version) if version.strip().isdecimal() else None)
    except TagwireError as error:
        return json.dumps({"error": str(error)})
    return json.dumps([{name: getattr(one, name) for name in Reading.__slots__} for one in found])


# -- what the bytes may be


def _fitting(data: bytes) -> Iterator[Reading]:
    """All that bytes can be read as from end to end."""
    for known in (_of_frames(data, None, None), _of_records(data)):
        if not known.error and "WRONG" not in known.html:
            yield known
            return
    if len(data) > _GUESSED_BYTES:
        return
    if int.from_bytes(data[:4], "big") == len(data) - 4:
        for key in API_NAMES:
            yield from _fitting_responses(data, key)
    else:
        for message in _messages():
            for version in reversed(list(message.valid_versions)):
                if _fits(message, data, version):
                    yield _of_body(data, message, version)


def _fitting_responses(data: bytes, key: int) -> Iterator[Reading]:
    name = f"{API_NAMES[key]}Response"
    for version in reversed(list(catalog.message(name).valid_versions)) if catalog.contains(name) else ():
        found = _of_frames(data, key, version)
        if not found.error:
            yield found


def _fits(message: Message, data: bytes, version: int) -> bool:
    kind = message_class(message)
    try:
        return bool(kind.decode(data, version).encode(version) == data)
    except TagwireError:
        return False


def _of_unknown(data: bytes) -> Reading:
    spans = [Span(0, len(data), "(unknown)", "bytes", f"{len(data)} bytes", "no message or frame fits them")]
    return Reading("Unknown bytes", "", "", _figure("Unknown bytes", data, spans), "nothing known fits these bytes")


# -- what they are read as


def _of_frames(data: bytes, api: int | None, version: int | None) -> Reading:
    chosen = "" if api is None else f"{API_NAMES[api]}Response --version {version} "
    command = f"tagwire decode {chosen}--frame --annotate --hex {data.hex()}"
    spans: list[Span] = []
    documents: list[Any] = []
    titles: list[str] = []
    error = ""
    try:
        for frame in frames(data, api, version, responses=api is not None):
            titles.append(f"{frame.api} {'request' if api is None else 'response'}, version {frame.version}")
            spans += frame.spans(data)
            documents.append(frame.document(data, lenient=False))
    except TagwireError as failure:
        error = str(failure)
    title = "; ".join(titles) or ("Request" if api is None else "Response")
    shown = "" if error else "\n".join(_json(one) for one in documents)
    return Reading(title, command, shown, _figure(title, data, spans), error)


def _of_body(data: bytes, message: Message, version: int) -> Reading:
    title = f"{message.name}, version {version}"
    command = f"tagwire decode {message.name} --version {version} --annotate --hex {data.hex()}"
    spans, error = _told(annotate(message, data, version))
    document = ""
    try:
        document = _json(message_class(message).decode(data, version).to_json(version))
    except TagwireError as failure:
        error = error or str(failure)
    return Reading(title, command, document, _figure(title, data, spans), error)


def _of_records(data: bytes) -> Reading:
    spans, error = _told(annotate_records(data))
    title = "Record batches" if sum(span.path.endswith(".magic") for span in spans) > 1 else "Record batch"
    command = f"tagwire decode --records --hex {data.hex()}"
    return Reading(title, command, "", _figure(title, data, spans), error)


def _told(spans: Iterator[Span]) -> tuple[list[Span], str]:
    """The spans up to an error, and its text."""
    found: list[Span] = []
    try:
        for span in spans:
            found.append(span)
    except (DecodeError, UnsupportedVersionError) as error:
        return found, str(error)
    return found, ""


def _figure(title: str, data: bytes, spans: list[Span]) -> str:
    """The bytes and what they mean as HTML; what could not be read is a run of its own."""
    shown = spans[:MAX_SPANS]
    end = shown[-1].end if shown else 0
    if end < len(data):
        why = "not shown" if len(spans) > MAX_SPANS else "not read"
        shown = [*shown, Span(end, len(data), f"({why})", "bytes", f"{len(data) - end} bytes", why)]
    return str(HtmlRenderer().block(Bytes(title, "decoded", data, shown)))


def _json(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False)


def _messages() -> Iterator[Message]:
    found = map(catalog.message, catalog.names())
    return (message for message in found if message.valid_versions)


def _named(name: str) -> Message:
    if not catalog.contains(name):
        raise ConfigError(f"{name!r} is no message of Kafka's")
    return catalog.message(name)


def _api_key(name: str) -> int:
    for key, api in API_NAMES.items():
        if name in (api, f"{api}Response"):
            return key
    raise ConfigError(f"{name!r} is no response of Kafka's")
