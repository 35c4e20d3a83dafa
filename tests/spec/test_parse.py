"""What a spec file may say, and what is said where it breaks a rule (docs/wire-format.md#the-spec-language)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tagwire.errors import SpecError
from tagwire.spec import Field, Message, Versions, load

INT: dict[str, Any] = {"name": "A", "type": "int32", "versions": "0+"}
TEXT: dict[str, Any] = {"name": "A", "type": "string", "versions": "0+"}
POINT: list[dict[str, Any]] = [{"name": "X", "type": "int32", "versions": "0+"}]
STRUCT: dict[str, Any] = {"name": "A", "type": "Point", "versions": "0+", "fields": POINT}
COMMON: dict[str, Any] = {"name": "Point", "versions": "0+", "fields": POINT}
TAGGED: dict[str, Any] = {"name": "A", "type": "int32", "versions": "0+", "tag": 0, "taggedVersions": "1+"}


def text(*fields: dict[str, Any], **more: Any) -> str:
    """A request named FooRequest, versions 0-2, flexible from 1; `more` overrides keys, ... leaves one out."""
    document: dict[str, Any] = {
        "apiKey": 9000,
        "type": "request",
        "name": "FooRequest",
        "validVersions": "0-2",
        "flexibleVersions": "1+",
        "fields": list(fields),
    }
    document |= more
    return json.dumps({key: value for key, value in document.items() if value is not ...})


def of(field: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {key: value for key, value in (field | more).items() if value is not ...}


def problems(source: str | Path) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load(source)
    return str(caught.value).splitlines()


def the_field(source: str) -> Field:
    return load(source).fields[0]


# -- the file


def test_a_spec_is_read_from_a_path_its_text_or_its_name(tmp_path: Path) -> None:
    path = tmp_path / "FooRequest.json"
    path.write_text(text(INT), encoding="utf-8")
    assert load(path) == load(str(path)) == load(text(INT))


def test_a_problem_names_the_file_the_field_and_the_rule(tmp_path: Path) -> None:
    path = tmp_path / "FooRequest.json"
    row = {"name": "Rows", "type": "[]Row", "versions": "0+", "fields": [of(INT, name="Id", type="int64x")]}
    path.write_text(text(row), encoding="utf-8")
    assert problems(path) == [
        "FooRequest.json, Rows.Id: 'int64x' is no type: a primitive, a struct's name with a capital, or [] before one"
    ]


def test_all_problems_of_a_file_are_told_at_once() -> None:
    fields = [
        of(INT, colour="red"),
        of(INT, name="B", type="int33"),
        of(INT, name="C", versions="x"),
        of(INT, name="D", nullableVersions="0+"),
        of(INT, name="E", tag=0),
        {"name": "F", "type": "[]Row", "versions": "0+", "fields": [of(TEXT, name="G", default="null")]},
        of(INT, name="A"),
    ]
    assert problems(text(*fields, type="question", validVersions="0+", listeners="nobody")) == [
        "<text>: type must be one of request, response, header, metadata, data, coordinator-key, coordinator-value, "
        "not 'question'",
        "<text>: validVersions 0+ does not specify a maximum version",
        "<text>: listeners belong to requests only",
        "<text>: listener 'nobody' is none of broker, controller, zkBroker",
        "<text>, A: unknown key 'colour'",
        "<text>, B: 'int33' is no type: a primitive, a struct's name with a capital, or [] before one",
        "<text>, C: versions: 'x' is no version range: write none, N, N-M or N+",
        "<text>, C: versions is missing",
        "<text>, D: type int32 cannot be nullable",
        "<text>, E: a tag needs taggedVersions",
        "<text>, F.G: the default is null, but only none of the versions 0+ are nullable",
        "<text>, A: the name is already taken in this struct",
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            b"{",
            "FooRequest.json: not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        ),
        (b'{"a": 1} {}', "FooRequest.json: not JSON: Extra data: line 1 column 10 (char 9)"),
        (b"[]", "FooRequest.json: a spec is one JSON object"),
        (b"7", "FooRequest.json: a spec is one JSON object"),
        (b'{"a": 1, "a": 2}', "FooRequest.json: not JSON: the key 'a' occurs twice in one object"),
        (b'{"a": ' * 50_000, "FooRequest.json: not JSON: nested too deeply"),
    ],
)
def test_a_file_that_holds_no_object_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "FooRequest.json"
    path.write_bytes(content)
    assert problems(path) == [said]


@pytest.mark.parametrize("path", ["no/such/file.json", ".", "a\0b.json"])
def test_a_file_that_cannot_be_read_is_refused(path: str) -> None:
    assert "cannot be read" in problems(path)[0]


def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "FooRequest.json"
    path.write_bytes(b'{"name": "\xff"}')
    assert "cannot be read" in problems(path)[0]


# -- the message


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"colour": "red"}, ": unknown key 'colour'"),
        ({"name": ...}, ": name is missing"),
        ({"name": None}, ": name is missing"),
        ({"name": 7}, ": name must be text, not 7"),
        ({"name": "Foo Request"}, ": the name 'Foo Request' must be letters and digits, a letter first"),
        ({"name": "FooAnswer"}, ": the name of a request must end in Request"),
        ({"type": "response", "name": "FooRequest"}, ": the name of a response must end in Response"),
        ({"type": "Request"}, ": type must be one of request, response, header,"),
        ({"type": ...}, ": type must be one of request, response, header,"),
        ({"validVersions": ...}, ": validVersions is missing"),
        ({"validVersions": "  "}, ": validVersions is missing"),
        ({"validVersions": "0+"}, ": validVersions 0+ does not specify a maximum version"),
        ({"validVersions": "1.5"}, ": validVersions: '1.5' is no version range"),
        ({"validVersions": True}, ": validVersions: True is no version range"),
        ({"flexibleVersions": ...}, ": flexibleVersions is missing: write none or N+"),
        ({"flexibleVersions": "1-2"}, ": flexibleVersions 1-2 must be none or open-ended (N+)"),
        ({"apiKey": ...}, ": a request needs an apiKey"),
        ({"apiKey": None}, ": a request needs an apiKey"),
        ({"apiKey": "x"}, ": apiKey must be a whole number, not 'x'"),
        ({"apiKey": 1.5}, ": apiKey must be a whole number, not 1.5"),
        ({"apiKey": True}, ": apiKey must be a whole number, not True"),
        ({"apiKey": "1_0"}, ": apiKey must be a whole number, not '1_0'"),
        ({"apiKey": 32768}, ": apiKey 32768 is out of range: 0 to 32767"),
        ({"type": "response", "name": "FooResponse", "apiKey": ...}, ": a response needs an apiKey"),
        ({"type": "metadata", "apiKey": ...}, ": a metadata needs an apiKey"),
        ({"type": "coordinator-value", "apiKey": ...}, ": a coordinator-value needs an apiKey"),
        ({"type": "coordinator-key"}, ": a coordinator-key must have validVersions 0 and flexibleVersions none"),
        (
            {"type": "coordinator-key", "validVersions": "0"},
            ": a coordinator-key must have validVersions 0 and flexibleVersions none",
        ),
        ({"type": "data", "listeners": ["broker"]}, ": listeners belong to requests only"),
        ({"listeners": ["broker", "zookeeper"]}, ": listener 'zookeeper' is none of broker, controller, zkBroker"),
        ({"type": "data", "latestVersionUnstable": True}, ": latestVersionUnstable belongs to requests only"),
        ({"latestVersionUnstable": "perhaps"}, ": latestVersionUnstable must be true or false, not 'perhaps'"),
        ({"fields": ["A"]}, ": fields must hold objects, not 'A'"),
        ({"commonStructs": [of(COMMON, name="point")]}, ", commonStructs 'point': a struct's name is letters and"),
        ({"commonStructs": [COMMON, COMMON]}, ", Point: declared twice among the commonStructs"),
        ({"commonStructs": [of(COMMON, versions=...)]}, ", Point: versions is missing"),
        ({"commonStructs": [of(COMMON, about="x")]}, ", Point: unknown key 'about'"),
        ({"commonStructs": [of(COMMON, fields=[of(INT, type="x")])]}, ", Point.A: 'x' is no type"),
        ({"commonStructs": [of(COMMON, name="FooRequest")]}, ", FooRequest: the struct FooRequest has the name of the"),
    ],
)
def test_a_message_that_breaks_a_rule_is_refused(more: dict[str, Any], said: str) -> None:
    found = problems(text(INT, **more))
    assert any(line.startswith(f"<text>{said}") for line in found), found


def test_every_key_of_a_message_is_kept() -> None:
    message = load(
        text(INT, listeners=["broker", "controller"], latestVersionUnstable=True, deprecatedVersions="0-1", apiKey="7")
    )
    assert (message.name, message.type, message.api_key) == ("FooRequest", "request", 7)
    assert (message.valid_versions, message.deprecated_versions) == (Versions(0, 2), Versions(0, 1))
    assert [message.is_flexible(version) for version in (0, 1, 2)] == [False, True, True]
    assert message.listeners == ("broker", "controller")
    assert message.stable_versions == Versions(0, 1)


def test_an_unstable_only_version_leaves_no_stable_one() -> None:
    assert not load(text(INT, validVersions="0", latestVersionUnstable=True)).stable_versions


@pytest.mark.parametrize("kind", ["header", "data"])
def test_headers_and_data_need_no_api_key(kind: str) -> None:
    assert load(text(INT, type=kind, apiKey=...)).api_key == -1


def test_a_retired_api_keeps_its_key_and_has_no_fields() -> None:
    message = load(text(INT, validVersions="none", flexibleVersions=...))
    assert (message.api_key, str(message.valid_versions), message.fields) == (9000, "none", ())


def test_scalars_are_taken_as_text_or_number() -> None:
    loose = of(TAGGED, tag="0", ignorable="true", default=-1, versions=" 0+ ", type=" int32 ")
    strict = of(TAGGED, tag=0, ignorable=True, default="-1")
    assert load(text(loose, validVersions=" 0-2 ", listeners="broker")) == load(text(strict, listeners=["broker"]))
    assert load(text(INT, validVersions=1)).valid_versions == Versions(1, 1)
    assert the_field(text(of(INT, ignorable="false"))).ignorable is False


def test_null_means_that_the_key_is_absent() -> None:
    nothing = of(INT, tag=None, taggedVersions=None, fields=None, nullableVersions=None, default=None, mapKey=None)
    assert load(text(nothing, listeners=None, commonStructs=None)) == load(text(INT))


def test_an_empty_list_says_the_same_as_leaving_the_key_out() -> None:
    """As Kafka's generator takes them, and as Jackson writes its model of a spec: with the fields of every number."""
    nothing = of(INT, fields=[])
    assert load(text(nothing, commonStructs=[])) == load(text(INT))
    assert load(text(nothing, type="data", listeners=[])) == load(text(INT, type="data"))
    common = of(STRUCT, type="Point", fields=...)
    assert load(text(of(common, fields=[]), commonStructs=[COMMON])) == load(text(common, commonStructs=[COMMON]))
    tagged = of(STRUCT, versions=..., fields=[], tag=0, taggedVersions="1+")
    assert str(the_field(text(tagged)).versions) == "1+"


# -- fields


@pytest.mark.parametrize(
    ("field", "said"),
    [
        (of(INT, name=...), ": the name '' must be letters and digits, a letter first"),
        (of(INT, name="a_b"), ", a_b: the name 'a_b' must be letters and digits, a letter first"),
        (of(INT, name="1A"), ", 1A: the name '1A' must be letters and digits, a letter first"),
        (of(INT, name="Ä"), ", Ä: the name 'Ä' must be letters and digits, a letter first"),
        (of(INT, type=...), ", A: type is missing"),
        (of(INT, type="varint"), ", A: 'varint' is no type"),
        (of(INT, type="[][]int32"), ", A: [][]int32: arrays of arrays are not supported"),
        (of(INT, type="[]records"), ", A: []records is not supported"),
        (of(INT, type="[]"), ", A: '[]' is no type"),
        (of(INT, type="point"), ", A: 'point' is no type"),
        (of(INT, fields=POINT), ", A: type int32 cannot have fields"),
        (of(INT, type="[]int32", fields=["A"]), ", A: fields must hold objects, not 'A'"),
        (of(INT, versions=...), ", A: versions is missing"),
        (of(INT, versions=""), ", A: versions is missing"),
        (of(INT, nullableVersions="0+"), ", A: type int32 cannot be nullable"),
        (of(INT, type="bool", nullableVersions="0+"), ", A: type bool cannot be nullable"),
        (of(INT, type="uint32", nullableVersions="0+"), ", A: type uint32 cannot be nullable"),
        (of(INT, type="float64", nullableVersions="0+"), ", A: type float64 cannot be nullable"),
        (of(INT, type="uuid", nullableVersions="0+"), ", A: type uuid cannot be nullable"),
        (of(INT, ignorable=7), ", A: ignorable must be true or false, not 7"),
        (of(INT, mapKey=True), ", A: mapKey is not allowed on a message's own field"),
        (of(INT, zeroCopy=True), ", A: zeroCopy is for bytes only"),
        (of(INT, type="[]bytes", zeroCopy=True), ", A: zeroCopy is for bytes only"),
        (of(INT, about=7), ", A: about must be text, not 7"),
        (of(INT, flexibleVersions="1+"), ", A: flexibleVersions can be overridden only on string and bytes"),
        (of(TEXT, flexibleVersions="0+"), ", A: flexibleVersions 0+ reach outside the message's 1+"),
        (of(INT, entityType="rack"), ", A: entityType 'rack' is none of unknown, transactionalId, groupId, topicName"),
        (of(INT, entityType="topicName"), ", A: entityType topicName is for string, not int32"),
        (of(INT, type="int64", entityType="brokerId"), ", A: entityType brokerId is for int32, not int64"),
        (of(INT, entityType="producerId"), ", A: entityType producerId is for int64, not int32"),
        (of(INT, type="[]int32", entityType="groupId"), ", A: entityType groupId is for string, not int32"),
        # tags
        (of(TAGGED, tag=-1), ", A: tag -1 is negative"),
        (of(TAGGED, tag="one"), ", A: tag must be a whole number, not 'one'"),
        (of(TAGGED, taggedVersions=...), ", A: a tag needs taggedVersions"),
        (of(TAGGED, tag=...), ", A: taggedVersions without a tag"),
        (of(TAGGED, tag=1), ": tags must be contiguous from 0: 0 is missing"),
        (of(TAGGED, taggedVersions="1-2"), ", A: taggedVersions 1-2 must be open-ended (N+)"),
        (of(TAGGED, versions="2+"), ", A: taggedVersions 1+ reach outside versions 2+"),
        (of(TAGGED, taggedVersions="0+"), ", A: taggedVersions 0+ reach outside the flexible versions 1+"),
        (of(TAGGED, type="records"), ", A: records cannot be tagged"),
        (
            of(TAGGED, type="string", nullableVersions="2+"),
            ", A: nullableVersions 2+ cover only some of taggedVersions 1+",
        ),
        (
            of(TAGGED, type="string", flexibleVersions="2+"),
            ", A: taggedVersions 1+ reach outside the flexible versions 2+",
        ),
        # structs
        (of(STRUCT, versions=..., tag=0, taggedVersions="1+"), ", A: versions is missing"),
        (of(STRUCT, fields=[of(INT, mapKey=True, tag=0, taggedVersions="1+")]), ", A.A: mapKey is not allowed on a"),
        (of(STRUCT, fields=[INT, INT]), ", A.A: the name is already taken in this struct"),
        (of(STRUCT, type="FooRequest"), ", A: the struct FooRequest has the name of the message"),
    ],
)
def test_a_field_that_breaks_a_rule_is_refused(field: dict[str, Any], said: str) -> None:
    found = problems(text(field))
    assert any(line.startswith(f"<text>{said}") for line in found), found


@pytest.mark.parametrize(
    "kind", ["bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "uuid", "float64", "string", "bytes"]
)
def test_every_primitive_and_its_array_is_a_type(kind: str) -> None:
    assert str(the_field(text(of(INT, type=kind))).type) == kind
    assert str(the_field(text(of(INT, type=f"[]{kind}"))).type) == f"[]{kind}"


@pytest.mark.parametrize("kind", ["string", "bytes", "records", "[]int32", "[]Point", "Point"])
def test_what_can_be_null_may_be_nullable(kind: str) -> None:
    fields = POINT if "Point" in kind else None
    field = the_field(text(of(INT, type=kind, nullableVersions="1+", fields=fields)))
    assert field.nullable_versions == Versions.parse("1+")


def test_every_key_of_a_field_is_kept() -> None:
    field = the_field(
        text(of(TAGGED, type="bytes", nullableVersions="0+", ignorable=True, zeroCopy=True, about="What it is."))
    )
    assert (field.name, str(field.type), field.tag) == ("A", "bytes", 0)
    assert (str(field.versions), str(field.tagged_versions), str(field.nullable_versions)) == ("0+", "1+", "0+")
    assert (field.ignorable, field.zero_copy, field.map_key, field.about) == (True, True, False, "What it is.")
    assert [field.is_tagged(version) for version in (0, 1, 2)] == [False, True, True]


def test_a_tagged_field_exists_where_it_is_tagged_unless_it_says_more() -> None:
    assert str(the_field(text(of(TAGGED, versions=...))).versions) == "1+"
    assert str(the_field(text(TAGGED)).versions) == "0+"


def test_tags_are_contiguous_over_all_versions_of_a_struct() -> None:
    fields = [of(TAGGED, name="A", tag=1, versions="2+", taggedVersions="2+"), of(TAGGED, name="B", tag=0)]
    assert [field.tag for field in load(text(*fields)).fields] == [1, 0]
    assert problems(text(of(TAGGED, tag=0), of(TAGGED, name="B", tag=2))) == [
        "<text>: tags must be contiguous from 0: 1 is missing"
    ]
    assert problems(text(of(TAGGED, tag=0), of(TAGGED, name="B", tag=0))) == ["<text>, B: tag 0 is already taken by A"]


def test_a_client_id_may_stay_plain_in_a_flexible_version() -> None:
    assert the_field(text(of(TEXT, flexibleVersions="none"))).flexible_versions == Versions.parse("none")
    assert the_field(text(TEXT)).flexible_versions is None


def test_blank_flexible_versions_of_a_field_are_the_messages() -> None:
    """Read as none, they would take a string out of the compact form: other bytes than Kafka's."""
    assert load(text(of(TEXT, flexibleVersions=""), of(INT, name="B", flexibleVersions=" "))) == load(
        text(TEXT, of(INT, name="B"))
    )


def test_entity_types_are_checked_by_element() -> None:
    assert the_field(text(of(INT, type="[]string", entityType="topicName"))).entity_type == "topicName"
    assert the_field(text(of(INT, entityType="unknown"))).entity_type == "unknown"


def test_two_names_with_one_json_key_are_refused() -> None:
    """In Kafka's generated classes they would be one field; here the JSON form would lose one of the two."""
    assert problems(text(of(INT, name="AB"), of(INT, name="aB"))) == [
        "<text>, aB: the JSON key aB is already taken in this struct"
    ]


def test_two_names_with_one_attribute_are_refused() -> None:
    assert problems(text(of(INT, name="FooBar"), of(INT, name="fooBar"))) == [
        "<text>, fooBar: the attribute foo_bar is already taken in this struct"
    ]


# -- structs


def structs_of(message: Message) -> dict[str, list[str]]:
    return {struct.name: [field.name for field in struct.fields] for struct in message.structs}


def test_a_struct_comes_after_the_structs_that_it_holds() -> None:
    inner = of(STRUCT, name="Inner", type="Inner")
    outer = {"name": "Outer", "type": "[]Outer", "versions": "0+", "fields": [inner]}
    assert structs_of(load(text(outer))) == {"Inner": ["X"], "Outer": ["Inner"]}


def test_a_nested_struct_exists_where_its_field_does() -> None:
    inner = of(STRUCT, name="Inner", type="Inner", versions="0-1")
    outer = {"name": "Outer", "type": "Outer", "versions": "1+", "fields": [inner]}
    assert {struct.name: str(struct.versions) for struct in load(text(outer)).structs} == {"Inner": "1", "Outer": "1-2"}


def test_a_common_struct_is_shared_and_listed_once() -> None:
    fields = [of(STRUCT, fields=...), of(STRUCT, name="B", type="[]Point", fields=...)]
    message = load(text(*fields, commonStructs=[COMMON]))
    assert structs_of(message) == {"Point": ["X"]}
    assert message.fields[0].struct is message.fields[1].struct


def test_common_structs_may_hold_common_structs() -> None:
    line = {"name": "Line", "versions": "0+", "fields": [of(STRUCT, name="From", fields=...)]}
    message = load(text(of(STRUCT, type="Line", fields=...), commonStructs=[line, COMMON]))
    assert structs_of(message) == {"Point": ["X"], "Line": ["From"]}


def test_a_common_struct_that_no_field_uses_is_checked_and_left_out() -> None:
    assert load(text(INT, commonStructs=[COMMON])).structs == ()
    assert problems(text(INT, commonStructs=[of(COMMON, fields=[of(INT, type="x")])])) != []


def test_a_field_of_a_common_struct_gives_no_fields_of_its_own() -> None:
    assert problems(text(STRUCT, commonStructs=[COMMON])) == [
        "<text>, A: Point is a common struct: the field must not give fields of its own"
    ]


def test_a_struct_is_declared_once_even_if_identical() -> None:
    assert problems(text(STRUCT, of(STRUCT, name="B"))) == [
        "<text>, B: the struct Point is declared twice: use commonStructs to share it"
    ]


def test_a_capital_type_without_fields_is_an_empty_struct() -> None:
    assert structs_of(load(text(of(INT, type="Nothing")))) == {"Nothing": []}


def test_a_struct_may_not_contain_itself() -> None:
    line = {"name": "Line", "versions": "0+", "fields": [of(STRUCT, type="[]Line", fields=...)]}
    assert problems(text(of(STRUCT, type="Line", fields=...), commonStructs=[line])) == [
        "<text>, Line.A: the struct Line contains itself"
    ]


def test_a_nested_struct_may_not_take_the_name_of_one_around_it() -> None:
    inner = of(STRUCT, name="Inner", type="Outer")
    assert problems(text({"name": "A", "type": "Outer", "versions": "0+", "fields": [inner]})) == [
        "<text>, A.Inner: the struct Outer is declared twice: use commonStructs to share it"
    ]


def test_a_map_key_belongs_to_the_fields_of_a_struct() -> None:
    message = load(text(of(STRUCT, type="[]Point", fields=[of(INT, mapKey=True)])))
    assert message.structs[0].fields[0].map_key


def test_structs_nested_beyond_reason_are_refused() -> None:
    field = INT
    for level in range(80):
        field = {"name": "A", "type": f"S{level}", "versions": "0+", "fields": [field]}
    assert problems(text(field)) == [f"<text>, {'A.' * 60}A: structs are nested more than 60 deep"]


def test_common_structs_that_each_use_the_next_one_twice_are_refused_before_they_are_too_many() -> None:
    def twice(struct: str) -> list[dict[str, Any]]:
        return [{"name": name, "type": struct, "versions": "0+"} for name in "AB"]

    common = [{"name": f"S{level}", "versions": "0+", "fields": twice(f"S{level + 1}")} for level in range(50)]
    common.append({"name": "S50", "versions": "0+", "fields": [INT]})
    field = {"name": "A", "type": "S0", "versions": "0+"}
    innermost, *others = problems(text(field, commonStructs=common))
    assert re.fullmatch(r"<text>, \S+: the struct S37 uses others in more than 10,000 places", innermost)
    assert len(others) < 5
    message = load(text(field | {"type": "S38"}, commonStructs=common[38:]))
    assert message.root.places == 2**13


def test_a_field_is_compared_with_as_few_others_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counted(str):
        compared = 0
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            Counted.compared += 1
            return str.__eq__(self, other)

    monkeypatch.setattr("tagwire.spec.parse.snake_case", lambda name: Counted(name.lower()))
    fields = [{"name": f"Field{number}", "type": "int8", "versions": "0+"} for number in range(300)]
    assert len(load(text(*fields)).root.fields) == 300
    assert Counted.compared < 300
