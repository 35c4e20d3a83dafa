"""What the bodies of watched requests and answers hold, decoded as Kafka's own reader does."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

from tagwire import messages
from tagwire.capture.conversation import Exchange
from tagwire.capture.observation import Losses
from tagwire.codec.classes import MessageObject, Structure
from tagwire.errors import DecodeError, UnsupportedVersionError
from tagwire.rpc.headers import API_VERSIONS
from tagwire.rpc.negotiation import Range

BAD_REQUEST: Final = "a request whose body cannot be read"
BAD_RESPONSE: Final = "an answer whose body cannot be read"


def request_of(exchange: Exchange, losses: Losses) -> MessageObject | None:
    """The request's message; None where it was not kept, or cannot be read, which is counted."""
    return _decoded(messages.request, exchange, exchange.request, BAD_REQUEST, losses)


def response_of(exchange: Exchange, losses: Losses) -> MessageObject | None:
    """The answer's message; None where there is none, or it was not kept, or cannot be read, which is counted."""
    return _decoded(messages.response, exchange, exchange.response, BAD_RESPONSE, losses)


def offered(exchange: Exchange, losses: Losses) -> dict[int, Range] | None:
    """What the broker listed: {API key: range}, in an answered ApiVersions; None in any other."""
    if exchange.header.api_key != API_VERSIONS:
        return None
    answer: Any = response_of(exchange, losses)
    listed = answer.api_keys if answer is not None else ()
    return {api.api_key: (api.min_version, api.max_version) for api in listed} or None


def error_codes(exchange: Exchange, losses: Losses) -> tuple[int, ...] | None:
    """The codes other than 0 in an answer, ascending, each once; None where there is no answer that can be read."""
    response = response_of(exchange, losses)
    if response is None:
        return None
    codes: set[int] = set()
    _gather(response, codes)
    return tuple(sorted(codes - {0}))


def _gather(value: Any, codes: set[int]) -> None:
    """Takes in every field called error_code, at any depth."""
    if isinstance(value, list):
        if value and isinstance(value[0], Structure):
            for element in value:
                _gather(element, codes)
    elif isinstance(value, Structure):
        for name in value._fields:
            inner = getattr(value, name)
            if name == "error_code":
                codes.add(inner)
            else:
                _gather(inner, codes)


def _decoded(classes: Any, exchange: Exchange, body: bytes | None, reason: str, losses: Losses) -> MessageObject | None:
    if body is None:
        return None
    for version in _layouts(exchange, reason):
        with suppress(DecodeError, UnsupportedVersionError, KeyError):
            message: MessageObject = classes(exchange.header.api_key).decode(body, version, lenient=True)
            return message
    losses.add(reason, exchange.place)
    return None


def _layouts(exchange: Exchange, reason: str) -> Iterable[int]:
    """A refusal of ApiVersions comes in the layout of version 0, whatever was asked."""
    asked = exchange.header.api_version
    if reason == BAD_RESPONSE and exchange.header.api_key == API_VERSIONS:
        return dict.fromkeys((asked, 0))
    return (asked,)
