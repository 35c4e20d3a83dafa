"""Texts of `.proto` files compile in a process of their own: whatever they are, an error says where and why."""

from __future__ import annotations

import base64
import re
import time
from pathlib import Path

import pyarrow as pa
import pytest

from tagwire.errors import TagwireError, ValueSchemaError
from tagwire.values.protobuf.compiling import MAX_TEXT
from tagwire.values.protobuf.descriptors import file_of
from tagwire.values.schemas import AVRO, PROTOBUF, Schema

from .protobuf_schemas import FORMAT, decoded, message_class, proto, proto2, proto3


def refusal(schema: Schema) -> str:
    with pytest.raises(ValueSchemaError) as caught:
        FORMAT.reader_schema(schema)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_schema_is_understood_with_what_it_imports() -> None:
    schema = proto(
        'syntax = "proto3"; import "other.proto"; import "google/protobuf/timestamp.proto"; '
        'import "google/type/date.proto"; '
        "message M { o.Other other = 1; google.protobuf.Timestamp t = 2; google.type.Date d = 3; }",
        other='syntax = "proto2"; package o; message Other { optional int32 x = 1; }',
    )
    assert [field.name for field in FORMAT.reader_schema(schema).type] == ["other", "t", "d"]


def test_an_error_tells_line_column_and_reason_and_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    wrong = proto('syntax = "proto3";\nmessage M {\n  int32 x = ;\n}')
    assert refusal(wrong) == "the schema does not compile: line 3, column 13: Expected field number."
    elsewhere = proto('syntax = "proto3"; import "other.proto"; message M { int32 x = 1; }', other="message {")
    assert "'other.proto', line 1, column 9" in refusal(elsewhere)
    missing = proto('syntax = "proto3"; import "nowhere.proto"; message M { int32 x = 1; }')
    assert 'line 1, column 20: Import "nowhere.proto" was not found' in refusal(missing)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "/etc/passwd",
        "a/../../b.proto",
        "a//b.proto",
        "",
        "-Iother",
        "a\nb.proto",
        "a\0b",
        "x" * 300,
    ],
)
def test_a_reference_whose_name_is_no_plain_path_is_refused(name: str) -> None:
    text = 'syntax = "proto3"; message M { int32 x = 1; }'
    assert "a reference is named" in refusal(Schema(text, PROTOBUF, ((name, proto(text)),)))


def test_a_file_of_the_machine_cannot_be_imported() -> None:
    for name in ("../../etc/passwd", "/etc/passwd", "google/type/../../../../etc/passwd"):
        told = refusal(proto(f'syntax = "proto3"; import "{name}"; message M {{ int32 x = 1; }}'))
        assert "root:" not in told


def test_what_a_schema_refers_to_is_not_run_as_python(tmp_path: Path) -> None:
    planted = f"open({str(tmp_path / 'was_run')!r}, 'w')"
    text = 'syntax = "proto3"; message M { int32 x = 1; }'
    names = ("grpc_tools.py", "resource.py", "os.py", "grpc_tools/__init__.py")
    for name in names:
        FORMAT.reader_schema(Schema(text, PROTOBUF, ((name, Schema(planted, PROTOBUF)),)))
    assert list(tmp_path.iterdir()) == []


def test_what_refers_in_a_circle_or_twice_to_different_texts_is_refused() -> None:
    circle = proto(
        'syntax = "proto3"; import "a.proto"; message M { int32 x = 1; }',
        a='syntax = "proto3"; import "b.proto";',
        b='syntax = "proto3"; import "a.proto";',
    )
    assert "imports itself" in refusal(circle) or "recursively" in refusal(circle)
    one, other = proto('syntax = "proto3"; message A {}'), proto('syntax = "proto3"; message B {}')
    twice = Schema("x", PROTOBUF, (("a.proto", one), ("b.proto", Schema("", PROTOBUF, (("a.proto", other),)))))
    assert refusal(twice) == "two different schemas are referred to as 'a.proto'"
    both = Schema("x", PROTOBUF, (("a", one), ("a/b.proto", other)))
    assert refusal(both) == "'a' is referred to as a file and as a directory"


def test_a_huge_or_deep_schema_is_refused_before_it_costs_much() -> None:
    began = time.monotonic()
    assert f"more than {MAX_TEXT} bytes" in refusal(proto3("int32 x = 1;", "//" + "x" * 10_000_000))
    assert "recursion limit" in refusal(proto('syntax = "proto3";' + "message A { int32 x = 1; " * 1000 + "}" * 1000))
    chain = " ".join(f"message A{n} {{ A{n + 1} next = 1; }}" for n in range(1000)) + "message A1000 { int32 x = 1; }"
    assert "more than 60 deep" in refusal(proto3("A0 a = 1;", chain))
    doubling = " ".join(f"message A{n} {{ A{n + 1} a = 1; A{n + 1} b = 2; }}" for n in range(40))
    assert "more than 20000 fields" in refusal(proto3("A0 a = 1;", doubling + "message A40 { int32 x = 1; }"))
    assert "does not compile" in refusal(proto("\0\xff" * 1000))
    assert "no message" in refusal(proto('syntax = "proto3";'))
    assert "is not Protobuf's" in refusal(Schema("{}", AVRO))
    assert time.monotonic() - began < 60


def test_a_message_of_ten_thousand_fields_is_read() -> None:
    schema = proto3(" ".join(f"int32 f{n} = {n + 1};" for n in range(10_000)))
    reader = FORMAT.reader_schema(schema)
    assert reader.type.num_fields == 10_000


def test_what_does_not_compile_is_compiled_once() -> None:
    wrong = proto("this is no schema, once")
    first = refusal(wrong)
    began = time.process_time()
    assert [refusal(wrong) for _ in range(100)] == [first] * 100
    assert time.process_time() - began < 1


def test_a_serialized_descriptor_is_read_as_its_text_is() -> None:
    inner = proto('syntax = "proto3"; package o; message Other { int32 x = 1; }')
    schema = proto(
        'syntax = "proto3"; package t; import "o.proto"; import "google/protobuf/timestamp.proto"; '
        "message M { o.Other o = 1; google.protobuf.Timestamp t = 2; }",
        o=inner.text,
    )
    serialized = Schema(_serialized(schema), PROTOBUF, (("o.proto", Schema(_serialized(inner), PROTOBUF)),))
    assert FORMAT.reader_schema(serialized, "t.M").type == FORMAT.reader_schema(schema, "t.M").type
    body = message_class(schema)(o={"x": 5}).SerializeToString()
    assert message_class(serialized)(o={"x": 5}).SerializeToString() == body
    assert "imports 'o.proto', which the schema does not refer to" in refusal(Schema(_serialized(schema), PROTOBUF))


def test_what_confluents_registry_has_imported_without_a_reference_is_known() -> None:
    text = """
        syntax = "proto3"; package t; import "confluent/meta.proto"; import "confluent/type/decimal.proto";
        message M {
            int32 a = 1 [(confluent.field_meta) = {params: [{key: "connect.type", value: "int16"}]}];
            confluent.type.Decimal d = 2;
        }
    """
    decimal = {"value": b"\x01", "precision": 3, "scale": 2}
    for schema in (proto(text), Schema(_serialized(proto(text)), PROTOBUF)):
        body = message_class(schema)(a=5, d=decimal).SerializeToString()
        assert decoded(schema, body) == [{"a": 5, "d": decimal}]


def _serialized(schema: Schema) -> str:
    return base64.b64encode(file_of(schema).serialized_pb).decode()


def test_message_indexes_name_a_message_and_do_not_count_what_protoc_makes_up_for_maps() -> None:
    schema = proto3(
        "map<string, int32> m = 1; message A { message B { int32 y = 1; } } message C { int32 z = 1; }",
        "message N { int32 x = 1; }",
    )
    indexes = {name: FORMAT.message_indexes(schema, name) for name in ("t.M", "t.M.A", "t.M.A.B", "t.M.C", "t.N")}
    assert indexes == {"t.M": (0,), "t.M.A": (0, 0), "t.M.A.B": (0, 0, 0), "t.M.C": (0, 1), "t.N": (1,)}
    reader = FORMAT.reader_schema(schema, "t.M.C")
    assert reader.decoder(schema, None, (0, 1)) == reader.decoder(schema)
    assert reader.decoder(schema, None, (0, 2)) == reader.decoder(schema)  # by descriptors, as Python's client counts
    for wrong, why in (
        ((0,), "the value is a t.M"),
        ((5,), "no message at the indexes"),
        ((0, 0, 0, 0), "no message at"),
    ):
        with pytest.raises(ValueSchemaError, match=why):
            reader.decoder(schema, None, wrong)
    with pytest.raises(ValueSchemaError, match=r"has no message 't\.X'; it has t\.M, t\.N"):
        FORMAT.message_indexes(schema, "t.X")


_SPELLED_OUT = """
    syntax = "proto3"; package t;
    message M {
        repeated .t.M.AttrsEntry attrs = 1;
        repeated LongNamesEntry long_names = 2; // option map_entry = true;
        message AttrsEntry { option map_entry = true; string key = 1; int32 value = 2; }
        message LongNamesEntry { option map_entry=true ; int64 key = 1; Line value = 2; }
        message Line { int32 n = 1; }
    }
"""


def test_maps_that_a_schema_spells_out_as_entries_are_maps_and_their_entries_count_among_its_messages() -> None:
    plain = proto3("map<string, int32> attrs = 1; map<int64, Line> long_names = 2; message Line { int32 n = 1; }")
    row = {"attrs": {"a": 1}, "long_names": {5: {"n": 7}}}
    body = message_class(plain)(**row).SerializeToString()
    expected = [{"attrs": [("a", 1)], "long_names": [(5, {"n": 7})]}]
    text = proto(_SPELLED_OUT)
    serialized = Schema(base64.b64encode(file_of(plain).serialized_pb).decode(), PROTOBUF)
    for schema in (text, serialized, plain):
        assert decoded(schema, body) == expected
        assert FORMAT.reader_schema(schema).type == FORMAT.reader_schema(plain).type
        by_plain = FORMAT.reader_schema(plain).decoder(schema, None, (0,))
        assert by_plain.decode(pa.array([body]))[0].to_pylist() == expected
    assert [FORMAT.message_indexes(each, "t.M.Line") for each in (text, serialized, plain)] == [(0, 2), (0, 2), (0, 0)]
    line = FORMAT.reader_schema(text, "t.M.Line")
    assert line.decoder(text, None, (0, 2)) == line.decoder(text)
    with pytest.raises(ValueSchemaError, match=r"the value is a t\.M\.AttrsEntry"):
        line.decoder(text, None, (0, 0))


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("string key = 1; int32 value = 3;", r"t\.M\.AttrsEntry is said to be the entry of a map \(map_entry\), and"),
        ("bytes key = 1; int32 value = 2;", "is said to be the entry"),
        ("string key = 1; repeated int32 value = 2;", "is said to be the entry"),
    ],
)
def test_what_cannot_be_the_entry_of_a_map_is_refused(wrong: str, why: str) -> None:
    text = _SPELLED_OUT.replace("string key = 1; int32 value = 2;", wrong)
    assert re.search(why, refusal(proto(text)))


def test_an_entry_that_is_used_for_anything_but_its_map_is_refused() -> None:
    single = _SPELLED_OUT.replace("repeated .t.M.AttrsEntry attrs", "AttrsEntry attrs")
    assert "t.M.attrs is of t.M.AttrsEntry, the entry of another field's map" in refusal(proto(single))
    elsewhere = _SPELLED_OUT + "message N { repeated M.AttrsEntry x = 1; }"
    assert "t.N.x is of t.M.AttrsEntry" in refusal(proto(elsewhere))


def test_a_compiler_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tagwire.values.protobuf.compiling.MAX_SECONDS", 1)
    endless = "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1, 9))\nwhile True: pass"
    monkeypatch.setattr("tagwire.values.protobuf.compiling._PROTOC", endless)
    assert "it takes more than 1 s" in refusal(proto2("optional int32 slow = 1;"))


def test_a_compiler_that_cannot_be_run_says_nothing_about_the_schema(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    schema = proto2("optional int32 fine = 1;")
    with monkeypatch.context() as patched:
        patched.setattr("tagwire.values.protobuf.compiling.sys.executable", "/nowhere/python")
        with pytest.raises(TagwireError, match="protoc could not be run") as caught:
            FORMAT.reader_schema(schema)
        assert not isinstance(caught.value, ValueSchemaError)
    with monkeypatch.context() as patched:
        (tmp_path / "grpc_tools.py").write_text("raise ImportError('libstdc++.so.6: not found')")
        patched.setattr("tagwire.values.protobuf.compiling.sys.path", [str(tmp_path)])
        with pytest.raises(TagwireError, match=r"protoc could not be run to compile a schema: libstdc\+\+") as caught:
            FORMAT.reader_schema(schema)
        assert not isinstance(caught.value, ValueSchemaError)
    assert FORMAT.reader_schema(schema).type.num_fields == 1
