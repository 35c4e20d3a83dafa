"""Int header keys read by name and written from names, wherever records of that format are read or written."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire import records
from tagwire.errors import ConfigError, EncodeError
from tagwire.records import HeaderEntry, HeaderRegister, HeaderSerdes, Record
from tagwire.records.files import PartitionFiles, Segment, partitions

DIALECT = "int-headers"
REGISTER = HeaderRegister([HeaderEntry(1_114_000, "app.name"), HeaderEntry(-3, "scratch")], name="headers.toml")
NAMED = [
    Record(b"k", b"v", [("scratch", b"\0"), ("7", b""), ("app.name", b"ig")], 5, 0),
    Record(b"k", b"v", (), 6, 1),
    Record(None, None, [("app.name", b"x")], 7, 2),
]
NUMBERED = [[(-3, b"\0"), (7, b""), (1_114_000, b"ig")], [], [(1_114_000, b"x")]]


def headers(data: bytes, **options: Any) -> list[Any]:
    return [list(record.headers) for batch in records.read(data, DIALECT, **options) for record in batch.records()]


@pytest.mark.parametrize("codec", records.CODECS)
def test_records_are_written_from_names_and_read_with_them(codec: str) -> None:
    data = records.write(NAMED, dialect=DIALECT, register=REGISTER, compression=codec)
    assert headers(data) == NUMBERED
    found = [record for batch in records.read(data, DIALECT, register=REGISTER) for record in batch.records()]
    assert found == NAMED
    together = records.read_coalesced(data, DIALECT, register=REGISTER)
    assert [record for batch in together for record in batch.records()] == NAMED
    assert pickle.loads(pickle.dumps(found)) == NAMED
    assert found[0].get_header("app.name") == b"ig"
    assert found[0].raw_headers[1] == (b"7", b"")


@pytest.mark.parametrize("codec", records.CODECS)
def test_columns_are_written_from_names_and_read_with_them(codec: str) -> None:
    data = records.write(NAMED, dialect=DIALECT, register=REGISTER, compression=codec)
    table = records.to_arrow(data, dialect=DIALECT, register=REGISTER)
    assert [pair["key"] for pair in table.column("headers")[0].as_py()] == ["scratch", "7", "app.name"]
    assert records.from_arrow(table, dialect=DIALECT, register=REGISTER, compression=codec) == data
    (part, *_) = records.batches_from_arrow(table, dialect=DIALECT, register=REGISTER, max_batch_records=1)
    assert headers(part) == NUMBERED[:1]


@pytest.mark.parametrize(
    ("pairs", "error"),
    [
        ([("trace", b"")], "header 'trace' is neither in headers.toml nor a decimal 32-bit integer"),
        ([("app.name", b""), ("1114000", b"")], "header '1114000' stands there twice, as 'app.name'"),
        ([("app.name", None)], "header 'app.name' is null"),
    ],
)
def test_what_cannot_be_bridged_names_record_key_and_register(pairs: list[Any], error: str) -> None:
    rows = [Record(b"fine", b"fine"), Record(None, None, pairs)]
    with pytest.raises(EncodeError, match=f"^record 1: {error}"):
        records.write(rows, dialect=DIALECT, register=REGISTER)
    with pytest.raises(EncodeError, match=f"^row 1: {error}"):
        records.from_arrow(records.to_arrow(records.write(rows)), dialect=DIALECT, register=REGISTER)


def test_what_is_no_header_at_all_is_named_too() -> None:
    with pytest.raises(EncodeError, match=r"^record 0: header 5 is not a \(key, value\) pair"):
        records.write([Record(None, None, [5])], dialect=DIALECT, register=REGISTER)  # type: ignore[list-item]


def test_a_register_needs_the_format_that_has_int_keys(tmp_path: Path) -> None:
    for broken in (
        lambda: list(records.read(b"", register=REGISTER)),
        lambda: list(records.read_coalesced(b"", register=REGISTER)),
        lambda: records.write([], register=REGISTER),
        lambda: records.from_arrow(records.to_arrow(b""), register=REGISTER),
        lambda: Segment(tmp_path / "x.log", register=REGISTER),
    ):
        with pytest.raises(ConfigError, match="no dialect is given"):
            broken()


def test_a_batch_is_rewritten_by_the_register_that_it_was_read_with() -> None:
    data = records.write(NAMED, dialect=DIALECT, register=REGISTER, compression="gzip")
    (batch,) = records.read(data, DIALECT, register=REGISTER)
    assert headers(records.rewrite(batch, list(batch.records())[1:])) == NUMBERED[1:]


def test_a_segment_reads_with_names(tmp_path: Path) -> None:
    directory = tmp_path / "flights-0"
    directory.mkdir()
    path = directory / "00000000000000000000.log"
    path.write_bytes(records.write(NAMED, dialect=DIALECT, register=REGISTER))
    for segment in (
        Segment(path, dialect=DIALECT, register=REGISTER),
        *PartitionFiles(directory, dialect=DIALECT, register=REGISTER).segments,
        *partitions(tmp_path, dialect=DIALECT, register=REGISTER)[0].segments,
    ):
        with segment:
            assert list(segment.records()) == NAMED
            keys = [pair["key"] for pair in segment.to_arrow(columns=("headers",)).column(0)[0].as_py()]
            assert keys == ["scratch", "7", "app.name"]


IDS_WITH_A_NAME = {"1", "2", "3", "1114000", "-3"}


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["app.name", "scratch", "client.id"]) | st.integers(-(1 << 31), (1 << 31) - 1).map(str),
            st.binary(max_size=20),
            max_size=4,
        ).filter(lambda found: not found.keys() & IDS_WITH_A_NAME),
        min_size=1,
        max_size=5,
    )
)
def test_names_go_there_and_back(found: list[dict[str, bytes]]) -> None:
    rows = [Record(b"k", b"v", tuple(pairs.items())) for pairs in found]
    data = records.write(rows, dialect=DIALECT, register=REGISTER)
    assert [dict(pairs) for pairs in headers(data, register=REGISTER)] == found
    assert (
        records.from_arrow(
            records.to_arrow(data, dialect=DIALECT, register=REGISTER), dialect=DIALECT, register=REGISTER
        )
        == data
    )


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        (None, "headers are NoneType, not .key, value. pairs"),
        ([("a",)], r"header \('a',\) is not a \(key, value\) pair"),
        ([("a", b"", 1)], "is not a .key, value. pair"),
    ],
)
def test_what_is_no_header_is_told_before_it_is_bridged_or_serialized(headers: Any, said: str) -> None:
    with pytest.raises(EncodeError, match=said):
        REGISTER.to_ints(headers)
    with pytest.raises(EncodeError, match=said):
        HeaderSerdes({"a": (bytes, int)}).serialized(headers)
    assert HeaderSerdes({"a": (bytes, int)}).serialized([([], b"")]) == (([], b""),)  # for the writer to refuse
