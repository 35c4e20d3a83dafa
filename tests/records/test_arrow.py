from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire import records
from tagwire.errors import ConfigError, CorruptRecordError
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


def rows(first: int, last: int, **options: Any) -> bytes:
    """A batch of the offsets first..last, each with its number as value and as timestamp in seconds."""
    found = [Record(None, b"%d" % offset, timestamp=1000 * offset) for offset in range(first, last + 1)]
    return records.write(found, base_offset=first, **options)


def values(table: pa.RecordBatch) -> list[int]:
    return [int(value) for value in table.column("value").to_pylist()]


def test_columns_have_the_types_spark_wants() -> None:
    table = records.to_arrow(rows(0, 1), columns=COLUMNS, topic="t", partition=3, timestamp_unit="us")
    assert table.schema == records.arrow_schema(COLUMNS, timestamp_unit="us")
    assert {field.name: str(field.type) for field in table.schema} == {
        "key": "binary",
        "value": "binary",
        "topic": "string",
        "partition": "int32",
        "offset": "int64",
        "timestamp": "timestamp[us, tz=UTC]",
        "timestamp_type": "int32",
        "headers": "list<element: struct<key: string, value: binary>>",
    }
    assert table.to_pylist()[1] == {
        "key": None,
        "value": b"1",
        "topic": "t",
        "partition": 3,
        "offset": 1,
        "timestamp": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
        "timestamp_type": 0,
        "headers": None,
    }


@pytest.mark.parametrize("columns", [("value",), ("headers", "offset"), ("timestamp_type", "timestamp"), ("key",)])
def test_columns_are_those_asked_for_in_their_order(columns: tuple[str, ...]) -> None:
    data = records.write([Record(b"k", b"v", [("h", b"1")], 7)], base_offset=3)
    whole = records.to_arrow(data, columns=[*COLUMNS[:2], *COLUMNS[4:]])
    assert records.to_arrow(data, columns=columns).equals(whole.select(list(columns)))


@given(parts=st.lists(st.tuples(RECORDS, st.sampled_from(records.CODECS)), max_size=4))
def test_many_batches_are_one_set_of_columns(parts: list[tuple[list[Record], str]]) -> None:
    data, expected = b"", []
    for found, codec in parts:
        base = len(expected) * 3
        data += records.write(found, compression=codec, base_offset=base)
        for number, row in enumerate(found):
            headers = [{"key": key, "value": value} for key, value in row.headers] or None
            expected.append((base + number, row.timestamp, row.key, row.value, headers))
    table = records.to_arrow(data)
    table.validate(full=True)
    milliseconds = table.column("timestamp").cast(pa.int64())
    columns = [table.column("offset"), milliseconds, *(table.column(name) for name in ("key", "value", "headers"))]
    assert list(zip(*(column.to_pylist() for column in columns))) == expected


def test_a_list_of_buffers_is_read_as_one_log() -> None:
    parts = [rows(0, 2), bytearray(rows(3, 4)), memoryview(rows(5, 5) + rows(6, 9)[:-1])]
    assert values(records.to_arrow(parts)) == [0, 1, 2, 3, 4, 5]
    assert records.to_arrow([]).num_rows == 0
    assert records.to_arrow(b"").schema == records.arrow_schema()


@pytest.mark.parametrize(
    ("start", "end", "kept"),
    [
        (None, None, range(30)),
        (0, 30, range(30)),
        (10, 20, range(10, 20)),
        (15, 15, range(0)),
        (5, 25, range(5, 25)),
        (29, None, range(29, 30)),
        (None, 1, range(1)),
        (30, 99, range(0)),
    ],
)
@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_offsets_outside_the_range_are_left_out(codec: str, start: int | None, end: int | None, kept: range) -> None:
    data = b"".join(rows(base, base + 9, compression=codec) for base in (0, 10, 20))
    assert values(records.to_arrow(data, start_offset=start, end_offset=end)) == list(kept)


def test_a_batch_outside_the_range_is_neither_verified_nor_decompressed() -> None:
    damaged = bytearray(rows(0, 9, compression="zstd"))
    damaged[-1] ^= 1
    data = damaged + rows(10, 19) + damaged[:8] + damaged[8:]
    records.assign_offsets(memoryview(data)[len(damaged) + len(rows(10, 19)) :], 20, 0)
    assert values(records.to_arrow(data, start_offset=10, end_offset=20)) == list(range(10, 20))
    for start, end in ((9, 20), (10, 21)):
        with pytest.raises(CorruptRecordError, match="checksum"):
            records.to_arrow(data, start_offset=start, end_offset=end)


def test_control_records_are_left_out_unless_asked_for(seal: Callable[..., bytes]) -> None:
    marker = seal(bytes.fromhex("20 00 00 00 08 00000001 0c 00000000015b 00"), 1, base_offset=2, attributes=0x30)
    data = rows(0, 1) + marker + rows(3, 3)
    assert values(records.to_arrow(data)) == [0, 1, 3]
    assert records.to_arrow(data, control=True).column("offset").to_pylist() == [0, 1, 2, 3]
    assert [(table.num_rows, after) for table, after in records.arrow_chunks(marker)] == [(0, 3)]


def test_append_time_is_the_timestamp_of_every_row_and_told_by_the_type() -> None:
    data = rows(0, 1, timestamp_type="LogAppendTime") + rows(2, 3)
    table = records.to_arrow(data, columns=("timestamp", "timestamp_type"))
    assert table.column("timestamp").cast(pa.int64()).to_pylist() == [1000, 1000, 2000, 3000]
    assert table.column("timestamp_type").to_pylist() == [1, 1, 0, 0]


@pytest.mark.parametrize(("unit", "none"), [("ms", -1), ("us", -1000)])
def test_no_timestamp_is_one_millisecond_before_1970_never_null(unit: str, none: int) -> None:
    column = records.to_arrow(records.write([Record(None, None)]), timestamp_unit=unit).column("timestamp")
    assert column.null_count == 0
    assert column.cast(pa.int64()).to_pylist() == [none]


def test_a_timestamp_beyond_microseconds_is_named() -> None:
    data = records.write([Record(None, None), Record(None, None, timestamp=9_223_372_036_854_776)], base_offset=6)
    assert records.to_arrow(data).column("timestamp").cast(pa.int64())[1].as_py() == 9_223_372_036_854_776
    with pytest.raises(CorruptRecordError, match=r"batch at offset 6, record 1 .*9223372036854776 ms does not fit"):
        records.to_arrow(data, timestamp_unit="us")


def test_nulls_stand_where_the_records_have_them() -> None:
    found = [
        Record(
            b"" if number % 3 else None,
            None if number % 5 else b"v",
            [("h", None if number % 2 else b"")] * (number % 4),
        )
        for number in range(1000)
    ]
    table = records.to_arrow(records.write(found))
    table.validate(full=True)
    assert table.column("key").to_pylist() == [row.key for row in found]
    assert table.column("value").to_pylist() == [row.value for row in found]
    assert table.column("headers").to_pylist() == [
        [{"key": key, "value": value} for key, value in row.headers] or None for row in found
    ]


def test_more_headers_than_foreseen_are_all_there() -> None:
    few = [Record(None, b"a value", [("only", b"1")])] * 50
    many = [Record(None, None, [("", b"")] * 700), Record(None, b"x", [("last", None)])]
    data = (
        records.write(few)
        + records.write(many, base_offset=50, compression="zstd")
        + records.write(few, base_offset=60)
    )
    found = records.to_arrow(data).column("headers").to_pylist()
    assert [len(headers) for headers in found] == [1] * 50 + [700, 1] + [1] * 50
    assert found[50] == [{"key": "", "value": b""}] * 700
    assert found[51] == [{"key": "last", "value": None}]


def test_a_header_key_that_is_not_utf8_reads_as_java_reads_it(seal: Callable[..., bytes]) -> None:
    # one header with key e9 (Latin-1), one whose bytes only together with the next key's would be a character
    headers = bytes.fromhex("06  02 e9 02 31   02 c3 02 32   02 a9 01")
    body = bytes.fromhex("00 00 00 01 01") + headers
    data = seal(bytes([len(body) * 2]) + body, 1) + records.write([Record(None, None, [("é", b"3")])], base_offset=1)
    table = records.to_arrow(data)
    table.validate(full=True)
    assert table.column("headers").to_pylist() == [
        [{"key": "\ufffd", "value": b"1"}, {"key": "\ufffd", "value": b"2"}, {"key": "\ufffd", "value": None}],
        [{"key": "é", "value": b"3"}],
    ]
    assert [record.headers[0][0] for batch in records.read(data) for record in batch.records()] == ["\ufffd", "é"]


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_chunks_are_what_one_table_is_in_pieces_of_bounded_size(codec: str) -> None:
    data = b"".join(rows(base, base + 9, compression=codec) for base in range(10, 100, 10))
    size_of_one = len(rows(10, 19)) - 61
    whole = records.to_arrow(data)
    for options, sizes in (
        ({}, [90]),
        ({"max_rows": 25}, [30, 30, 30]),
        ({"max_rows": 1}, [10] * 9),
        ({"max_bytes": size_of_one}, [10] * 9),
        ({"max_bytes": size_of_one + 1}, [20] * 4 + [10]),
    ):
        chunks = list(records.arrow_chunks(data, **options))
        assert [table.num_rows for table, _ in chunks] == sizes
        assert pa.Table.from_batches([table for table, _ in chunks]).equals(pa.Table.from_batches([whole]))
        assert [after for _, after in chunks] == [10 + sum(sizes[: number + 1]) for number in range(len(sizes))]


def test_chunks_tell_where_to_go_on_after_batches_that_give_no_rows(seal: Callable[..., bytes]) -> None:
    emptied = seal(b"", 0, base_offset=10, last_offset_delta=4)
    assert [(table.num_rows, after) for table, after in records.arrow_chunks(rows(0, 9) + emptied)] == [(10, 15)]
    assert [(table.num_rows, after) for table, after in records.arrow_chunks(rows(0, 9) + emptied, max_rows=1)] == [
        (10, 10),
        (0, 15),
    ]
    assert [(table.num_rows, after) for table, after in records.arrow_chunks(rows(0, 9), start_offset=50)] == [(0, 10)]
    assert list(records.arrow_chunks(rows(0, 9)[:-1])) == []


def test_chunks_before_a_broken_batch_are_given_first() -> None:
    chunks = records.arrow_chunks(rows(0, 9) + rows(10, 19)[:-1] + b"!", max_rows=1)
    assert next(chunks)[1] == 10
    with pytest.raises(CorruptRecordError, match="batch at offset 10"):
        next(chunks)


def test_the_memory_of_compressed_batches_is_bounded_by_what_the_caller_allows() -> None:
    data = rows(0, 0) + b"".join(
        records.write([Record(None, bytes(100_000))], base_offset=base, compression="gzip") for base in (1, 2)
    )
    assert records.to_arrow(data, max_decompressed=200_100).num_rows == 3
    with pytest.raises(CorruptRecordError, match="batch at offset 2: gzip data holds more than"):
        records.to_arrow(data, max_decompressed=200_000)
    assert [table.num_rows for table, _ in records.arrow_chunks(data, max_decompressed=100_100)] == [3]
    with pytest.raises(CorruptRecordError, match="batch at offset 1: gzip data holds more than 100000"):
        list(records.arrow_chunks(data, max_decompressed=100_000))


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_batches_of_few_records_read_as_one_large_one(codec: str) -> None:
    found = [Record(b"%d" % at, bytes(at % 70), [("h", b"1")] * (at % 9), 1000 + at) for at in range(500)]
    parts = [
        records.write(found[at : at + 7], base_offset=at, compression=codec if at % 3 else "none")
        for at in range(0, 500, 7)
    ]
    whole = records.to_arrow(records.write(found))
    assert records.to_arrow(b"".join(parts)).equals(whole)
    assert records.to_arrow(parts).equals(whole)
    for start, end in ((0, 1), (6, 8), (13, 400), (499, 500)):
        assert records.to_arrow(b"".join(parts), start_offset=start, end_offset=end).equals(
            whole.slice(start, end - start)
        )


@pytest.mark.parametrize("at", [61, 80, 120, -1])
def test_a_broken_batch_among_many_is_named_and_nothing_is_given(at: int) -> None:
    parts = [bytearray(rows(base, base + 9)) for base in range(0, 100, 10)]
    parts[6][at] ^= 1
    with pytest.raises(CorruptRecordError, match=r"batch at offset 60 .*checksum"):
        records.to_arrow(b"".join(parts))
    assert values(records.to_arrow(b"".join(parts), end_offset=60)) == list(range(60))


def test_a_record_that_lies_is_named_by_its_place_in_the_batch(seal: Callable[..., bytes]) -> None:
    lying = seal(bytes.fromhex("0e 00 00 00 01 01 02 00"), 1, base_offset=10)
    with pytest.raises(CorruptRecordError, match=r"batch at offset 10, record 0.*byte 67"):
        records.to_arrow(rows(0, 9) + lying + rows(11, 12))


def test_a_header_that_contradicts_itself_is_refused_after_any_number_of_good_ones(seal: Callable[..., bytes]) -> None:
    good = b"".join(rows(base, base) for base in range(5))
    for broken, error in (
        (seal(b"", 2, base_offset=5, last_offset_delta=0), "2 records do not fit into 1 offsets"),
        (seal(b"", 9, base_offset=5), "9 records do not fit into 0 bytes"),
        (seal(b"", 0, base_offset=5, attributes=5), "compression id 5 is unknown"),
        (seal(b"", 0, base_offset=5, magic=3), "magic 3 is not 0, 1 or 2"),
    ):
        with pytest.raises(CorruptRecordError, match=error):
            records.to_arrow(good + broken)


def pool_peak(data: bytes, columns: tuple[str, ...]) -> int:
    """The most bytes that Arrow held while it read these columns."""
    before, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(pool)
    try:
        records.to_arrow(data, columns=columns)
        peak: int = pool.max_memory()
        return peak
    finally:
        pa.set_memory_pool(before)


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_a_column_that_is_not_asked_for_takes_no_memory(codec: str) -> None:
    found = [Record(bytes(10), bytes(5000), [("h", b"1")]) for _ in range(200)]
    data = records.write(found, compression=codec)
    assert pool_peak(data, ("offset",)) < 200 * 8 + 100
    assert pool_peak(data, ("timestamp", "timestamp_type")) < 200 * 12 + 200
    assert pool_peak(data, ("value",)) >= 200 * 5000


def test_what_was_taken_for_small_columns_is_given_back() -> None:
    table = records.to_arrow(records.write([Record(b"k", bytes(5000), [("h", b"1")]) for _ in range(200)]))
    assert table.column("key").buffers()[2].size < 1000
    assert sum(buffer.size for buffer in table.column("headers").buffers() if buffer) < 10_000


def test_an_unknown_option_is_refused() -> None:
    for read in (records.to_arrow, lambda data, **options: next(records.arrow_chunks(data, **options))):
        with pytest.raises(TypeError, match="colums"):
            read(rows(0, 1), colums=("key",))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"columns": ("value", "size")}, "column 'size' is unknown; allowed: key, value, topic"),
        ({"columns": ()}, "no column is chosen"),
        ({"columns": ("key", "key")}, "column 'key' is chosen twice"),
        ({"columns": ("topic",)}, "column 'topic' is chosen, but no topic is given"),
        ({"columns": ("partition",), "topic": "t"}, "no partition is given"),
        ({"timestamp_unit": "ns"}, "timestamp unit 'ns' is unknown; allowed: ms, us"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        records.to_arrow(rows(0, 1), **options)
    with pytest.raises(ConfigError, match=error):
        next(records.arrow_chunks(rows(0, 1), **options))


def test_records_without_arrow_do_not_import_it() -> None:
    code = "import sys; from tagwire import records; list(records.read(b'')); sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_offsets_beyond_every_record_bound_nothing_or_leave_nothing() -> None:
    data = records.write([Record(None, b"v")] * 3, base_offset=5)
    assert records.to_arrow(data, start_offset=-(1 << 70), end_offset=1 << 70).num_rows == 3
    assert records.to_arrow(data, start_offset=1 << 64).num_rows == 0
    assert records.to_arrow(data, end_offset=-(1 << 64)).num_rows == 0
