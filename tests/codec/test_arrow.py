"""Messages as Arrow columns: the values of the objects, and the errors of decoding to objects."""

from __future__ import annotations

import gzip
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire import message_class, messages
from tagwire.codec import Field, MessageObject, Schema, Structure
from tagwire.codec.arrow import decode_many, schema_of, to_arrow
from tagwire.errors import ConfigError, DecodeError, UnsupportedVersionError

from . import generated
from .generated import examples

VECTORS = Path(__file__).parents[1] / "vectors"
with gzip.open(VECTORS / "messages.jsonl.gz", "rt", encoding="utf-8") as file:
    WRITTEN = [line for line in map(json.loads, file) if "hex" in line]

METADATA = messages.MetadataResponse
TOPIC, PARTITION = METADATA.MetadataResponseTopic, METADATA.MetadataResponsePartition
EXAMPLE = METADATA(
    cluster_id="c",
    brokers=[METADATA.MetadataResponseBroker(node_id=1, host="höst", port=9092, rack=None)],
    topics=[
        TOPIC(name="a", topic_id=UUID(int=5), partitions=[PARTITION(partition_index=i, replica_nodes=[1, 2, 3])])
        for i in range(3)
    ],
)
GOOD = EXAMPLE.encode(13)


def class_of(line: dict[str, Any]) -> type[MessageObject]:
    if line["module"] == "clients-test":
        return message_class(VECTORS / "specs" / f"{line['message']}.json")
    return getattr(messages, line["message"])  # type: ignore[no-any-return]


def plain(value: Any, kind: pa.DataType) -> Any:
    """A value of an object as Arrow gives it."""
    if isinstance(value, Structure):
        return {field.name: plain(getattr(value, field.name), field.type) for field in kind}
    if isinstance(value, list):
        return [plain(item, kind.value_type) for item in value]
    if isinstance(value, UUID):
        return value.bytes
    return bytes(value) if isinstance(value, memoryview) else value


def same(one: Any, other: Any) -> bool:
    """Whether two plain values are equal, NaN with NaN."""
    if isinstance(one, dict):
        return isinstance(other, dict) and list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and math.isnan(one):
        return isinstance(other, float) and math.isnan(other)
    return type(one) is type(other) and bool(one == other)


def refusal(cls: type[MessageObject], data: bytes, version: int, *, lenient: bool = False) -> str | None:
    try:
        cls.decode(data, version, lenient=lenient)
    except DecodeError as error:
        return str(error)
    return None


def column(*rows: bytes | None) -> pa.Array:
    return pa.array(rows, pa.binary())


def agrees(cls: type[MessageObject], rows: list[bytes], version: int, *, lenient: bool = False) -> None:
    """Every row has the values, or the error's text, that decoding it to an object gives."""
    read = decode_many(cls, column(*rows), version, errors="column", lenient=lenient)
    read.validate(full=True)
    for row, found in zip(rows, read.to_pylist()):
        error = refusal(cls, row, version, lenient=lenient)
        assert found["error"] == error, row.hex()
        if error is None:
            message = cls.decode(row, version, lenient=lenient)
            assert same(found["value"], plain(message, schema_of(cls, version))), row.hex()
        else:
            assert found["value"] is None


def test_every_message_has_the_values_of_its_object() -> None:
    different = []
    for line in WRITTEN:
        cls, data = class_of(line), bytes.fromhex(line["hex"])
        read = to_arrow(cls, data, line["version"])
        read.validate(full=True)
        values = plain(cls.decode(data, line["version"]), read.type)
        if len(read) != 1 or read.null_count or not same(read[0].as_py(), values):
            different.append(f"{line['message']} v{line['version']} {line['variant']}")
    assert different == []


def test_a_column_of_all_variants_of_a_message_has_each_in_its_row() -> None:
    groups: dict[tuple[Any, int], list[bytes]] = {}
    for line in WRITTEN:
        groups.setdefault((class_of(line), line["version"]), []).append(bytes.fromhex(line["hex"]))
    for (cls, version), rows in groups.items():
        read = decode_many(cls, column(*rows, b"", *rows), version, errors="column")
        read.validate(full=True)
        values, errors = read.field("value").to_pylist(), read.field("error").to_pylist()
        wanted = [plain(cls.decode(row, version), schema_of(cls, version)) for row in rows]
        assert errors == [None] * len(rows) + [refusal(cls, b"", version)] + [None] * len(rows)
        empty = None if errors[len(rows)] else plain(cls.decode(b"", version), schema_of(cls, version))
        assert same(values, [*wanted, empty, *wanted])


def test_the_type_has_the_fields_of_the_version_in_the_order_of_the_class() -> None:
    kind = schema_of(METADATA, 13)
    assert kind == schema_of(EXAMPLE, 13) == to_arrow(METADATA, GOOD, 13).type
    assert [field.name for field in kind] == [
        "throttle_time_ms", "brokers", "cluster_id", "controller_id", "topics", "error_code",
    ]  # fmt: skip
    topic = kind.field("topics").type.value_type
    assert topic.field("topic_id") == pa.field("topic_id", pa.binary(16), nullable=False)
    assert topic.field("name") == pa.field("name", pa.string())
    assert schema_of(METADATA, 0).field("topics").type.value_type.field("name").nullable is False
    assert [field.name for field in schema_of(METADATA, 0)] == ["brokers", "topics"]


def test_every_primitive_has_its_arrow_type() -> None:
    kinds = {
        "bool": pa.bool_(), "int8": pa.int8(), "int16": pa.int16(), "uint16": pa.uint16(), "int32": pa.int32(),
        "uint32": pa.uint32(), "int64": pa.int64(), "float64": pa.float64(), "uuid": pa.binary(16),
        "string": pa.string(), "bytes": pa.binary(), "records": pa.binary(),
    }  # fmt: skip
    schema = Schema(*(Field(f"f_{kind}", kind) for kind in kinds), name="All")
    kind = schema_of(schema.message_class, 0)
    assert {field.name[2:]: field.type for field in kind} == kinds


def test_the_extremes_of_every_number_are_kept() -> None:
    bits = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
    names = [*bits, "uint16", "uint32", "float64", "bool"]
    schema = Schema(*(Field(f"f_{name}", name) for name in names), name="Numbers")
    low = {f"f_{name}": -(1 << size - 1) for name, size in bits.items()}
    high = {f"f_{name}": (1 << size - 1) - 1 for name, size in bits.items()}
    low |= {"f_uint16": 0, "f_uint32": 0, "f_float64": -math.inf, "f_bool": False}
    high |= {"f_uint16": 65535, "f_uint32": (1 << 32) - 1, "f_float64": 5e-324, "f_bool": True}
    rows = [schema(**values).encode(0) for values in (low, high, low)]
    assert decode_many(schema.message_class, column(*rows), 0).to_pylist() == [low, high, low]


def test_optional_fields_have_their_values_or_defaults() -> None:
    inner = Schema(Field("x", "int8"), optional_fields={3: Field("y", "string", default="why")}, name="Inner")
    schema = Schema(
        Field("name", "string"),
        optional_fields={
            0: Field("n", "int64", default=-7),
            1: Field("text", "string", nullable=True),
            2: Field("inner", inner),
            5: Field("flag", "bool", default=True),
            6: Field("id", "uuid", default=UUID(int=9)),
            9: Field("many", "[]int16"),
        },
        name="Optional",
    )
    rows = [schema(name="a"), schema(name="b", n=1, text="t", flag=False, id=UUID(int=1), many=[1, 2])]
    rows.append(schema(name="c", inner=inner.message_class and schema.message_class.Inner(x=4, y="z")))
    encoded = [row.encode(0) for row in rows]
    agrees(schema.message_class, [*encoded, *(row[:-1] for row in encoded)], 0)
    agrees(schema.message_class, [data[:cut] for data in encoded for cut in range(len(data))], 0)


@pytest.mark.parametrize("version", [0, 4])
def test_text_of_any_length_is_read_as_it_was_written_and_refused_where_it_is_no_utf_8(version: int) -> None:
    texts = [text for size in range(80) for text in ("x" * size, "x" * size + "é", "é" + "y" * size)]
    request = messages.HeartbeatRequest
    rows = [request(group_id=text, generation_id=1, member_id=text[::-1]).encode(version) for text in texts]
    read = decode_many(request, column(*rows), version)
    read.validate(full=True)
    assert read.field("group_id").to_pylist() == texts
    assert read.field("member_id").to_pylist() == [text[::-1] for text in texts]
    for at in range(1, 40):
        bad = rows[3 * 40].replace(b"x" * 40, b"x" * at + b"\xff" + b"x" * (39 - at))
        told = decode_many(request, column(rows[0], bad, rows[-1]), version, errors="column")
        assert told.field("error").to_pylist() == [None, refusal(request, bad, version), None]
        assert told.field("value").field("group_id")[2].as_py() == texts[-1]


def test_null_rows_stay_null() -> None:
    read = decode_many(METADATA, column(None, GOOD, None), 13)
    read.validate(full=True)
    assert [row is None for row in read.to_pylist()] == [True, False, True]
    assert same(read[1].as_py(), to_arrow(METADATA, GOOD, 13)[0].as_py())
    with_errors = decode_many(METADATA, column(None, GOOD, None), 13, errors="column")
    assert with_errors.field("error").null_count == 3
    assert with_errors.field("value").null_count == 2


@pytest.mark.parametrize("empty", [column(), pa.chunked_array([], pa.binary()), pa.array([], pa.large_binary())])
def test_an_empty_column_gives_no_rows_of_the_type(empty: Any) -> None:
    read = decode_many(METADATA, empty, 13)
    assert (len(read), read.type) == (0, schema_of(METADATA, 13))
    assert decode_many(METADATA, empty, 13, errors="column").type.field("value").type == schema_of(METADATA, 13)


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()])
def test_every_kind_of_binary_column_is_read(kind: pa.DataType) -> None:
    rows = pa.array([b"skipped", GOOD, None, GOOD], kind)[1:]
    expected = to_arrow(METADATA, GOOD, 13)[0].as_py()
    assert decode_many(METADATA, rows, 13).to_pylist() == [expected, None, expected]


def test_the_chunks_of_a_column_become_one_array() -> None:
    chunks = pa.chunked_array([column(GOOD, None), column(), column(b"\x00", GOOD)])
    read = decode_many(METADATA, chunks, 13, errors="column")
    assert [row is None for row in read.field("value").to_pylist()] == [False, True, True, False]
    assert read.field("error").to_pylist() == [None, None, refusal(METADATA, b"\x00", 13), None]
    with pytest.raises(DecodeError, match=r"^row 2, MetadataResponse v13"):
        decode_many(METADATA, chunks, 13)


def test_a_bad_row_is_named_when_it_raises() -> None:
    with pytest.raises(DecodeError) as raised:
        decode_many(METADATA, column(GOOD, None, GOOD[:-1]), 13)
    assert str(raised.value) == f"row 2, {refusal(METADATA, GOOD[:-1], 13)}"
    assert raised.value.offset == len(GOOD) - 1


def test_one_message_that_is_bad_raises_what_decoding_it_raises() -> None:
    with pytest.raises(DecodeError) as raised:
        to_arrow(METADATA, GOOD + b"\x00", 13)
    assert str(raised.value) == refusal(METADATA, GOOD + b"\x00", 13)


def test_a_message_cut_at_any_byte_is_refused_and_its_neighbours_stand() -> None:
    cut = [GOOD[:at] for at in range(len(GOOD))]
    rows = [row for one in cut for row in (one, GOOD)]
    read = decode_many(METADATA, column(*rows), 13, errors="column")
    read.validate(full=True)
    expected = to_arrow(METADATA, GOOD, 13)[0].as_py()
    assert read.field("value").to_pylist() == [None, expected] * len(cut)
    assert read.field("error").to_pylist() == [text for one in cut for text in (refusal(METADATA, one, 13), None)]


@pytest.mark.parametrize("lenient", [False, True])
def test_every_message_with_a_byte_changed_reads_as_its_object_does(lenient: bool) -> None:
    groups: dict[tuple[Any, int], list[bytes]] = {}
    for number, line in enumerate(WRITTEN):
        data = bytes.fromhex(line["hex"])
        rows = groups.setdefault((class_of(line), line["version"]), [])
        for at in range(number % 7, min(len(data), 200), 7):
            byte = (0x00, 0x01, 0x02, 0x7F, 0x80, 0xFF)[(at + number) % 6]
            rows.append(data[:at] + bytes([byte]) + data[at + 1 :])
    for (cls, version), rows in groups.items():
        agrees(cls, rows, version, lenient=lenient)


@given(data=st.binary(max_size=60), version=st.sampled_from([0, 1, 3, 4]), lenient=st.booleans())
def test_any_bytes_read_as_their_object_does(data: bytes, version: int, lenient: bool) -> None:
    agrees(messages.ApiVersionsResponse, [data], version, lenient=lenient)


@examples(60)
@given(st.data())
def test_columns_of_any_spec_have_the_values_of_their_objects(data: st.DataObject) -> None:
    cls = generated.class_of(data.draw(generated.documents(), label="spec"))
    version = data.draw(st.sampled_from(list(cls.valid_versions)), label="version")
    written = data.draw(generated.objects(cls.spec.root, version, cls), label="message").encode(version)
    at = data.draw(st.integers(0, len(written)), label="at")
    rows = [written, written[:at], written[:at] + b"\xff" + written[at + 1 :], written]
    for lenient in (False, True):
        agrees(cls, rows, version, lenient=lenient)


def test_the_quirks_of_the_java_reader_hold_when_lenient() -> None:
    head = bytes.fromhex("0000 01 00000000")
    whole = EXAMPLE.encode(13)
    spoilt = [("no UTF-8", b"h\xff\xc3st"), ("half a surrogate pair", b"h\xed\xa0\x80t")]
    of_versions = {
        "a tag twice": "02 0108 0000000000000005 0108 0000000000000006",
        "descending tags": "02 030101 0108 0000000000000006",
        "a size that lies": "01 0109 0000000000000005",
        "a negative count of tags": "ffffffff0f",
        "bytes that follow": "00 6d6f7265",
    }
    cases = [(what, head + bytes.fromhex(text), messages.ApiVersionsResponse, 3) for what, text in of_versions.items()]
    cases += [(what, whole.replace("höst".encode(), text), METADATA, 13) for what, text in spoilt]
    for what, data, cls, version in cases:
        assert refusal(cls, data, version) is not None, what
        assert refusal(cls, data, version, lenient=True) is None, what
        agrees(cls, [data, data], version)
        agrees(cls, [data, data], version, lenient=True)


def test_unknown_tags_are_checked_and_passed_over() -> None:
    head = bytes.fromhex("00000100000000")
    rows = [head + bytes.fromhex(tags) for tags in ("016302abcd", "016303abcd", "0263006300")]
    agrees(messages.ApiVersionsResponse, rows, 3)


def test_columns_out_of_proportion_to_their_bytes_are_refused() -> None:
    wide = Schema(optional_fields={tag: Field(f"f{tag}", "uuid") for tag in range(60)}, name="Wide")
    schema = Schema(Field("many", [wide]), name="Hostile", optional_fields={})
    hostile = (40_000).to_bytes(4, "big") + bytes(40_000)
    data = b"\x00" + hostile
    read = decode_many(schema.message_class, column(data, schema().encode(0)), 0, errors="column")
    assert read.field("error").to_pylist()[1] is None
    assert "takes more than 64 times the memory of its bytes" in read.field("error").to_pylist()[0]
    assert read.field("value").to_pylist() == [None, {"many": []}]


def test_what_is_no_column_of_messages_is_refused() -> None:
    with pytest.raises(ConfigError, match="int64, not binary"):
        decode_many(METADATA, pa.array([1]), 13)
    with pytest.raises(ConfigError, match="errors is 'ignore'"):
        decode_many(METADATA, column(GOOD), 13, errors="ignore")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedVersionError):
        to_arrow(METADATA, GOOD, 99)


def test_offsets_that_lead_out_of_the_column_are_refused() -> None:
    ends = pa.array([0, 500, 9], pa.int32()).buffers()[1]
    lying = pa.Array.from_buffers(pa.binary(), 2, [None, ends, pa.py_buffer(GOOD[:9])])
    with pytest.raises(DecodeError, match="row 0: its offsets 0 and 500"):
        decode_many(METADATA, lying, 13, errors="column", lenient=True)


def test_the_methods_of_a_class_give_the_same() -> None:
    assert METADATA.to_arrow(GOOD, 13).equals(to_arrow(METADATA, GOOD, 13))
    assert METADATA.decode_many(column(GOOD, b""), 13, errors="column").equals(
        decode_many(METADATA, column(GOOD, b""), 13, errors="column")
    )


@pytest.mark.parametrize(
    "make", [bytearray, memoryview, lambda data: memoryview(b"".join(bytes([b, 0]) for b in data))[::2]]
)
def test_any_buffer_of_bytes_is_read(make: Any) -> None:
    assert to_arrow(METADATA, make(GOOD), 13).equals(to_arrow(METADATA, GOOD, 13))


def test_pyarrow_is_imported_when_columns_are_asked_for_and_not_before() -> None:
    code = (
        "import sys; from tagwire import messages; x = messages.FetchRequest(); d = x.encode(12);"
        "assert 'pyarrow' not in sys.modules; print(len(type(x).to_arrow(d, 12))); assert 'pyarrow' in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
