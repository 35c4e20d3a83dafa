"""A batch to be appended: its bytes, and its producer's id, epoch and sequence."""

from __future__ import annotations

from dataclasses import dataclass

from tagwire.records import BatchHeader, RecordBatch, decode_control
from tagwire.records.control import MARKERS


@dataclass(frozen=True, slots=True)
class Marker:
    """The end of a transaction: whether it commits, and the epoch of the coordinator that says so."""

    commit: bool
    coordinator_epoch: int


@dataclass(frozen=True, slots=True)
class Origin:
    """Which producer a batch is of.

    Attributes:
        first_sequence, last_sequence: its records' sequence numbers; -1 for what has none and is not checked, as
            markers, and what the broker itself writes for a producer.
        transactional: whether it belongs to a transaction.
        marker: what it says about a transaction's end, if it is such a batch.
    """

    producer_id: int
    epoch: int
    first_sequence: int = -1
    last_sequence: int = -1
    transactional: bool = False
    marker: Marker | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """One whole, checked record batch of magic 2 that waits for its offsets.

    Attributes:
        data: its bytes.
        last_offset_delta: its last offset, counted from its first.
        max_timestamp: its greatest timestamp, ms; -1 for none.
        origin: the producer it is of; None for one that has no producer id.
        leader_epoch: the epoch in which it was taken, and is refused out of; None for one that goes into any.
    """

    data: memoryview
    last_offset_delta: int
    max_timestamp: int
    origin: Origin | None = None
    leader_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Appended:
    """Where a batch landed: its first offset, and the broker's time (ms) if that is its timestamp, else -1."""

    base_offset: int
    append_time_ms: int


def origin_of(header: BatchHeader, data: memoryview) -> Origin | None:
    """The producer of the batch in `data`, the bytes that `header` was read from; None for one that has none, and for
    the marker of a transaction that compaction emptied.

    Raises:
        DecodeError: a control batch that cannot be read.
    """
    if header.producer_id < 0:
        return None
    marker = None
    if header.is_control:
        record = next(RecordBatch(header.bytes_in(data), 0).records(), None)
        if record is None:
            return None
        control = decode_control(record.key, record.value)
        if control.type in MARKERS and control.message is not None:
            marker = Marker(control.type == "COMMIT", control.message.coordinator_epoch)  # type: ignore[attr-defined]
    return Origin(
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.last_sequence,
        header.is_transactional,
        marker,
    )


def batch_of(header: BatchHeader, data: memoryview, *, checked: bool = True) -> Batch:
    """The batch in `data` for a log. With `checked` off, its sequence numbers are not looked at."""
    origin = origin_of(header, data)
    if origin is not None and not checked:
        origin = Origin(origin.producer_id, origin.epoch, -1, -1, origin.transactional, origin.marker)
    return Batch(data, header.last_offset_delta, header.max_timestamp, origin)
