"""Batches one after another in memory, of any format: record batches and message sets, even side by side.

They stand one after another, in a partition's log and in a fetch response; the last one may be cut short, which is
normal there: what is incomplete is left for the next read. Source: docs/record-formats.md#framing.

Magic 2 is a record batch, unless the `dialect` is "int-headers": then it is that format's message. Which one a log
holds is never guessed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from struct import Struct

from tagwire.errors import ConfigError, CorruptRecordError, EncodeError, UnsupportedVersionError
from tagwire.kernel.checksum import checksum
from tagwire.records.batch import (
    APPEND_TIME,
    CRC_AT,
    CRC_FROM,
    HEADER_SIZE,
    PREFIX_SIZE,
    TRANSACTIONAL,
    BatchHeader,
    Data,
    RecordBatch,
)
from tagwire.records.batch_bounds import MAGIC_AT, batch_bounds, check_end, check_record_batch
from tagwire.records.message_set import ENTRY, MAX_OFFSET, TIMESTAMP_AT, MessageEntry, MessageRun
from tagwire.records.register import HeaderRegister

INT_HEADERS = "int-headers"
DIALECTS = (None, INT_HEADERS)

_INT64, _INT32, _CRC, _PRODUCER = Struct(">q"), Struct(">i"), Struct(">I"), Struct(">qhi")
_LAST_DELTA_AT = 23
_EPOCH_AT, _MESSAGE_CRC_AT, _MAX_TIMESTAMP_AT, _PRODUCER_AT = 12, 12, 35, 43
_LOW_ATTRIBUTES_AT, _MESSAGE_ATTRIBUTES_AT = 22, 17


def read(
    data: Data, dialect: str | None = None, *, verify: bool = True, register: HeaderRegister | None = None
) -> Iterator[RecordBatch]:
    """The complete batches in `data`; a partial last one is left out. `verify` checks each checksum first.

    A message of a message set is a batch of one record, a wrapper of compressed ones a batch of them all: see
    `MessageEntry`; `read_coalesced` is quicker with them. `register`: by which records of the dialect int-headers name
    their int keys. Raises CorruptRecordError for a broken batch, ConfigError for an unknown dialect, or a register
    without that one.
    """
    view = memoryview(data).cast("B")
    check_dialect(dialect, register)
    for position in _positions(view, dialect):
        entry = _entry(view, position, dialect)
        if entry is not None:
            entry.register = register
        batch = entry or RecordBatch(view, position)
        if verify:
            batch.verify()
        yield batch


def read_coalesced(
    data: Data,
    dialect: str | None = None,
    *,
    verify: bool = True,
    register: HeaderRegister | None = None,
    max_decompressed: int | None = None,
) -> Iterator[RecordBatch]:
    """What `read` gives, for those who look at records only: uncompressed messages that follow one another are one
    batch, as many as take 256 KiB, unless one of them is broken.

    `max_decompressed`: most bytes that a wrapper may become (None: 64 times the compressed and 1 MiB).
    """
    view = memoryview(data).cast("B")
    check_dialect(dialect, register)
    at = 0
    if dialect is None:
        for position, size, magic in batch_bounds(view):
            if magic < 2:
                break  # a message set is read below, and what comes behind it
            check_record_batch(size, position)
            record_batch = RecordBatch(view, position)
            if verify:
                record_batch.verify()
            yield record_batch
            at = position + size
        else:
            if at < len(view):
                check_end(view, at)
            return
    while (header := run_at(view, at, dialect, max_decompressed)) is not None:
        after = at + header.size
        if isinstance(header, MessageRun) and not header.is_sound:
            yield from read(view[at:after], dialect, verify=verify, register=register)
        else:
            batch = header if isinstance(header, MessageEntry) else RecordBatch(view, at)
            if isinstance(batch, MessageEntry):
                batch.register = register
            if verify:
                batch.verify()
            yield batch
        at = after


def batch_headers(
    data: Data,
    dialect: str | None = None,
    *,
    verify: bool = False,
    start: int = 0,
    max_decompressed: int | None = None,
) -> Iterator[BatchHeader]:
    """The headers of the complete batches in `data`, one after another; stops silently at a partial last one.

    `start` is where the first one stands. `verify` computes each checksum into `crc_ok`. An entry of a message set is a
    `MessageEntry`, which may have to be decompressed to tell how many records it has: `max_decompressed` bounds that.
    Raises CorruptRecordError for a header that contradicts itself, ConfigError for an unknown dialect.
    """
    view = memoryview(data).cast("B")
    for position in _positions(view, dialect, start):
        entry = _entry(view, position, dialect)
        if entry is not None:
            entry.max_decompressed = max_decompressed
        header = entry or BatchHeader(view, position)
        if verify:
            header.crc_ok = header.checksum(view) == header.crc
        yield header


def run_at(
    data: memoryview, start: int, dialect: str | None = None, max_decompressed: int | None = None
) -> BatchHeader | None:
    """The complete batch at `start`, or as many uncompressed messages of a message set as are read as one batch.

    None where there is nothing complete. Takes and raises what `batch_headers` does.
    """
    header = next(batch_headers(data, dialect, start=start, max_decompressed=max_decompressed), None)
    if isinstance(header, MessageEntry) and header.compression == "none":
        run = MessageRun(data, header)
        # An offset after which there is none is not looked at by a run: entries are read one by one up to it.
        return run if run.count > 1 and run.last_offset < MAX_OFFSET else header
    return header


def next_offset(data: Data, dialect: str | None = None) -> int | None:
    """The offset after the last complete batch in `data`: where a consumer goes on. None when there is no such batch.

    Raises as `batch_headers` does.
    """
    last = None
    for header in batch_headers(data, dialect):
        last = header
    return None if last is None else last.next_offset


def assign_offsets(
    batch: bytearray | memoryview,
    base_offset: int,
    leader_epoch: int,
    dialect: str | None = None,
    *,
    max_decompressed: int | None = None,
) -> None:
    """Gives the batch at the start of `batch`, which must be writable, its offsets in a log.

    Base offset and partition leader epoch stand outside the checksum, so nothing else changes; of a record batch only
    the header need be there. A message set has no leader epoch. A wrapper of magic 1 or of the int-headers format is
    decompressed to learn how many offsets it takes; `max_decompressed` bounds that.

    Raises UnsupportedVersionError for a wrapper of magic 0: the offsets inside are absolute, so it must be written
    anew; CorruptRecordError for a wrapper that cannot be read; EncodeError for an offset or epoch that is none;
    ConfigError for an unknown dialect. The batch is then as it was.
    """
    view = _writable(batch, dialect)
    entry = _entry(view, 0, dialect)
    last = base_offset + (_INT32.unpack_from(view, _LAST_DELTA_AT)[0] if entry is None else 0)
    if not 0 <= base_offset <= last < MAX_OFFSET:
        raise EncodeError(f"offsets {base_offset} to {last} are out of range")
    if entry is None:
        _put(_INT32, view, _EPOCH_AT, leader_epoch)
        _INT64.pack_into(batch, 0, base_offset)
    elif entry.magic == 0 and entry.compression != "none":
        raise UnsupportedVersionError("compressed messages of magic 0 hold their offsets inside, and cannot be moved")
    else:
        entry.max_decompressed = max_decompressed
        last += entry.last_offset_delta
        if last >= MAX_OFFSET:
            raise EncodeError(f"offsets {base_offset} to {last} are out of range")
        _INT64.pack_into(batch, 0, last)


def set_append_time(
    batch: bytearray | memoryview, timestamp: int, rest: Data = b"", dialect: str | None = None
) -> None:
    """Gives the batch at the start of `batch`, which must be writable, the time (ms) at which it was appended.

    Timestamp type and greatest timestamp change, and the checksum over them; the records stay as they are, and readers
    give each of them that time. `rest`: what follows `batch` of the same record batch, of which `batch` may then be
    only the header.

    Raises UnsupportedVersionError for magic 0, which has no timestamps; EncodeError for a time of more than 64 bits;
    ConfigError for an unknown dialect. The batch is then as it was.
    """
    view = _writable(batch, dialect)
    if view[MAGIC_AT] == 2 and dialect is None:
        _put(_INT64, view, _MAX_TIMESTAMP_AT, timestamp)
        batch[_LOW_ATTRIBUTES_AT] |= APPEND_TIME
        size = len(view) if len(rest) else PREFIX_SIZE + _INT32.unpack_from(view, 8)[0]
        _CRC.pack_into(batch, CRC_AT, checksum(rest, checksum(view[CRC_FROM:size])))
        return
    entry = MessageEntry(view, 0)
    if entry.magic == 0:
        raise UnsupportedVersionError("messages of magic 0 have no timestamp")
    _put(_INT64, view, TIMESTAMP_AT, timestamp)
    batch[_MESSAGE_ATTRIBUTES_AT] |= APPEND_TIME
    _CRC.pack_into(batch, _MESSAGE_CRC_AT, entry.checksum())


def set_max_timestamp(batch: bytearray | memoryview, timestamp: int) -> None:
    """Makes `timestamp` (ms) what the record batch that is all of `batch`, which must be writable, says is the greatest
    of its records. The checksum changes with it; the records stay as they are.

    Raises CorruptRecordError for what is too short for a header, or of another magic; EncodeError for a time of more
    than 64 bits.
    """
    view = _writable(batch, None)
    if view[MAGIC_AT] != 2:
        raise CorruptRecordError(f"a message set of magic {view[MAGIC_AT]} has no header of a record batch")
    _put(_INT64, view, _MAX_TIMESTAMP_AT, timestamp)
    _CRC.pack_into(view, CRC_AT, checksum(view[CRC_FROM:]))


def set_producer(
    batch: bytearray | memoryview, producer_id: int, producer_epoch: int, base_sequence: int, *, transactional: bool
) -> None:
    """Makes the record batch that is all of `batch`, which must be writable, one of a producer's, from `base_sequence`
    on. The checksum changes with it; the records stay as they are.

    Raises CorruptRecordError for what is too short for a header, or of another magic; EncodeError for a number that has
    no room in it.
    """
    view = _writable(batch, None)
    if view[MAGIC_AT] != 2:
        raise CorruptRecordError(f"a message set of magic {view[MAGIC_AT]} has no producer")
    _put(_PRODUCER, view, _PRODUCER_AT, producer_id, producer_epoch, base_sequence)
    view[_LOW_ATTRIBUTES_AT] = view[_LOW_ATTRIBUTES_AT] & ~TRANSACTIONAL | (TRANSACTIONAL if transactional else 0)
    _CRC.pack_into(view, CRC_AT, checksum(view[CRC_FROM:]))


def _put(form: Struct, view: memoryview, at: int, *numbers: int) -> None:
    """Writes numbers into a header, or leaves it as it was: `pack_into` writes some of them before it raises."""
    try:
        view[at : at + form.size] = form.pack(*numbers)
    except struct.error as error:
        raise EncodeError(f"a batch header cannot hold {', '.join(map(str, numbers))}: {error}") from None


def _writable(batch: bytearray | memoryview, dialect: str | None) -> memoryview:
    """A view of `batch`, which holds a header at least."""
    check_dialect(dialect)
    view = memoryview(batch)
    is_batch = dialect is None and len(view) > MAGIC_AT and view[MAGIC_AT] == 2
    if len(view) < (HEADER_SIZE if is_batch else ENTRY.size):
        raise CorruptRecordError(f"{len(view)} bytes do not hold the header of a batch")
    return view


def _entry(view: memoryview, position: int, dialect: str | None) -> MessageEntry | None:
    """The entry of a message set at `position`; None where a record batch stands there."""
    return MessageEntry(view, position) if dialect or view[position + MAGIC_AT] < 2 else None


def check_dialect(dialect: str | None, register: object = None) -> None:
    """Raises ConfigError for a dialect there is none of, and for a register of a format without int keys."""
    if dialect not in DIALECTS:
        raise ConfigError(f"dialect {dialect!r} is unknown; allowed: None, {INT_HEADERS!r}")
    if register is not None and dialect is None:
        raise ConfigError(f"a register names header keys of the dialect {INT_HEADERS}, and no dialect is given")


def _positions(view: memoryview, dialect: str | None, at: int = 0) -> Iterator[int]:
    """Where each complete batch from `at` on starts."""
    check_dialect(dialect)
    for position, size, magic in batch_bounds(view, at):
        if magic == 2 and not dialect:
            check_record_batch(size, position)
        yield position
        at = position + size
    check_end(view, at)
