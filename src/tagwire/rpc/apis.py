"""The two messages of an API: Kafka's own by its key, or those of a proposal that is tried out.

    foo = api_of(foo_request_spec, foo_response_spec)
    Connection("client", apis={foo.key: foo})
    Connection("broker", apis={foo.key: foo}, served={foo.key: foo.versions})

What is given in `apis` stands before Kafka's own API of the same key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from tagwire import messages
from tagwire.codec.classes import DynamicMessage, MessageObject, message_class
from tagwire.errors import SpecError
from tagwire.rpc.ranges import Range
from tagwire.spec.model import Message

MessageSpec = Message | Path | str | type[MessageObject]
"""A message: its model, the path of its spec, the spec's JSON text, or its class."""


@dataclass(frozen=True, slots=True)
class Api:
    """An API that is not Kafka's.

    Attributes:
        request, response: the classes of its messages.
    """

    request: type[DynamicMessage]
    response: type[DynamicMessage]

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


def api_of(request: MessageSpec, response: MessageSpec) -> Api:
    """The API of two messages, of either dialect.

    Raises:
        SpecError: a spec breaks a rule, or the two are not a request and its response, of one key and the same
            versions.
    """
    api = Api(_class(request), _class(response))
    asking, answering = api.request.spec, api.response.spec
    if (asking.type, answering.type) != ("request", "response"):
        raise SpecError(
            f"{asking.name} is a {asking.type} and {answering.name} a {answering.type}: not the two of an API"
        )
    if asking.api_key != answering.api_key:
        raise SpecError(f"{asking.name} has apiKey {asking.api_key}, and {answering.name} {answering.api_key}")
    if asking.valid_versions != answering.valid_versions:
        versions = f"{asking.valid_versions}, and {answering.name} {answering.valid_versions}"
        raise SpecError(f"{asking.name} has versions {versions}")
    return api


def _class(spec: MessageSpec) -> type[DynamicMessage]:
    return cast("type[DynamicMessage]", spec) if isinstance(spec, type) else message_class(spec)


def request_class(api: int, apis: Apis = NO_APIS) -> type[DynamicMessage]:
    """The class of an API's request. Raises KeyError for a key that no API has."""
    return apis[api].request if api in apis else messages.request(api)


def response_class(api: int, apis: Apis = NO_APIS) -> type[DynamicMessage]:
    """The class of an API's response. Raises KeyError for a key that no API has."""
    return apis[api].response if api in apis else messages.response(api)
