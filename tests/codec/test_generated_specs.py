"""What must hold of any spec, in either dialect, of any version, value and bytes of it."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from hypothesis import given, seed
from hypothesis import strategies as st

from tagwire.codec import MessageObject
from tagwire.codec.annotate import annotate
from tagwire.errors import DecodeError, UnsupportedVersionError
from tagwire.spec import Message

from .generated import class_of, documents, elements, examples, objects, read_or_refused, without_unknown_tags

Kind = type[MessageObject]


def drawn(data: st.DataObject) -> tuple[Kind, int, Any]:
    """A class, a version of it, and an object of that version."""
    kind = class_of(data.draw(documents(), label="spec"))
    version = data.draw(st.sampled_from(list(kind.valid_versions)), label="version")
    return kind, version, data.draw(objects(kind.spec.root, version, kind), label="message")


@examples(150)
@given(st.data())
def test_every_value_of_every_spec_is_read_back_as_it_was_written(data: st.DataObject) -> None:
    kind, version, message = drawn(data)
    written = message.encode(version)
    for lenient in (False, True):
        read = kind.decode(written, version, lenient=lenient)
        assert read == message
        assert read.encode(version) == written
    assert kind.decode_prefix(b"__" + written + b"__", version, start=2) == (message, len(written) + 2)
    document = json.loads(json.dumps(message.to_json(version)))
    assert without_unknown_tags(kind.from_json(document, version)) == without_unknown_tags(message)
    for other in (copy.copy(read), copy.deepcopy(read), pickle.loads(pickle.dumps(read))):
        assert other == message
        assert other.encode(version) == written


@examples(60)
@given(st.data())
def test_an_annotated_dump_names_every_byte_once(data: st.DataObject) -> None:
    kind, version, message = drawn(data)
    written = message.encode(version)
    at = 0
    for span in annotate(kind.spec, written, version):
        assert span.start == at
        at = span.end
    assert at == len(written)


@examples(100)
@given(st.data())
def test_a_field_that_the_version_lacks_is_dropped_if_ignorable_and_else_refused(data: st.DataObject) -> None:
    kind, version, message = drawn(data)
    written = message.encode(version)
    for field in kind.spec.fields:
        if version in field.versions:
            continue
        default = getattr(message, field.attribute)
        value = data.draw(elements(field, version, kind), label=field.name)
        value = [value] if field.type.is_array else value
        if value == default or field.type.is_struct:
            continue
        setattr(message, field.attribute, value)
        if field.ignorable:
            assert message.encode(version) == written
            assert field.json_name not in message.to_json(version)
        else:
            for write in (message.encode, message.to_json):
                with pytest.raises(UnsupportedVersionError, match=f"v{version}, {field.attribute} is not at"):
                    write(version)
        setattr(message, field.attribute, default)


@examples(150)
@given(st.data(), st.binary(max_size=60), st.booleans())
def test_any_bytes_are_a_message_of_any_spec_or_a_decode_error(data: st.DataObject, raw: bytes, lenient: bool) -> None:
    kind, version, message = drawn(data)
    read_or_refused(kind, raw, version, lenient)
    damaged = bytearray(message.encode(version))
    for _ in range(data.draw(st.integers(1, 3)) if damaged else 0):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.sampled_from([0, 1, 2, 127, 128, 254, 255]))
    read_or_refused(kind, bytes(damaged), version, lenient)


@examples(60)
@given(st.data())
def test_a_message_of_any_spec_cut_short_or_too_long_is_refused(data: st.DataObject) -> None:
    kind, version, message = drawn(data)
    written = message.encode(version)
    for size in {0, 1, len(written) // 2, len(written) - 1} & set(range(len(written))):
        for lenient in (False, True):
            with pytest.raises(DecodeError):
                kind.decode(written[:size], version, lenient=lenient)
    with pytest.raises(DecodeError, match="bytes follow the message"):
        kind.decode(written + b"\0", version)
    assert kind.decode(written + b"\0", version, lenient=True) == message


def test_the_specs_have_every_construct_of_the_language() -> None:
    found: set[str] = set()

    def collect(document: dict[str, Any]) -> None:
        found.update(constructs(class_of(document).spec))

    wanted = {
        "a plain message",
        "a message with tags",
        "a message with optional fields",
        "a nullable struct",
        "a tagged struct",
        "a tagged nullable struct",
        "a tagged array of structs",
        "an optional struct",
        "an optional nullable struct",
        "a struct in a struct",
        "a common struct",
        "a common struct in two places",
        "a map key",
        "a default of null",
        "a default that is no zero",
        "an encoding of its own",
        "positional, then tagged",
        "absent from some version",
        "ignorable",
        "records",
        "[]string",
        "[]uuid",
        "[]float64",
    }
    # Rare ones come late: how many specs it takes is up to chance, that they come is not.
    for turn in range(10):
        seed(turn)(examples(300)(given(documents())(collect)))()
        if found >= wanted:
            break
    assert found >= wanted


def constructs(message: Message) -> set[str]:
    extended = "tags" if message.flexible_versions else "optional fields" if message.optional_versions else ""
    found = {f"a message with {extended}" if extended else "a plain message"}
    places = 0
    for struct in message.all_structs():
        for field in struct.fields:
            kind = "optional " if field.optional else "tagged " if field.tag is not None else ""
            nullable = "nullable " if field.nullable_versions else ""
            article = "an" if kind == "optional " else "a"
            if field.type.is_struct and field.type.is_array:
                found.add(f"{article} {kind}array of structs")
            elif field.type.is_struct:
                found |= {f"{article} {kind}{nullable}struct", f"{article} {kind}struct"}
            shared = field.type.element == "Shared"
            places += shared
            for is_here, name in (
                (not field.type.is_struct, str(field.type)),
                (shared, "a common struct"),
                (places > 1, "a common struct in two places"),
                (struct is not message.root and field.type.is_struct, "a struct in a struct"),
                (field.map_key, "a map key"),
                (field.default is None, "a default of null"),
                (field.default in (-1, "x", 65535, True), "a default that is no zero"),
                (field.flexible_versions is not None, "an encoding of its own"),
                (bool(field.tag is not None and field.versions != field.tagged_versions), "positional, then tagged"),
                (not field.versions.covers(message.valid_versions), "absent from some version"),
                (field.ignorable, "ignorable"),
            ):
                if is_here:
                    found.add(name)
    return found
