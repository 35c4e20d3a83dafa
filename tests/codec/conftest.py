"""The messages of Kafka's own codec tests, as classes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tagwire import message_class
from tagwire.codec import MessageObject

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
