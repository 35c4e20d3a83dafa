"""What the bodies of watched requests and responses hold, decoded as Kafka's own reader does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Final

from tagwire import messages
from tagwire.capture.exchange import Exchange
from tagwire.capture.observation import Losses
from tagwire.codec.classes import MessageObject
from tagwire.errors import DecodeError, UnsupportedVersionError
from tagwire.rpc.ranges import Range
from tagwire.spec import Struct
from tagwire.spec.api_keys import ApiKey

BAD_REQUEST: Final = "a request whose body cannot be read"
BAD_RESPONSE: Final = "a response whose body cannot be read"


def request_of(exchange: Exchange, losses: Losses) -> MessageObject | None:
    """The request's message; None where it was not kept, or cannot be read, which is counted."""
    if exchange.request is None:
        return None
    header = exchange.header
    found = _decoded(messages.request, header.api_key, (header.api_version,), exchange.request)
    if found is None:
        losses.add(BAD_REQUEST, exchange.place)
    return found


def response_of(exchange: Exchange, losses: Losses) -> MessageObject | None:
    """The message of the response; None where there is none, it was not kept, or cannot be read, which is counted."""
    if exchange.response is None:
        return None
    found = response_in(exchange.response, exchange.header.api_key, exchange.header.api_version)
    if found is None:
        losses.add(BAD_RESPONSE, exchange.place)
    return found


def response_in(body: bytes, api: int, version: int) -> MessageObject | None:
    """The message in the body of a response; None where it cannot be read."""
    # A refusal of ApiVersions comes in the layout of version 0, whatever the request's version.
    layouts = (version, 0) if api == ApiKey.API_VERSIONS and version else (version,)
    return _decoded(messages.response, api, layouts, body)


def offered(exchange: Exchange, losses: Losses) -> dict[int, Range] | None:
    """What the broker listed: {API key: range}, in an ApiVersions that got its response; None in any other."""
    return None if exchange.header.api_key != ApiKey.API_VERSIONS else listed(response_of(exchange, losses))


def listed(response: Any) -> dict[int, Range] | None:
    """What a response to ApiVersions lists: {API key: range}; None where there is no response, or it lists nothing."""
    apis = response.api_keys if response is not None else ()
    return {api.api_key: (api.min_version, api.max_version) for api in apis} or None


def error_codes(exchange: Exchange, losses: Losses) -> tuple[int, ...] | None:
    """The codes other than 0 in a response, ascending, each once; None where there is no response that can be read."""
    response = response_of(exchange, losses)
    return None if response is None else codes_in(response)


def codes_in(response: MessageObject) -> tuple[int, ...]:
    """The codes other than 0 in the fields of a response that are called error_code, at any depth, ascending, each
    once."""
    codes: set[int] = set()
    kind: Any = type(response)
    _gatherer_of(kind)(response, codes)
    codes.discard(0)
    return tuple(sorted(codes)) if codes else ()


Gatherer = Callable[[Any, set[int]], None]


@cache
def _gatherer_of(kind: Any) -> Gatherer:
    return _gatherer(kind.spec.root)


def _gatherer(struct: Struct) -> Gatherer:
    """What takes in the error codes of a struct: it looks only where there may be some."""
    has_code = any(field.attribute == "error_code" for field in struct.fields)
    inner = [(field.attribute, field.type.is_array, _gatherer(field.struct)) for field in struct.fields if field.struct]
    ways = [way for way in inner if way[2] is not _nothing]
    if not ways:
        return _own_code if has_code else _nothing

    def gather(value: Any, codes: set[int]) -> None:
        if has_code:
            codes.add(value.error_code)
        for name, is_array, gather_inner in ways:
            found = getattr(value, name)
            if is_array:
                for element in found or ():
                    gather_inner(element, codes)
            elif found is not None:
                gather_inner(found, codes)

    return gather


def _own_code(value: Any, codes: set[int]) -> None:
    codes.add(value.error_code)


def _nothing(value: Any, codes: set[int]) -> None:
    """A struct without error codes."""


def _decoded(classes: Any, api: int, layouts: Iterable[int], body: bytes) -> MessageObject | None:
    for version in layouts:
        try:
            message: MessageObject = classes(api).decode(body, version, lenient=True)
            return message
        except (DecodeError, UnsupportedVersionError, KeyError):
            continue
    return None
