from __future__ import annotations

import platform
import random
import subprocess
import sys
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire import kernel, records
from tagwire.errors import ConfigError, EncodeError
from tagwire.records import Record
from tagwire.records.columns import COLUMNS

MAYBE_BYTES = st.none() | st.binary(max_size=100)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
RECORDS = st.lists(
    st.builds(
        Record,
        MAYBE_BYTES,
        MAYBE_BYTES,
        st.lists(st.tuples(TEXT, MAYBE_BYTES), max_size=4),
        st.integers(-1, 9_223_372_036_854_775),
    ),
    max_size=20,
)
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
HEADER_SIZE = 61


def rows(first: int, last: int, **options: Any) -> bytes:
    """A batch of the offsets first..last, each with its number as value and as timestamp in seconds."""
    found = [Record(None, b"%d" % offset, timestamp=1000 * offset) for offset in range(first, last + 1)]
    return records.write(found, base_offset=first, **options)


@given(found=RECORDS, codec=st.sampled_from(records.CODECS))
def test_rows_that_become_a_batch_become_the_same_rows(found: list[Record], codec: str) -> None:
    data = records.write(found, compression=codec)
    for unit in ("ms", "us"):
        assert records.from_arrow(records.to_arrow(data, timestamp_unit=unit), compression=codec) == data


def batch_of(**columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def pairs(*lists: Any, kind: pa.DataType = HEADERS) -> pa.Array:
    return pa.array(lists, kind)


BINARIES = [
    pa.binary(),
    pa.string(),
    pa.large_binary(),
    pa.large_string(),
    pa.binary_view(),
    pa.string_view(),
    pa.dictionary(pa.int32(), pa.string()),
]


@pytest.mark.parametrize("kind", BINARIES, ids=str)
def test_keys_and_values_of_any_binary_or_string_type_are_written(kind: pa.DataType) -> None:
    column = pa.array(["a", None, "", "ccc"], pa.string()).cast(kind)
    expected = records.write([Record(value, value) for value in (b"a", None, b"", b"ccc")])
    assert records.from_arrow(batch_of(key=column, value=column)) == expected


HEADER_KINDS = [
    pa.list_(pa.struct([("value", pa.string()), ("key", pa.binary())])),
    pa.large_list(pa.struct([("key", pa.large_string()), ("value", pa.large_binary())])),
]


@pytest.mark.parametrize("kind", HEADER_KINDS, ids=str)
def test_headers_of_any_binary_or_string_type_are_written(kind: pa.DataType) -> None:
    lists = [[{"key": "h", "value": "1"}, {"key": "", "value": None}], None, []]
    expected = records.write([Record(None, None, [("h", b"1"), ("", None)]), Record(None, None), Record(None, None)])
    assert records.from_arrow(batch_of(headers=pairs(*lists, kind=kind))) == expected


TIMES = [
    (pa.timestamp("s"), [1, None], [1000, -1]),
    (pa.timestamp("ms", "UTC"), [1500, None], [1500, -1]),
    (pa.timestamp("us", "Europe/Berlin"), [1_500_999, -1000], [1500, -1]),
    (pa.timestamp("ns"), [1_500_000_000, None], [1500, -1]),
    (pa.int64(), [1500, None], [1500, -1]),
    (pa.int32(), [1500, -1], [1500, -1]),
    (pa.null(), [None, None], [-1, -1]),
]


@pytest.mark.parametrize(("kind", "column", "expected"), TIMES, ids=lambda value: str(value))
def test_timestamps_of_any_unit_become_milliseconds(kind: pa.DataType, column: list[Any], expected: list[int]) -> None:
    data = records.from_arrow(batch_of(timestamp=pa.array(column, kind)))
    assert data == records.write([Record(None, None, timestamp=timestamp) for timestamp in expected])


def test_other_columns_are_not_looked_at() -> None:
    table = records.to_arrow(rows(5, 9), columns=COLUMNS, topic="t", partition=1)
    assert records.from_arrow(table, base_offset=5) == rows(5, 9)
    assert records.from_arrow(batch_of(unrelated=pa.array([1.5]))) == records.write([Record(None, None)])


def test_of_two_columns_of_one_name_none_is_taken_for_missing() -> None:
    twice = pa.RecordBatch.from_arrays([pa.array([b"v"]), pa.array([b"w"])], ["value", "value"])
    with pytest.raises(EncodeError, match="column value is there 2 times"):
        records.from_arrow(twice)
    with pytest.raises(EncodeError, match="column value is there 2 times"):
        list(records.batches_from_arrow(twice))


def test_no_rows_make_no_batch() -> None:
    assert records.from_arrow(records.to_arrow(b""), compression="lz4") == b""


def test_a_slice_is_written_without_what_it_was_cut_from() -> None:
    found = [
        Record(b"%d" % number if number % 3 else None, b"v" * number, [(f"h{number}", None)] * (number % 3), number)
        for number in range(40)
    ]
    table = records.to_arrow(records.write(found))
    for start, length in ((0, 40), (7, 9), (1, 1), (39, 1), (13, 27), (0, 3)):
        assert records.from_arrow(table.slice(start, length)) == records.write(found[start : start + length])


def test_a_null_list_over_elements_is_no_headers() -> None:
    elements = pa.array([{"key": "a", "value": b"1"}, {"key": "b", "value": b"2"}], HEADERS.value_type)
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), elements, mask=pa.array([True, False]))
    expected = records.write([Record(None, None), Record(None, None, [("b", b"2")])])
    assert records.from_arrow(batch_of(headers=lists)) == expected


@pytest.mark.parametrize(
    ("column", "error"),
    [
        ({"key": pa.array([1, 2])}, "column key is int64, not binary or string"),
        ({"value": pa.array([1.5, 2])}, "column value is double, not binary or string"),
        ({"timestamp": pa.array(["now", "then"])}, "column timestamp is string, not a timestamp"),
        ({"timestamp": pa.array([0, -2])}, "row 1: timestamp -2 is not -1"),
        ({"timestamp": pa.array([-999, -1001], pa.timestamp("us"))}, "row 1: timestamp -2 is not -1"),
        ({"timestamp": pa.array([None, -1_000_001], pa.timestamp("ns", "UTC"))}, "row 1: timestamp -2 is not -1"),
        ({"timestamp": pa.array([0, 1 << 60], pa.timestamp("s"))}, "column timestamp does not fit into int64"),
        ({"timestamp": pa.array([0, 1 << 63], pa.uint64())}, "column timestamp does not fit into int64"),
        ({"headers": pa.array(["a", "b"])}, "column headers is string, not list<struct<key, value>>"),
        ({"headers": pairs([1], [2], kind=pa.list_(pa.int32()))}, "column headers is list"),
        (
            {"headers": pairs([{"k": "a"}], None, kind=pa.list_(pa.struct([("k", pa.string()), ("v", pa.string())])))},
            "not list<struct<key, value>>",
        ),
        (
            {
                "headers": pairs(
                    [{"key": 1}], None, kind=pa.list_(pa.struct([("key", pa.int8()), ("value", pa.binary())]))
                )
            },
            "column headers key is int8",
        ),
        ({"headers": pairs([], [{"key": None, "value": b"v"}])}, "row 1: a header or its key is null"),
        ({"headers": pairs([{"key": "a", "value": b"v"}], [None])}, "row 1: a header or its key is null"),
    ],
)
def test_what_cannot_be_written_is_named(column: dict[str, pa.Array], error: str) -> None:
    with pytest.raises(EncodeError, match=error):
        records.from_arrow(batch_of(**column))


@pytest.mark.parametrize("ends", [[0, 5, 2], [0, -5, 2], [2, 1, 2], [1, 0, 2]])
def test_columns_that_contradict_themselves_are_refused(ends: list[int]) -> None:
    broken = pa.Array.from_buffers(
        pa.binary(), 2, [None, pa.array(ends, pa.int32()).buffers()[1], pa.py_buffer(b"ab")], 0
    )
    with pytest.raises(EncodeError, match=r"row [01]: the column's ends contradict each other"):
        records.from_arrow(batch_of(value=broken))


def test_wrong_options_are_named_when_writing_too() -> None:
    with pytest.raises(ConfigError, match="compression 'zip' is unknown"):
        records.from_arrow(records.to_arrow(b""), compression="zip")


@pytest.mark.parametrize("codec", ["none", "lz4"])
@given(found=RECORDS, most_bytes=st.integers(HEADER_SIZE + 1, 1000), most_records=st.integers(1, 9))
def test_batches_stay_within_their_bounds_and_hold_every_row(
    codec: str, found: list[Record], most_bytes: int, most_records: int
) -> None:
    table = records.to_arrow(records.write(found))
    made = list(
        records.batches_from_arrow(
            table, max_batch_bytes=most_bytes, max_batch_records=most_records, compression=codec, base_offset=70
        )
    )
    read = [batch for data in made for batch in records.read(data)]
    assert [batch.base_offset for batch in read] == [
        70 + sum(one.count for one in read[:at]) for at in range(len(read))
    ]
    assert [record.value for batch in read for record in batch.records()] == [row.value for row in found]
    for batch in read:
        size = HEADER_SIZE + len(batch.decompress().payload)
        assert batch.count <= most_records
        assert size <= most_bytes or batch.count == 1
    assert b"".join(made) == b"".join(
        records.write(found[at : at + batch.count], compression=codec, base_offset=70 + at)
        for at, batch in zip(accumulate((one.count for one in read), initial=0), read)
    )


def test_a_batch_ends_where_the_next_record_would_pass_its_bytes() -> None:
    table = records.to_arrow(rows(10, 99))
    size_of_ten = len(rows(0, 9)) + 10  # values of two digits
    for most_bytes, counts in ((size_of_ten, [10] * 9), (size_of_ten - 1, [9] * 10), (HEADER_SIZE + 1, [1] * 90)):
        made = list(records.batches_from_arrow(table, max_batch_bytes=most_bytes))
        assert [next(records.batch_headers(data)).count for data in made] == counts


def test_a_record_longer_than_a_batch_stands_alone() -> None:
    found = [Record(None, bytes(size)) for size in (10, 10, 100_000, 10, 5000, 10)]
    made = list(records.batches_from_arrow(records.to_arrow(records.write(found)), max_batch_bytes=1000))
    assert [next(records.batch_headers(data)).count for data in made] == [2, 1, 1, 1, 1]
    assert [len(value) for data in made for value in records.to_arrow(data).column("value").to_pylist()] == [
        10, 10, 100_000, 10, 5000, 10
    ]  # fmt: skip


def test_sequences_go_on_from_batch_to_batch_and_wrap() -> None:
    table = records.to_arrow(rows(0, 9))
    made = records.batches_from_arrow(
        table, max_batch_records=3, producer_id=7, producer_epoch=1, base_sequence=2_147_483_643, transactional=True
    )
    headers = [header for data in made for header in records.batch_headers(data)]
    assert [header.base_sequence for header in headers] == [2_147_483_643, 2_147_483_646, 1, 4]
    assert [header.last_sequence for header in headers] == [2_147_483_645, 0, 3, 4]
    assert {(header.producer_id, header.producer_epoch, header.is_transactional) for header in headers} == {
        (7, 1, True)
    }
    without = [header for data in records.batches_from_arrow(table) for header in records.batch_headers(data)]
    assert [(header.base_sequence, header.count) for header in without] == [(-1, 10)]


def test_batches_before_a_row_that_cannot_be_written_are_given_first() -> None:
    table = batch_of(timestamp=pa.array([1, 2, 3, -5, 6]))
    made = records.batches_from_arrow(table, max_batch_records=2)
    assert len(records.to_arrow(next(made))) == 2
    with pytest.raises(EncodeError, match="row 3: timestamp -5"):
        next(made)


def test_no_rows_make_no_batches() -> None:
    assert list(records.batches_from_arrow(records.to_arrow(b""))) == []


@pytest.mark.parametrize("bounds", [{"max_batch_records": 0}, {"max_batch_bytes": HEADER_SIZE}])
def test_bounds_that_leave_no_room_are_refused_at_once(bounds: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="there is room for none"):
        records.batches_from_arrow(records.to_arrow(b""), **bounds)


PAIR = pa.struct([("key", pa.string()), ("value", pa.binary())])
LISTS = [
    pa.list_(PAIR),
    pa.large_list(PAIR),
    pa.list_view(PAIR),
    pa.large_list_view(PAIR),
    pa.list_(PAIR, 2),
    pa.map_(pa.string(), pa.binary()),
    pa.list_(pa.struct([("key", pa.dictionary(pa.int32(), pa.string())), ("value", pa.binary_view())])),
]


@pytest.mark.parametrize("kind", LISTS, ids=str)
def test_headers_in_lists_of_any_kind_are_written_whole_and_sliced(kind: pa.DataType) -> None:
    lists = [[("a", b"1"), ("a", None)], None, [("b", b""), ("", b"2")], None, [("c", None), ("d", b"4")]]
    column = pa.array(
        [pairs and [{"key": key, "value": value} for key, value in pairs] for pairs in lists], pa.list_(PAIR)
    )
    if pa.types.is_map(kind):
        column = pa.array(lists, kind)
    elif "dictionary" in str(kind):
        column = column.cast(kind)
    else:
        column = pa.array(column.to_pylist(), kind)
    for start, length in ((0, 5), (1, 4), (2, 2), (4, 1), (1, 1)):
        expected = records.write([Record(None, None, pairs or []) for pairs in lists[start : start + length]])
        assert records.from_arrow(batch_of(headers=column.slice(start, length))) == expected


def test_headers_over_a_slice_of_their_pairs_are_those_of_the_slice() -> None:
    elements = pa.array([{"key": f"{at}", "value": b"%d" % at if at % 2 else None} for at in range(6)], PAIR).slice(2)
    column = pa.ListArray.from_arrays(pa.array([1, 2, 4], pa.int32()), elements)
    expected = records.write([Record(None, None, [("3", b"3")]), Record(None, None, [("4", None), ("5", b"5")])])
    assert records.from_arrow(batch_of(headers=column)) == expected


@pytest.mark.parametrize("ends", [[0, 5, 2], [0, -1, 2]])
def test_lists_that_contradict_themselves_are_refused(ends: list[int]) -> None:
    elements = pa.array([{"key": "a", "value": b"1"}, {"key": "b", "value": b"2"}], PAIR)
    broken = pa.Array.from_buffers(
        pa.list_(PAIR), 2, [None, pa.array(ends, pa.int32()).buffers()[1]], 0, children=[elements]
    )
    with pytest.raises(EncodeError, match="row 0: the column's ends contradict each other"):
        records.from_arrow(batch_of(headers=broken))
    with pytest.raises(EncodeError, match="column headers: its ends contradict each other"):
        records.from_arrow(batch_of(headers=broken).slice(0, 1))


def test_an_index_beyond_its_dictionary_is_refused() -> None:
    broken = pa.DictionaryArray.from_arrays(pa.array([5], pa.int8()), pa.array(["a"]), safe=False)
    with pytest.raises(EncodeError, match="column value is broken: Index 5 out of bounds"):
        records.from_arrow(pa.record_batch({"value": broken}))


@pytest.mark.parametrize("kind", [pa.binary_view(), pa.string_view(), pa.large_string()], ids=str)
def test_a_dictionary_of_any_binary_or_string_type_is_written(kind: pa.DataType) -> None:
    values = pa.array(["gone", "a", None, "longer than a view holds"], kind)
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2, 3], pa.uint32()), values)[1:]
    expected = [Record(value, value) for value in (b"a", None, None, b"longer than a view holds")]
    assert records.from_arrow(batch_of(key=column, value=column)) == records.write(expected)
    nothing = pa.DictionaryArray.from_arrays(pa.array([None], pa.int8()), pa.array([], kind))
    assert records.from_arrow(batch_of(value=nothing)) == records.write([Record(None, None)])
    broken = pa.DictionaryArray.from_arrays(pa.array([5], pa.int8()), pa.array(["a"], kind), safe=False)
    with pytest.raises(EncodeError, match="column value is broken: Index 5 out of bounds"):
        records.from_arrow(pa.record_batch({"value": broken}))


@pytest.mark.parametrize("nulls", [0, 0.3, 1])
@pytest.mark.parametrize("count", [2, 63, 64, 65, 130])
def test_rows_of_all_sizes_become_what_write_makes_of_them(count: int, nulls: float) -> None:
    chance = random.Random(count)

    def some(*sizes: int) -> bytes | None:
        return None if chance.random() < nulls else chance.randbytes(chance.choice((0, 1, 16, 17, 63, 64, *sizes)))

    def pairs_of(row: int) -> list[tuple[str, bytes | None]]:
        most = 300 if row == 1 else 3
        return [("h" * chance.choice((0, 1, 63, 64)), some()) for _ in range(chance.randrange(most))]

    found = [Record(some(8191, 8192), some(9000), pairs_of(row), chance.randrange(1 << 40)) for row in range(count)]
    found += [Record(None, b"v" * 9000), Record(None, b"")]
    columns = records.to_arrow(records.write(found))
    assert records.from_arrow(columns) == records.write(found)
    assert records.from_arrow(columns.slice(1)) == records.write(found[1:])
    lists = pa.array([[{"key": key, "value": value} for key, value in row.headers] for row in found], HEADERS)
    no_null = columns.set_column(columns.schema.get_field_index("headers"), "headers", lists)
    assert records.from_arrow(no_null) == records.write(found)
    bounded = records.batches_from_arrow(columns, max_batch_bytes=20_000)
    assert [row for data in bounded for batch in records.read(data) for row in batch.records()] == [
        Record(row.key, row.value, row.headers, row.timestamp, number) for number, row in enumerate(found)
    ]


WRITING = """
import resource
import pyarrow as pa
from tagwire import records

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

rows = [records.Record(b"k" * 9, b"v" * 100, [("h", b"v")])] * 8_000
batch = pa.record_batch({{"value": pa.array([b"v" * 100] * 20_000)}})
for _ in range(5):
    {work}
before = faults()
for _ in range(10):
    {work}
print((faults() - before) / 10, len({work}) / 4096)
"""


@pytest.mark.parametrize("work", ["records.from_arrow(batch)", "records.write(rows)"])
@pytest.mark.skipif(not kernel.compiled, reason="uncompiled kernels make bytes of what they wrote elsewhere")
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="which memory malloc keeps is glibc's business")
def test_a_batch_is_written_into_the_memory_of_the_one_before_it(work: str) -> None:
    program = WRITING.format(work=work)
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    faults, pages = map(float, done.stdout.split())
    assert faults < 0.1 * pages
