"""The catalog's message classes by name, built when first asked for: `messages.MetadataRequest`."""

from __future__ import annotations

from typing import Any

from tagwire.codec.classes import MessageObject, class_at
from tagwire.spec import catalog
from tagwire.spec.api_keys import API_NAMES


def request(api_key: int) -> type[MessageObject]:
    """The request class of an API. Raises KeyError for a key that no API has."""
    return class_at(f"{API_NAMES[api_key]}Request")


def response(api_key: int) -> type[MessageObject]:
    """The response class of an API. Raises KeyError for a key that no API has."""
    return class_at(f"{API_NAMES[api_key]}Response")


def __getattr__(name: str) -> Any:
    if name.startswith("_") or not catalog.contains(name):
        raise AttributeError(f"module 'tagwire.messages' has no message {name!r}")
    found = globals()[name] = class_at(name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *catalog.names()})
