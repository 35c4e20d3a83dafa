"""The spec language of the first KIP-482: `versionsWithOptional` and `optionalFields`.

Source: docs/dialects.md#optional-fields.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tagwire.errors import SpecError
from tagwire.spec import Message, load

SEED = """
{ "apiKey": 9000, "type": "response", "name": "FooResponse", "validVersions": "0-9", "versionsWithOptional": "9+",
  "optionalFields": [
    { "name": "UserAgent", "type": "string", "nullable": true, "tag": "0x0001", "about": "Which program asked." },
  ],
  "fields": [
    { "name": "Foos", "type": "[]Foo", "versions": "0+", "about": "Each foo.",
      "optionalFields": [
        { "name": "Bar", "type": "string", "nullable": false, "tag": "0x0001", "default": "hello world" },
      ],
      "fields": [
        { "name": "Baz", "type": "int16", "versions": "0+" },
      ]
    },
  ]
}
"""
NAME: dict[str, Any] = {"name": "Name", "type": "string", "versions": "0+"}
BAR: dict[str, Any] = {"name": "Bar", "type": "string", "tag": 1}


def text(*optional: dict[str, Any], **more: Any) -> str:
    document: dict[str, Any] = {
        "type": "data",
        "name": "Foo",
        "validVersions": "0-9",
        "versionsWithOptional": "9+",
        "optionalFields": list(optional),
        "fields": [NAME],
    }
    document |= more
    return json.dumps({key: value for key, value in document.items() if value is not ...})


def problems(source: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load(source)
    return str(caught.value).splitlines()


def optional_of(message: Message) -> Any:
    return next(field for field in message.fields if field.optional)


def test_the_seeds_own_example_is_read_with_its_trailing_commas() -> None:
    message = load(SEED)
    foos, user_agent = message.fields
    assert (user_agent.name, user_agent.tag, user_agent.default, user_agent.optional) == ("UserAgent", 1, None, True)
    assert str(message.optional_versions) == "9+"
    assert [user_agent.is_tagged(version) for version in (8, 9)] == [False, True]
    assert foos.struct is not None
    baz, bar = foos.struct.fields
    assert (baz.name, baz.optional) == ("Baz", False)
    assert (bar.name, bar.tag, bar.default, str(bar.nullable_versions)) == ("Bar", 1, "hello world", "none")


@pytest.mark.parametrize(
    ("tag", "number"), [("0x0000", 0), ("0x0001", 1), ("0xFFFF", 65535), ("0x1", 1), (65535, 65535)]
)
def test_a_tag_is_a_number_or_its_hexadecimal_text(tag: Any, number: int) -> None:
    assert optional_of(load(text(BAR | {"tag": tag}))).tag == number


def test_tags_need_not_be_contiguous() -> None:
    message = load(text(BAR, BAR | {"name": "Qux", "tag": 500}))
    assert [field.tag for field in message.fields if field.optional] == [1, 500]


@pytest.mark.parametrize(
    ("field", "default"),
    [
        (BAR, ""),
        (BAR | {"nullable": True}, None),
        (BAR | {"nullable": True, "default": ""}, ""),
        (BAR | {"nullable": True, "default": None}, None),
        (BAR | {"nullable": True, "default": "null"}, None),
        (BAR | {"default": "x"}, "x"),
        (BAR | {"type": "int32"}, 0),
        (BAR | {"type": "records"}, None),
        (BAR | {"type": "bytes"}, b""),
    ],
)
def test_the_default_is_what_is_given_else_null_if_nullable_else_zero(field: dict[str, Any], default: Any) -> None:
    assert optional_of(load(text(field))).default == default


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (text(BAR, BAR | {"name": "Qux"}), "<text>, Qux: tag 0x0001 is already taken by Bar"),
        (text(BAR | {"tag": 65536}), "<text>, Bar: tag must be a number from 0 to 65535"),
        (text(BAR | {"tag": -1}), "<text>, Bar: tag must be a number from 0 to 65535"),
        (text(BAR | {"tag": True}), "<text>, Bar: tag must be a number from 0 to 65535"),
        (text({"name": "Bar", "type": "string"}), "<text>, Bar: tag must be a number from 0 to 65535"),
        (text(BAR | {"versions": "0+"}), "<text>, Bar: unknown key 'versions'"),
        (text(BAR | {"name": "Name"}), "<text>, Name: the name is already taken in this struct"),
        (text(BAR | {"type": "int32", "nullable": True}), "<text>, Bar: type int32 cannot be nullable"),
        (text(BAR | {"type": "[]Row"}), "<text>, Bar: an array of structs cannot be an optional field"),
        (text(BAR | {"default": None}), "<text>, Bar: the default is null, but the field is not nullable"),
        (text(BAR | {"type": "int32", "default": None}), "<text>, Bar: 'null' is no int32"),
        (
            text(BAR, versionsWithOptional=..., flexibleVersions="none"),
            "<text>: optionalFields need versionsWithOptional",
        ),
        (text(BAR, flexibleVersions="9+"), "<text>: versionsWithOptional and flexibleVersions exclude each other"),
    ],
)
def test_an_optional_field_that_breaks_a_rule_is_refused(source: str, said: str) -> None:
    found = problems(source)
    assert any(line.startswith(said) for line in found), found


def test_flexible_versions_may_be_absent_or_none_beside_optional_ones() -> None:
    assert load(text(BAR)).fields == load(text(BAR, flexibleVersions="none")).fields
