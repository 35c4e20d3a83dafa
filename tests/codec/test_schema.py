"""Messages built in code compile, encode and decode like those of spec files."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tagwire import Field, Schema, message_class
from tagwire.errors import SchemaError, SpecError

OWNER = Schema(Field("name", "string"), Field("mail", "string", nullable=True), name="Owner")


def doubled(levels):
    schema = Schema(Field("a", "int8"))
    for _ in range(levels):
        schema = Schema(Field("a", schema), Field("b", schema))
    return schema


def nested(depth: int) -> Schema:
    """A schema with as many schemas inside each other."""
    schema = Schema(Field("x", "int8"))
    for _ in range(depth):
        schema = Schema(Field("a", schema))
    return schema


def test_a_plain_schema_has_no_optional_buffer() -> None:
    schema = Schema(Field("id", "int16"), Field("names", "[]string"))
    message = schema(id=7, names=["a"])
    assert schema.encode(message).hex() == "0007" + "00000001" + "000161"
    assert schema.decode(schema.encode(message)) == message


def test_a_schema_given_optional_fields_writes_what_the_same_spec_file_writes() -> None:
    schema = Schema(Field("Baz", "int16"), optional_fields={1: Field("Bar", "string", default="hello world")})
    file = message_class(
        """{ "type": "data", "name": "Foo", "validVersions": "0", "versionsWithOptional": "0+",
             "fields": [{ "name": "Baz", "type": "int16", "versions": "0+" }],
             "optionalFields": [{ "name": "Bar", "type": "string", "tag": 1, "default": "hello world" }] }"""
    )
    for values in ({"baz": 7}, {"baz": 7, "bar": "hey"}):
        assert schema.encode(schema(**values)) == file(**values).encode(0)


def test_an_empty_mapping_of_optional_fields_still_gives_every_struct_its_buffer() -> None:
    assert Schema(Field("id", "int16"), optional_fields={}).message_class(id=7).encode(0).hex() == "000007"


def test_structs_nest_and_one_schema_may_stand_in_several_places() -> None:
    schema = Schema(Field("owner", OWNER, nullable=True), Field("others", [OWNER]))
    owner = schema.message_class.Owner
    message = schema(owner=None, others=[owner(name="a"), owner(name="b", mail="m")])
    assert schema.encode(message).hex() == "ff" + "00000002" + "0001610000" + "000162" + "00016d"
    assert schema.decode(schema.encode(message)) == message


def test_an_optional_field_left_out_is_null_if_it_may_be_and_zero_if_not() -> None:
    schema = Schema(optional_fields={1: Field("a", "string", nullable=True), 2: Field("b", "string")})
    assert (schema().a, schema().b) == (None, "")


WRONG: list[tuple[str, Callable[[], Schema], str]] = [
    ("a name occurs twice", lambda: Schema(Field("a", "int8"), Field("a", "int8")), "name a is already taken"),
    (
        "an optional field has a mandatory one's name",
        lambda: Schema(Field("a", "int8"), optional_fields={1: Field("a", "int8")}),
        "name a is already taken",
    ),
    (
        "a tag occurs twice",
        lambda: Schema(optional_fields=[(1, Field("a", "int8")), (1, Field("b", "int8"))]),
        "tag 1 is already taken by Schema.a",
    ),
    ("a tag is out of range", lambda: Schema(optional_fields={65536: Field("a", "int8")}), "0 to 65535"),
    ("a number is nullable", lambda: Schema(Field("a", "int8", nullable=True)), "cannot be nullable"),
    ("the type is unknown", lambda: Schema(Field("a", "int7")), "'int7' is no type"),
    ("the default is of another type", lambda: Schema(Field("a", "int8", default="x")), "is no int8"),
    ("the default is out of range", lambda: Schema(Field("a", "int8", default=300)), "-128 to 127"),
    ("the default is no text", lambda: Schema(Field("a", "string", default="\ud800")), "cannot be UTF-8"),
    ("the default is too long", lambda: Schema(Field("a", "string", default="é" * 16384)), "a text of 32768 bytes"),
    ("the default is null and the field is not", lambda: Schema(Field("a", "string", default=None)), "not nullable"),
    (
        "a name is Python's word, and another what stands for it",
        lambda: Schema(Field("class", "int8"), Field("class_", "int8")),
        "name class_ is already taken",
    ),
    ("a field is none", lambda: Schema("a"), "Schema: 'a' is no Field"),
    ("an optional field is none", lambda: Schema(optional_fields={1: "a"}), "Schema: 'a' is no Field"),
    ("schemas are nested too deeply", lambda: nested(61), r"schemas are nested more than 60 deep"),
    ("schemas each use the next one twice", lambda: doubled(50), "uses others in more than 10,000 places"),
    (
        "two names have one key in the JSON form",
        lambda: Schema(Field("AB", "int8"), Field("aB", "int8")),
        "name aB is already taken",
    ),
    ("a name is the class's own", lambda: Schema(Field("spec", "int8")), "would hide the class's own spec"),
    ("the name is no name", lambda: Schema(Field("a b", "int8")), "must be letters"),
    (
        "an optional field is an array of structs",
        lambda: Schema(optional_fields={1: Field("a", [OWNER])}),
        "array of structs",
    ),
    (
        "a struct has optional fields and the message has none",
        lambda: Schema(Field("a", Schema(optional_fields={1: Field("b", "int8")}))),
        "inside a schema that has none",
    ),
]


@pytest.mark.parametrize(("build", "said"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_a_schema_is_refused_when(build: Callable[[], Schema], said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        build()


def test_what_may_be_nested_can_be_written_and_read() -> None:
    """Deeper ones were taken and could not be written; of a few hundred Python itself had enough."""
    schema = nested(60)
    assert schema.decode(schema.encode(schema())) == schema()


def test_a_schema_is_shown_as_it_is_made() -> None:
    field = "Field(name='a', type='int8', nullable=False, default=..., about='')"
    assert repr(Schema(optional_fields={1: Field("a", "int8")})) == f"Schema(optional_fields={{1: {field}}})"
    assert repr(Schema(Field("a", "int8"), optional_fields={})) == f"Schema({field}, optional_fields={{}})"


def test_a_schema_error_is_a_spec_error() -> None:
    assert issubclass(SchemaError, SpecError)


@pytest.mark.parametrize("name", ["owner", "decode", "spec", "int32", "_programs", ""])
def test_a_schema_inside_another_may_have_any_name(name: str) -> None:
    schema = Schema(Field("owner", Schema(Field("x", "string"), name=name), nullable=True))
    message = schema(owner=schema.message_class.from_json({"owner": {"x": "a"}}, 0).owner)
    assert schema.encode(message).hex() == "01000161"
    assert schema.decode(schema.encode(message)) == message
    assert schema.decode(b"\xff").owner is None
