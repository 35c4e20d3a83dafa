"""The two messages of an API: Kafka's own by its key, or those of a proposal that is tried out.

    foo = api_of(foo_request_spec, foo_response_spec)
    Connection("client", apis={foo.key: foo})
    Connection("broker", apis={foo.key: foo}, served={foo.key: foo.versions})

What is given in `apis` stands before Kafka's own API of the same key. It brings its headers along, so that a new header
version is a spec, and a `headerVersions` that names it, and no code (KIP-1313).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, cast

from tagwire import messages
from tagwire.codec.classes import DynamicMessage, MessageObject, message_class
from tagwire.errors import SpecError
from tagwire.rpc.ranges import Range
from tagwire.spec import catalog
from tagwire.spec.api_keys import API_NAMES
from tagwire.spec.model import Message
from tagwire.spec.module import header_problems

MessageSpec = Message | Path | str | type[MessageObject]
"""A message: its model, the path of its spec, the spec's JSON text, or its class."""

# What a header begins with at every version, and nothing can be read without.
_FIRST_OF_REQUESTS: Final = ("RequestApiKey int16", "RequestApiVersion int16", "CorrelationId int32")
_FIRST_OF_RESPONSES: Final = ("CorrelationId int32",)


@dataclass(frozen=True, slots=True)
class Api:
    """An API that is not Kafka's.

    Attributes:
        request, response: the classes of its messages.
        request_header, response_header: the classes of what stands before them.
    """

    request: type[DynamicMessage]
    response: type[DynamicMessage]
    request_header: type[DynamicMessage]
    response_header: type[DynamicMessage]

    @property
    def key(self) -> int:
        return int(self.request.api_key)

    @property
    def versions(self) -> Range:
        """The lowest and the highest version of both messages."""
        return self.request.valid_versions.lowest, self.request.valid_versions.highest


Apis = Mapping[int, Api]
"""{API key: the API}: what one end of a connection speaks."""
NO_APIS: Final[Apis] = {}


def api_of(
    request: MessageSpec,
    response: MessageSpec,
    *,
    request_header: MessageSpec | None = None,
    response_header: MessageSpec | None = None,
) -> Api:
    """The API of two messages, of either dialect.

    Args:
        request_header, response_header: the headers with the versions that the messages' `headerVersions` name; None
            is Kafka's own.

    Raises:
        SpecError: a spec breaks a rule, or the two are not a request and its response, of one key and the same
            versions, or their header versions are not those of the headers, or a header does not begin as all do.
    """
    api = Api(
        _class(request),
        _class(response),
        _header_class(messages.RequestHeader, request_header, _FIRST_OF_REQUESTS),
        _header_class(messages.ResponseHeader, response_header, _FIRST_OF_RESPONSES),
    )
    requested, returned = api.request.spec, api.response.spec
    if (requested.type, returned.type) != ("request", "response"):
        raise SpecError(
            f"{requested.name} is a {requested.type} and {returned.name} a {returned.type}: not the two of an API"
        )
    if requested.api_key != returned.api_key:
        raise SpecError(f"{requested.name} has apiKey {requested.api_key}, and {returned.name} {returned.api_key}")
    if requested.valid_versions != returned.valid_versions:
        versions = f"{requested.valid_versions}, and {returned.name} {returned.valid_versions}"
        raise SpecError(f"{requested.name} has versions {versions}")
    headers = {kind.spec.name: kind.spec for kind in (api.request_header, api.response_header)}
    for message in (requested, returned):
        if problems := header_problems(message, headers):
            raise SpecError("\n".join(f"{message.name}: {problem}" for problem in problems))
    return api


def _header_class(own: type[MessageObject], given: MessageSpec | None, first: Sequence[str]) -> type[DynamicMessage]:
    """The class of a header that was given, or Kafka's own. Raises SpecError where it does not begin as all do."""
    if given is None:
        return cast("type[DynamicMessage]", own)
    kind = _class(given)
    spec, name = kind.spec, own.spec.name
    begins = spec.fields[: len(first)]
    says = [f"{field.name} {field.type}" for field in begins if field.versions.covers(spec.valid_versions)]
    knows = {field.name for field in spec.fields} >= {field.name for field in own.spec.fields}
    if (spec.type, spec.name) != ("header", name) or says != list(first) or not knows:
        fields = ", ".join(f"{field.name} {field.type}" for field in own.spec.fields)
        raise SpecError(
            f"{spec.name} is no {name}: a header of that name, of the fields {fields}, the first {len(first)} of them "
            "first and at every version"
        )
    return kind


def _class(spec: MessageSpec) -> type[DynamicMessage]:
    return cast("type[DynamicMessage]", spec) if isinstance(spec, type) else message_class(spec)


def request_class(api: int, apis: Apis = NO_APIS) -> type[DynamicMessage]:
    """The class of an API's request. Raises KeyError for a key that no API has."""
    return apis[api].request if api in apis else messages.request(api)


def response_class(api: int, apis: Apis = NO_APIS) -> type[DynamicMessage]:
    """The class of an API's response. Raises KeyError for a key that no API has."""
    return apis[api].response if api in apis else _kafkas_response(api)


@lru_cache(256)
def _kafkas_response(api: int) -> type[DynamicMessage]:
    return messages.response(api)


def request_header_class(api: int, apis: Apis = NO_APIS) -> type[DynamicMessage]:
    """The class of the header before an API's requests."""
    return apis[api].request_header if api in apis else cast("type[DynamicMessage]", messages.RequestHeader)


def response_header_class(api: int, apis: Apis = NO_APIS) -> type[DynamicMessage]:
    """The class of the header before an API's responses."""
    return apis[api].response_header if api in apis else cast("type[DynamicMessage]", messages.ResponseHeader)


def request_spec(api: int, apis: Apis = NO_APIS) -> Message | None:
    """The spec of an API's request, which says what holds of its versions; None for a key that no API has."""
    if api in apis:
        return apis[api].request.spec
    return catalog.message(f"{API_NAMES[api]}Request") if api in API_NAMES else None
