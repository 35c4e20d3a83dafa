"""Any file beside a log, by its name: what stands in it, as rows of named values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tagwire.errors import DecodeError, TagwireError
from tagwire.records.files.checkpoints import read_epochs, read_offsets
from tagwire.records.files.faults import Fault
from tagwire.records.files.index_entries import Entries
from tagwire.records.files.names import Kind, kind_of, offset_of
from tagwire.records.files.offset_index import read_offset_index
from tagwire.records.files.opening import bytes_of
from tagwire.records.files.partition_metadata import read_topic_id, uuid_text
from tagwire.records.files.producer_snapshot import VERSION, read_producer_snapshot
from tagwire.records.files.time_index import read_time_index
from tagwire.records.files.transaction_index import read_transaction_index

Row = dict[str, Any]


def rows_of(path: Path, kind: Kind) -> Iterator[Row]:
    """What stands in a file of a kind that `READ` has.

    Raises:
        OSError: it cannot be read.
        DecodeError: it is broken; the rows before that are given first.
        UnsupportedVersionError: its version is not known.
    """
    try:
        yield from READ[kind](bytes_of(path), offset_of(path.name) or 0)
    except DecodeError as error:
        raise error.under(path.name) from None


def check_side_file(path: Path) -> Iterator[Fault]:
    """What is wrong with a file that `READ` has a kind for, by itself. Raises OSError."""
    try:
        for _ in rows_of(path, kind_of(path.name)):
            pass
    except TagwireError as error:
        yield Fault(path, str(error))


def _entries(found: Entries[Any]) -> Iterator[Row]:
    for entry in found.entries:
        yield entry._asdict()
    if found.fault is not None:
        raise DecodeError(found.fault)


def _epochs(data: bytes, _: int) -> Iterator[Row]:
    for entry in read_epochs(data):
        yield entry._asdict()


def _offsets(data: bytes, _: int) -> Iterator[Row]:
    for (topic, partition), offset in read_offsets(data).items():
        yield {"topic": topic, "partition": partition, "offset": offset}


def _producers(data: bytes, _: int) -> Iterator[Row]:
    yield from read_producer_snapshot(data).to_json(VERSION)["producerEntries"]


def _topic_id(data: bytes, _: int) -> Iterator[Row]:
    yield {"topic_id": uuid_text(read_topic_id(data))}


READ: dict[Kind, Callable[[bytes, int], Iterator[Row]]] = {
    "index": lambda data, base_offset: _entries(read_offset_index(data, base_offset)),
    "timeindex": lambda data, base_offset: _entries(read_time_index(data, base_offset)),
    "txnindex": lambda data, base_offset: _entries(read_transaction_index(data, base_offset)),
    "epochs": _epochs,
    "offsets": _offsets,
    "producers": _producers,
    "topic-id": _topic_id,
}
"""Of each kind of file beside a log, its rows, given its bytes and the offset that it is named after."""
