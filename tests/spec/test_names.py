"""How a field's name is spelled in Python and in Kafka's JSON form (docs/wire-format.md#the-spec-language)."""

from __future__ import annotations

import keyword

import pytest

from tagwire.spec import Field, FieldType, Versions, catalog
from tagwire.spec.model import RESERVED_ATTRIBUTES, snake_case


def field(name: str) -> Field:
    return Field(name, FieldType("int32"), Versions(0, 0))


@pytest.mark.parametrize(
    ("name", "snake"),
    [
        ("fooBarBaz", "foo_bar_baz"),
        ("FooBarBaz", "foo_bar_baz"),
        ("FOOBarBaz", "foobar_baz"),
        ("foo", "foo"),
        ("TopicId", "topic_id"),
        ("V0Host", "v0_host"),
        ("timeoutMs", "timeout_ms"),
        ("ISRVersion", "isrversion"),
        ("aB", "a_b"),
        ("A", "a"),
        ("Sha256", "sha256"),
    ],
)
def test_an_attribute_is_the_name_in_snake_case(name: str, snake: str) -> None:
    assert snake_case(name) == snake
    assert field(name).attribute == snake


@pytest.mark.parametrize(("name", "json"), [("TopicId", "topicId"), ("timeoutMs", "timeoutMs"), ("ISR", "iSR")])
def test_a_json_key_is_the_name_with_its_first_letter_in_lower_case(name: str, json: str) -> None:
    assert field(name).json_name == json


@pytest.mark.parametrize(
    ("name", "attribute"),
    [("Class", "class_"), ("from", "from_"), ("None", "none"), ("Encode", "encode_"), ("UnknownTags", "unknown_tags_")],
)
def test_a_name_that_python_or_the_classes_need_ends_in_an_underscore(name: str, attribute: str) -> None:
    assert field(name).attribute == attribute


def test_no_field_of_the_catalog_needs_an_underscore_or_shares_an_attribute() -> None:
    taken = RESERVED_ATTRIBUTES | set(keyword.kwlist) | {"spec", "api_key", "valid_versions"}
    wrong = []
    for name in catalog.names():
        message = catalog.message(name)
        for struct in message.all_structs():
            attributes = [field.attribute for field in struct.fields]
            own = taken if struct is message.root else taken - {"spec", "api_key", "valid_versions"}
            if len(set(attributes)) != len(attributes) or own & {snake_case(field.name) for field in struct.fields}:
                wrong.append((name, struct.name))
    assert wrong == []


def test_no_struct_of_the_catalog_has_the_name_of_its_message() -> None:
    assert [name for name in catalog.names() if name in {s.name for s in catalog.message(name).structs}] == []
