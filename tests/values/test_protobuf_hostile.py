"""Bytes that are no message are bad rows, alone, with a reason; nothing panics, hangs or grows without bound."""

from __future__ import annotations

import pickle
import random
import threading
import time

import pyarrow as pa
import pytest

from tagwire.values.protobuf.protobuf_format import ProtobufDecoder

from .protobuf_schemas import FORMAT, decoded, message_class, proto, proto2, proto3

SCHEMA = proto3(
    "int32 x = 1; string s = 2; repeated fixed32 p = 3; N n = 4; repeated N ns = 5; map<string, int32> m = 6;",
    "message N { int32 y = 1; bytes b = 2; }",
)
GOOD = b"\x08\x05"
VALUE = {"x": 5, "s": None, "p": [], "n": None, "ns": [], "m": []}
BAD = {
    "a tag that is cut off": b"\x88",
    "a varint that is cut off": b"\x08\xff\xff",
    "a varint of eleven bytes": b"\x08" + b"\xff" * 10 + b"\x01",
    "field number 0": b"\x00\x01",
    "a tag past 32 bits": b"\x88\x80\x80\x80\x80\x01\x05",
    "a wire type that there is not": b"\x0e",
    "a length beyond the value": b"\x12\x7fabc",
    "a length near 2^64": b"\x12" + b"\xff" * 9 + b"\x01",
    "a length near 2^64 of an unknown field": b"\x7a" + b"\xff" * 9 + b"\x01" + GOOD,
    "a length that wraps to nothing": b"\x7a\xf6\xff\xff\xff\xff\xff\xff\xff\xff\x01" + GOOD,
    "a length of 2 GiB": b"\x12\xff\xff\xff\xff\x07",
    "a string that is not UTF-8": b"\x12\x02\xff\xfe",
    "a surrogate in UTF-8": b"\x12\x03\xed\xa0\x80",
    "packed numbers that do not come out even": b"\x1a\x05abcde",
    "a message that is cut off": b"\x22\x02\x12\x05",
    "a group that is not closed": b"\x7b\x08\x01",
    "a group that is closed by another": b"\x7b\x84\x01",
    "a group that was not opened": b"\x7c",
    "groups a thousand deep": b"\x7b" * 1000 + b"\x7c" * 1000,
    "a key that is not UTF-8": b"\x32\x03\x0a\x01\xff",
    "text": b'{"x": 5}',
}


@pytest.mark.parametrize("name", BAD)
def test_a_broken_value_is_bad_alone_and_has_a_reason(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    rows = decoded(SCHEMA, *[GOOD] * 20, BAD[name], *[GOOD] * 20, None)
    assert rows == [VALUE] * 20 + ["bad"] + [VALUE] * 20 + [None]
    reason = FORMAT.reader_schema(SCHEMA).decoder(SCHEMA).refusal(BAD[name])
    assert reason.startswith("the bytes are no t.M: ")
    assert "\n" not in reason
    assert capfd.readouterr() == ("", "")


def test_messages_whose_names_differ_in_a_dot_alone_are_judged_each_by_itself() -> None:
    inner = "message A { message B { repeated fixed32 p = 1; } }"
    schema = proto(f'syntax = "proto3"; package t; {inner} message A_B {{ bytes p = 1; }}')
    broken = b"\x0a\x05abcde"
    for name, indexes, bad in (("t.A_B", (1,), False), ("t.A.B", (0, 0), True)):
        decoder = FORMAT.reader_schema(schema, name).decoder(schema, None, indexes)
        assert decoder.decode(pa.array([broken] * 20, pa.binary()))[1].to_pylist() == [bad] * 20


def test_reasons_tell_where() -> None:
    decoder = FORMAT.reader_schema(SCHEMA).decoder(SCHEMA)
    assert decoder.refusal(BAD["a length beyond the value"]) == (
        "the bytes are no t.M: field 2 at byte 0 claims 127 bytes, and 3 are left"
    )
    assert decoder.refusal(BAD["field number 0"]) == "the bytes are no t.M: the tag at byte 0 has no valid field number"
    assert decoder.refusal(GOOD) == "the value can be read"


def test_a_string_of_proto2_that_is_not_utf8_makes_a_value_bad_wherever_it_is() -> None:
    schema = proto2("optional string s = 1; repeated string r = 2; map<string, string> m = 3;")
    for body in (b"\x0a\x01\xff", b"\x12\x01\xff", b"\x1a\x03\x0a\x01\xff", b"\x1a\x03\x12\x01\xff"):
        assert decoded(schema, b"", body)[1] == "bad"
        assert FORMAT.reader_schema(schema).decoder(schema).refusal(body) == "a string is not UTF-8"


def test_what_protobuf_reads_in_its_own_way_is_read_so() -> None:
    written = message_class(SCHEMA)
    twice = written(n={"y": 1}, m={"a": 1}).SerializeToString() + written(n={"b": b"x"}, m={"a": 2}).SerializeToString()
    of_another_wire_type = b"\x0a\x01a" + b"\x10\x07" + GOOD
    unpacked = b"\x1d\x01\x00\x00\x00\x1d\x02\x00\x00\x00"
    entry_of_nothing = b"\x32\x00"
    unknown_group = b"\x7b\x08\x01\x7c" + GOOD
    rows = decoded(SCHEMA, twice, of_another_wire_type, unpacked, entry_of_nothing, unknown_group)
    assert rows == [
        {**VALUE, "x": None, "n": {"y": 1, "b": b"x"}, "m": [("a", 2)]},
        VALUE,
        {**VALUE, "x": None, "p": [1, 2]},
        {**VALUE, "x": None, "m": [("", 0)]},
        VALUE,
    ]


def test_field_numbers_of_any_size_are_read_without_a_table_of_that_size() -> None:
    schema = proto3("int32 x = 536870911; N n = 2;", "message N { string s = 400000000; }")
    row = {"x": 5, "n": {"s": "a"}}
    body = message_class(schema)(**row).SerializeToString()
    assert decoded(schema, body, b"\xff") == [row, "bad"]
    encoder = FORMAT.encoder(schema, FORMAT.reader_schema(schema).type)
    assert encoder.encode(pa.array([row], encoder.columns))[0].to_pylist() == [body]


def test_packed_numbers_and_empty_messages_by_the_million_are_read() -> None:
    schema = proto3("repeated int32 p = 1; repeated N n = 2;", "message N { int32 y = 1; }")
    packed = b"\x0a\x80\x80\x40" + bytes(1 << 20)
    rows = decoded(schema, packed, b"\x12\x00" * 100_000)
    assert (len(rows[0]["p"]), len(rows[1]["n"])) == (1 << 20, 100_000)


def test_a_value_that_would_become_a_gigabyte_of_columns_is_bad_before_it_does() -> None:
    wide = " ".join(f"int64 f{n} = {n + 1};" for n in range(5000))
    schema = proto3("repeated N n = 1; map<int32, N> m = 2; bytes b = 3;", f"message N {{ {wide} }}")
    for element in (b"\x0a\x00", b"\x12\x02\x12\x00"):
        bomb = element * 60_000
        assert decoded(schema, b"", bomb, fields=["b"])[1] == "bad"
        told = FORMAT.reader_schema(schema).decoder(schema).refusal(bomb)
        assert told == f"its {len(bomb)} bytes would become more than 134217728 values in columns"
    harmless = b"\x1a\x80\x80\x40" + bytes(1 << 20)
    assert decoded(schema, harmless, fields=["b"]) == [{"b": bytes(1 << 20)}]


def test_many_bad_values_among_good_ones_cost_little_more_than_looking_at_each() -> None:
    chance = random.Random(5)
    bodies = [chance.choice([GOOD, GOOD, b"\x12\x7f", b"\xff"]) for _ in range(20_000)]
    decoder = FORMAT.reader_schema(SCHEMA).decoder(SCHEMA)
    began = time.process_time()
    _, bad = decoder.decode(pa.array(bodies, pa.binary()))
    assert bad.to_pylist() == [body != GOOD for body in bodies]
    assert time.process_time() - began < 10


def test_columns_of_any_kind_of_bytes_are_read_and_none_gives_an_empty_one() -> None:
    decoder = FORMAT.reader_schema(SCHEMA).decoder(SCHEMA)
    for kind in (pa.binary(), pa.large_binary()):
        bodies = pa.array([b"", None, GOOD, b"\xff", GOOD], kind)
        values, bad = decoder.decode(bodies[1:])
        assert values.to_pylist() == [None, VALUE, None, VALUE]
        assert bad.to_pylist() == [False, False, True, False]
        empty, none = decoder.decode(bodies[:0])
        assert (empty.type, len(empty), none.type, len(none)) == (FORMAT.reader_schema(SCHEMA).type, 0, pa.bool_(), 0)


def test_fields_are_read_in_the_order_that_is_asked_for_and_none_leaves_the_rows() -> None:
    some = decoded(SCHEMA, b"\x12\x01a" + GOOD, None, b"\xff", fields=["s", "x"])
    assert some == [{"s": "a", "x": 5}, None, "bad"]
    assert list(some[0]) == ["s", "x"]
    assert decoded(SCHEMA, GOOD, None, b"\xff", fields=[]) == [{}, None, "bad"]


def test_a_reader_and_its_decoders_are_picklable_and_serve_many_threads() -> None:
    reader = pickle.loads(pickle.dumps(FORMAT.reader_schema(SCHEMA)))
    decoder: ProtobufDecoder = pickle.loads(pickle.dumps(reader.decoder(SCHEMA)))
    bodies = pa.array([GOOD] * 1000 + [b"\xff"], pa.binary())
    found: list[int] = []

    def read() -> None:
        for _ in range(20):
            values, bad = decoder.decode(bodies)
            found.append(len(values) - sum(bad.to_pylist()))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1000] * 80
