"""A request with its response as a line of a request log has it: what `Exchange` is to packets.

Of JSON bodies (Kafka 2.8 and on) secrets are taken out, as `tagwire.codec.secrets` knows them; of the older, textual
ones those that may hold any are left out as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any, Final

from tagwire import messages
from tagwire.capture.observation import Losses, Observation
from tagwire.capture.request_log import connection_in, told
from tagwire.codec.secrets import SECRET_FIELDS, SETTING_VALUES, SETTINGS, holds_secrets, is_secret
from tagwire.extras import Needs
from tagwire.spec import Field, Struct

with Needs("audit"):
    import msgspec

SECRET: Final = "<secret>"
"""What stands in the place of a secret."""

_CORRELATION: Final = re.compile(rb"(?:correlation_id=|correlationId=|CorrelationId: ?)(-?\d{1,10})\b")
_AFTER_CLIENT_ID: Final = b"RequestHeader("  # where the form has the client's id, which may look like a number's name
_TOTAL_TIME: Final = re.compile(rb"[;,]totalTime:(\d{1,12}(?:\.\d{1,9})?)[,;]")
_MAX_MS: Final = 1e12
_REQUEST: Final = b" -- "
_RESPONSE: Final = b",response:"


class _Header(msgspec.Struct, rename="camel"):
    correlation_id: int | None = None


class _Line(msgspec.Struct, rename="camel"):
    request_header: _Header
    request: msgspec.Raw = msgspec.Raw(b"null")
    response: msgspec.Raw = msgspec.Raw(b"null")
    total_time_ms: float | None = None


_decode_line: Final = msgspec.json.Decoder(_Line).decode
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


@dataclass(frozen=True, slots=True)
class Logged:
    """A request that a log tells of.

    Attributes:
        seen: what it tells of the client. Its time is that of the line, which is written once the request is done.
        correlation_id: None where the log does not tell.
        took: microseconds from the request to the end of its response; None where the log does not tell.
        request, response: the bodies without secrets, JSON objects or the text of older releases; None where the log
            has none.
    """

    seen: Observation
    correlation_id: int | None
    took: int | None
    request: Any = None
    response: Any = None


def logged(lines: Iterable[bytes], file: str, losses: Losses, *, bodies: bool = False) -> Iterator[Logged]:
    """The requests in the lines of a log, in their order. Arguments as of `request_log.observations`.

    Args:
        bodies: whether requests and responses are kept.
    """
    for seen, body in told(lines, file, losses):
        is_json = body.startswith(b"{") and not body.startswith(b"{api_key=")
        yield _of_json(seen, body, bodies=bodies) if is_json else _of_text(seen, body, bodies=bodies)


def _of_json(seen: Observation, body: bytes, *, bodies: bool) -> Logged:
    try:
        line = _decode_line(body[: body.rfind(b"}") + 1])
    except _UNREADABLE:  # what makes a request known is there, and has been read
        return Logged(seen, None, None)
    took = None
    if line.total_time_ms is not None and 0 <= line.total_time_ms < _MAX_MS:
        took = round(line.total_time_ms * 1000)
    if not bodies:
        return Logged(seen, line.request_header.correlation_id, took)
    return Logged(
        seen,
        line.request_header.correlation_id,
        took,
        _shown(bytes(line.request), _root(seen.api_key, in_request=True)),
        _shown(bytes(line.response), _root(seen.api_key, in_request=False)),
    )


def _of_text(seen: Observation, body: bytes, *, bodies: bool) -> Logged:
    ends, _ = connection_in(body)
    begins = body.find(_REQUEST, 0, ends)
    head = body[: begins if begins >= 0 else ends]
    numbers = _CORRELATION.findall(head)
    number = int(numbers[-1 if body.startswith(_AFTER_CLIENT_ID) else 0]) if numbers else None
    time = _TOTAL_TIME.search(body, ends)
    took = None if time is None else round(float(time[1]) * 1000)
    if not bodies or begins < 0:
        return Logged(seen, number, took)
    response_at = body.find(_RESPONSE, begins, ends)
    request, response = body[begins + len(_REQUEST) : response_at if response_at >= 0 else ends], None
    if response_at >= 0:
        response = body[response_at + len(_RESPONSE) : ends]
    return Logged(
        seen,
        number,
        took,
        _text(request, _root(seen.api_key, in_request=True)),
        None if response is None else _text(response, _root(seen.api_key, in_request=False)),
    )


def _text(body: bytes, root: Struct | None) -> str:
    return SECRET if root is None or holds_secrets(root) else body.decode("utf-8", "replace")


def _shown(body: bytes, root: Struct | None) -> Any:
    """The JSON of a body; None where there is none, and what is secret where nobody knows what it holds."""
    try:
        found = _decode(body)
    except _UNREADABLE:
        return None
    if root is None:
        return SECRET
    return _clean(found, root) if holds_secrets(root) else found


def _clean(found: dict[str, Any], struct: Struct) -> dict[str, Any]:
    """A struct's JSON without its secrets, and without what the struct does not have: nobody knows what that is."""
    fields = {field.name[0].lower() + field.name[1:]: field for field in struct.fields}
    attributes = {field.attribute: found.get(name) for name, field in fields.items()}
    hides = struct.name in SETTINGS and is_secret(SimpleNamespace(**attributes))
    return {
        name: _clean_field(found[name], field, struct, hides=hides) for name, field in fields.items() if name in found
    }


def _clean_field(value: Any, field: Field, struct: Struct, *, hides: bool) -> Any:
    if (struct.name, field.name) in SECRET_FIELDS or (hides and field.attribute in SETTING_VALUES):
        return None if value is None else SECRET
    if field.struct is None:
        return value
    if isinstance(value, list):
        return [_clean(one, field.struct) if isinstance(one, dict) else SECRET for one in value]
    return _clean(value, field.struct) if isinstance(value, dict) else None


@cache
def _root(api: int, *, in_request: bool) -> Struct | None:
    """The struct of a request or its response; None where there is no such API."""
    try:
        return (messages.request if in_request else messages.response)(api).spec.root
    except KeyError:
        return None
