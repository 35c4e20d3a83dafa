"""The messages of Kafka's own codec tests, and messages made up for one test, as classes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tagwire import message_class
from tagwire.codec import MessageObject

Build = Callable[..., type[MessageObject]]
SPECS = Path(__file__).parents[1] / "vectors" / "specs"


@pytest.fixture(scope="session")
def simple() -> type[MessageObject]:
    """SimpleExampleMessage: nearly every type as a tagged field; versions 0-2, flexible from 1."""
    return message_class(SPECS / "SimpleExampleMessage.json")


@pytest.fixture(scope="session")
def nullable_structs() -> type[MessageObject]:
    """NullableStructMessage: two structs in position, two in tags; versions 0-2, flexible from 1."""
    return message_class(SPECS / "NullableStructMessage.json")


@pytest.fixture(scope="session")
def arrays() -> type[MessageObject]:
    """SimpleArraysMessage: an array of structs and one of ints; versions 0-2, flexible from 1."""
    return message_class(SPECS / "SimpleArraysMessage.json")


@pytest.fixture(scope="session")
def all_types() -> type[MessageObject]:
    """AllTypeMessage: every type, plain in version 0 and compact in 1."""
    return message_class(SPECS / "AllTypeMessage.json")


@pytest.fixture(scope="session")
def build() -> Build:
    """Makes the class of a message from its fields."""
    return build_class


def build_class(*fields: dict[str, Any], flexible: str = "1+", valid: str = "0-2", **more: Any) -> type[MessageObject]:
    """The class of a message called Foo, versions 0-2, flexible from 1; a field's `versions` are 0+ if it says none."""
    document = {
        "type": "data",
        "name": "Foo",
        "validVersions": valid,
        "flexibleVersions": flexible,
        "fields": [{"versions": "0+", **field} for field in fields],
    }
    return message_class(json.dumps(document | more))
