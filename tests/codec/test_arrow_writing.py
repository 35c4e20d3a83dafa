"""Arrow columns as messages: the bytes of the objects, and the errors of encoding objects."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire import message_class, messages
from tagwire.codec import MessageObject
from tagwire.codec.arrow import schema_of
from tagwire.codec.arrow_writing import encode_many, object_of
from tagwire.errors import ConfigError, EncodeError, TagwireError, UnsupportedVersionError

from . import generated
from .generated import examples
from .test_arrow import EXAMPLE, METADATA, WRITTEN, class_of

HEARTBEAT = messages.HeartbeatRequest
OPTIONAL = """{"type": "data", "name": "Optional", "validVersions": "0", "flexibleVersions": "none",
  "versionsWithOptional": "0+", "fields": [{"name": "Id", "type": "int8", "versions": "0+"}],
  "optionalFields": [{"name": "Text", "type": "string", "tag": 7}]}"""

NUMBERS = """{"type": "data", "name": "Numbers", "validVersions": "0", "flexibleVersions": "none",
  "fields": [{"name": "Ids", "type": "[]int32", "versions": "0+"}]}"""


def nullable(kind: pa.DataType) -> pa.DataType:
    """The type with nulls allowed everywhere, and wider numbers where Spark has no such."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, nullable(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(nullable(kind.value_type))
    return {pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.binary(16): pa.binary()}.get(kind, kind)


def by_objects(cls: type[MessageObject], row: Any, version: int) -> bytes | str | None:
    """A row written as an object, or why it cannot be."""
    try:
        return None if row is None else object_of(cls, row).encode(version)
    except TagwireError as error:
        return str(error)


def agrees(cls: type[MessageObject], column: pa.Array, version: int) -> None:
    """Columns are written, and refused, as objects are."""
    expected = [by_objects(cls, row, version) for row in column.to_pylist()]
    found = encode_many(cls, column, version, errors="column")
    found.validate(full=True)
    assert [row["error"] or row["value"] for row in found.to_pylist()] == expected
    refused = [number for number, row in enumerate(expected) if isinstance(row, str)]
    if refused:
        with pytest.raises((EncodeError, UnsupportedVersionError)) as caught:
            encode_many(cls, column, version)
        assert str(caught.value) == f"row {refused[0]}: {expected[refused[0]]}"
    else:
        assert encode_many(cls, column, version).to_pylist() == expected


@examples(70)
@given(st.data())
def test_columns_of_any_spec_become_the_bytes_they_were_read_from(data: st.DataObject) -> None:
    cls = generated.class_of(data.draw(generated.documents(), label="spec"))
    version = data.draw(st.sampled_from(list(cls.valid_versions)), label="version")
    made = data.draw(st.lists(generated.objects(cls.spec.root, version, cls), max_size=3), label="messages")
    column = cls.decode_many(pa.array([None, *(each.encode(version) for each in made)], pa.binary()), version)
    rows = cls.encode_many(column, version)
    assert cls.decode_many(rows, version).equals(column) or rows.to_pylist()[1:] == [
        by_objects(cls, row, version) for row in column.to_pylist()[1:]
    ]
    agrees(cls, column, version)
    agrees(cls, column[1:].cast(nullable(column.type)), version)


@examples(70)
@given(st.data())
def test_a_column_with_holes_is_written_or_refused_as_objects_are(data: st.DataObject) -> None:
    cls = generated.class_of(data.draw(generated.documents(), label="spec"))
    version = data.draw(st.sampled_from(list(cls.valid_versions)), label="version")
    made = data.draw(st.lists(generated.objects(cls.spec.root, version, cls), min_size=1, max_size=3), label="made")
    column = cls.decode_many(pa.array([each.encode(version) for each in made], pa.binary()), version)
    kind = nullable(column.type)
    left_out = data.draw(st.sets(st.sampled_from(column.type.names)), label="left out")

    def holed(value: Any) -> Any:
        if data.draw(st.integers(0, 15)) == 0:
            return None
        if isinstance(value, dict):
            return {name: holed(each) for name, each in value.items()}
        return [holed(each) for each in value] if isinstance(value, list) else value

    rows = [holed(row) for row in column.to_pylist()]
    kind = pa.struct([field for field in kind if field.name not in left_out])
    if kind.num_fields:
        agrees(cls, pa.array(rows, kind), version)


def test_every_written_message_of_the_catalog_comes_back_from_its_columns() -> None:
    tried = 0
    for line in WRITTEN[:: max(1, len(WRITTEN) // 1500)]:
        cls, version, data = class_of(line), line["version"], bytes.fromhex(line["hex"])
        column = cls.decode_many(pa.array([data, data], pa.binary()), version)
        objects = [object_of(cls, row).encode(version) for row in column.to_pylist()]
        assert encode_many(cls, column, version).to_pylist() == objects, (line["message"], version)
        tried += objects[0] == data
    assert tried > 500


def test_what_a_column_leaves_out_has_its_default() -> None:
    column = pa.array([{"topics": [{"name": "a"}]}])
    topic = METADATA.MetadataResponseTopic(name="a")
    assert encode_many(METADATA, column, 13).to_pylist() == [METADATA(topics=[topic]).encode(13)]
    empty = pa.array([{"cluster_id": None}, {"cluster_id": "c"}])
    assert encode_many(METADATA, empty, 9).to_pylist() == [METADATA(cluster_id=c).encode(9) for c in (None, "c")]


def test_slices_and_chunks_are_written_as_the_rows_that_they_hold() -> None:
    messages_ = [METADATA(cluster_id=str(i), topics=EXAMPLE.topics[: i % 4]).encode(13) for i in range(40)]
    column = METADATA.decode_many(pa.array([*messages_, None]), 13)
    assert encode_many(METADATA, column[7:23], 13).to_pylist() == messages_[7:23]
    chunked = pa.chunked_array([column[30:], column[:0], column[3:5]])
    assert encode_many(METADATA, chunked, 13).to_pylist() == [*messages_[30:], None, *messages_[3:5]]
    assert len(encode_many(METADATA, column[:0], 13)) == 0


@pytest.mark.parametrize(
    "kinds",
    [
        {"topics": pa.large_list(pa.struct({"topic_id": pa.binary()})), "cluster_id": pa.large_string()},
        {"topics": pa.list_(pa.struct({"topic_id": pa.large_binary()}), 1), "cluster_id": pa.string_view()},
        {"topics": pa.list_(pa.struct({"topic_id": pa.binary(16)})), "cluster_id": pa.dictionary("i1", "string")},
    ],
)
def test_all_of_arrows_kinds_of_lists_and_text_are_taken(kinds: dict[str, pa.DataType]) -> None:
    topic = METADATA.MetadataResponseTopic(topic_id=UUID(int=5), name="t")
    rows = {"topics": [[{"topic_id": UUID(int=5).bytes}]], "cluster_id": ["c"]}
    arrays = [
        pa.array(values, "string").dictionary_encode()
        if name == "cluster_id" and "dict" in str(kinds[name])
        else pa.array(values, kinds[name])
        for name, values in rows.items()
    ]
    column = pa.StructArray.from_arrays(arrays, names=list(rows))
    topic.name = ""
    assert encode_many(METADATA, column, 11).to_pylist() == [METADATA(cluster_id="c", topics=[topic]).encode(11)]


@pytest.mark.parametrize(
    ("row", "kind", "said"),
    [
        ({"generation_id": 2**31}, pa.int64(), "generation_id: 2147483648 is out of range: -2147483648 to 2147483647"),
        ({"generation_id": None}, pa.int32(), "generation_id: needs an int, not NoneType"),
        ({"group_id": None}, pa.string(), "group_id: cannot be null"),
        ({"group_id": "x" * 32768}, pa.string(), "group_id: 32768 bytes of UTF-8: the limit is 32767"),
    ],
)
def test_a_value_that_does_not_fit_is_named_by_its_row(row: dict[str, Any], kind: pa.DataType, said: str) -> None:
    (name,) = row
    column = pa.array([None, row, {name: "g" if name == "group_id" else 1}], pa.struct({name: kind}))
    with pytest.raises(EncodeError, match="row 1: HeartbeatRequest v4, " + said):
        encode_many(HEARTBEAT, column, 4)
    found = encode_many(HEARTBEAT, column, 4, errors="column").to_pylist()
    assert [row["value"] is None for row in found] == [True, True, False]
    assert found[1]["error"] == f"HeartbeatRequest v4, {said}"


def test_text_that_is_not_utf_8_is_refused() -> None:
    text = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff\xfe"]).buffers())
    column = pa.StructArray.from_arrays([text], names=["group_id"])
    with pytest.raises(EncodeError, match="row 0: HeartbeatRequest v4: a string is not UTF-8"):
        encode_many(HEARTBEAT, column, 4)


@pytest.mark.parametrize("ends", [(0, 9, 3), (0, -4, 3)])
def test_a_column_whose_offsets_lead_out_of_its_data_is_refused(ends: tuple[int, ...]) -> None:
    places = pa.py_buffer(struct.pack("=3i", *ends))
    text = pa.Array.from_buffers(pa.string(), 2, [None, places, pa.py_buffer(b"abc")])
    numbers = pa.array([1, 2, 3], pa.int32())
    lists = pa.Array.from_buffers(pa.list_(pa.int32()), 2, [None, places], children=[numbers])
    tagged = pa.StructArray.from_arrays([text], names=["text"])
    for cls, column, version in [
        (HEARTBEAT, pa.StructArray.from_arrays([text], names=["group_id"]), 4),
        (message_class(NUMBERS), pa.StructArray.from_arrays([lists], names=["ids"]), 0),
        (message_class(OPTIONAL), tagged, 0),
    ]:
        for errors in ("raise", "column"):
            with pytest.raises(EncodeError, match="not within its data"):
                encode_many(cls, column, version, errors=errors)


@pytest.mark.parametrize(
    ("kind", "error", "said"),
    [
        ({"grupp": pa.string()}, EncodeError, "HeartbeatRequest v0: no field grupp: .* has group_id, generation_id"),
        ({"group_id": pa.int32()}, EncodeError, "HeartbeatRequest v0, group_id: is int32, which does not hold string"),
        ({"generation_id": pa.float64()}, EncodeError, "generation_id: is double, which does not hold int32"),
        ({"group_instance_id": pa.string()}, UnsupportedVersionError, r"group_instance_id: exists only in versions 3"),
    ],
)
def test_a_column_that_cannot_be_written_is_refused_whatever_its_rows(
    kind: dict[str, pa.DataType], error: type[Exception], said: str
) -> None:
    for rows in ([], [None], [dict.fromkeys(kind)]):
        for errors in ("raise", "column"):
            with pytest.raises(error, match=said):
                encode_many(HEARTBEAT, pa.array(rows, pa.struct(kind)), 0, errors=errors)


def test_a_column_of_no_chunks_is_one_of_no_rows() -> None:
    empty = pa.chunked_array([], pa.struct({"group_id": pa.string()}))
    assert encode_many(HEARTBEAT, empty, 0) == pa.array([], pa.binary())
    assert encode_many(HEARTBEAT, empty, 0, errors="column").type.names == ["value", "error"]
    with pytest.raises(EncodeError, match="no field other"):
        encode_many(HEARTBEAT, pa.chunked_array([], pa.struct({"other": pa.string()})), 0)


def test_a_dictionary_without_values_below_nulls_is_written() -> None:
    spec = """{"type": "data", "name": "Words", "validVersions": "0", "flexibleVersions": "none", "fields": [
        {"name": "Word", "type": "Word", "versions": "0+", "nullableVersions": "0+", "fields": [
            {"name": "Text", "type": "string", "versions": "0+"}]}]}"""
    texts = pa.dictionary(pa.int8(), pa.string())
    column = pa.array([{"word": None}, {"word": None}], pa.struct({"word": pa.struct({"text": texts})}))
    agrees(message_class(spec), column, 0)
    assert encode_many(message_class(spec), column, 0).to_pylist() == [b"\xff", b"\xff"]


@pytest.mark.parametrize("kind", [pa.string_view(), pa.large_string()], ids=str)
def test_a_dictionary_of_any_text_is_taken(kind: pa.DataType) -> None:
    texts = pa.array(["a", "longer than a view"], kind)
    words = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.uint32()), texts)
    written = encode_many(HEARTBEAT, pa.StructArray.from_arrays([words], ["group_id"])[1:], 0)
    assert written.to_pylist() == [HEARTBEAT(group_id=name).encode(0) for name in ("a", "longer than a view")]
    lists = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), words[1:])
    asked = messages.DescribeGroupsRequest
    assert encode_many(asked, pa.StructArray.from_arrays([lists], ["groups"]), 0).to_pylist() == [
        asked(groups=["a", "longer than a view"]).encode(0)
    ]
    raw = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array([b"token"], pa.binary_view()))
    sasl = messages.SaslAuthenticateRequest
    assert encode_many(sasl, pa.StructArray.from_arrays([raw], ["auth_bytes"]), 0).to_pylist() == [
        sasl(auth_bytes=b"token").encode(0)
    ]


def test_an_index_beyond_its_dictionary_is_refused() -> None:
    broken = pa.DictionaryArray.from_arrays(pa.array([5], pa.int8()), pa.array(["a"]), safe=False)
    with pytest.raises(EncodeError, match="group_id: Index 5 out of bounds"):
        encode_many(HEARTBEAT, pa.StructArray.from_arrays([broken], ["group_id"]), 0)


def test_structs_inside_are_checked_by_their_place() -> None:
    column = pa.array([{"topics": [{"partitions": [{"leader": 1}]}]}])
    with pytest.raises(EncodeError, match=r"v1, topics\[\], partitions\[\]: no field leader: .* leader_id"):
        encode_many(METADATA, column, 1)
    with pytest.raises(EncodeError, match=r"v1, topics: is string, needs a list"):
        encode_many(METADATA, pa.array([{"topics": "a"}]), 1)


def test_what_is_no_struct_or_no_version_is_refused() -> None:
    with pytest.raises(ConfigError, match="is int64, not a struct"):
        encode_many(HEARTBEAT, pa.array([1]), 0)
    with pytest.raises(ConfigError, match="'null'"):
        encode_many(HEARTBEAT, pa.array([{}]), 0, errors="null")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedVersionError, match="has no version 99"):
        encode_many(HEARTBEAT, pa.array([{"group_id": "g"}]), 99)


def test_a_tag_without_bytes_is_refused_where_its_length_would_end_the_buffer() -> None:
    cls = message_class(OPTIONAL)
    assert schema_of(cls, 0).names == ["id", "text"]
    agrees(cls, pa.array([{"id": 1, "text": None}, {"id": 2, "text": "x" * 300}, {"id": 3, "text": ""}]), 0)


@pytest.mark.parametrize("name", ["transaction_timeout_ms", "producer_id"])
def test_a_number_beyond_64_bits_with_a_sign_refuses_its_row_alone(name: str) -> None:
    kind = messages.InitProducerIdRequest
    rows = pa.StructArray.from_arrays([pa.array([1, 2**63, 7], pa.uint64())], names=[name])
    found = encode_many(kind, rows, 4, errors="column")
    assert [text is None for text in found.field("error").to_pylist()] == [True, False, True]
    assert "9223372036854775808" in found.field("error")[1].as_py()
    with pytest.raises(EncodeError, match=r"row 1: .*9223372036854775808"):
        encode_many(kind, rows, 4)
