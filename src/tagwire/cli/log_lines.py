"""What `tagwire log` prints of batches, records and the files beside a log: for people, or as lines of JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tagwire.cli.record_lines import ReadRecord, format_line, lines_for_people
from tagwire.cli.terminal import printable, safe_json, utc
from tagwire.errors import CorruptRecordError

if TYPE_CHECKING:
    from tagwire.records import Record, RecordBatch
    from tagwire.records.files import Fault

_OF_BATCH = (
    "base_offset",
    "last_offset",
    "count",
    "magic",
    "compression",
    "timestamp_type",
    "base_timestamp",
    "max_timestamp",
    "partition_leader_epoch",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "last_sequence",
    "is_transactional",
    "is_control",
    "delete_horizon",
    "crc",
)


def document(**fields: Any) -> str:
    """One line of JSON. Paths are given as text."""
    return safe_json(json.dumps(fields, ensure_ascii=False, separators=(",", ":"), default=str))


def batch_line(path: Path, position: int, batch: RecordBatch, *, as_json: bool) -> str:
    """A batch's header, where it stands, and whether its checksum holds."""
    try:
        batch.verify()
        sound = True
    except CorruptRecordError:
        sound = False
    if as_json:
        told = {name: getattr(batch, name) for name in _OF_BATCH}
        return document(file=path, position=position, size=batch.size_in_bytes, **told, crc_ok=sound)
    parts = [
        f"  {batch.base_offset}-{batch.last_offset}",
        f"at {position}",
        f"{batch.size_in_bytes} bytes",
        f"{batch.count} records",
        batch.compression,
        utc(batch.max_timestamp),
    ]
    if batch.timestamp_type == "LogAppendTime":
        parts.append("append time")
    if batch.partition_leader_epoch >= 0:
        parts.append(f"epoch {batch.partition_leader_epoch}")
    if batch.producer_id >= 0:
        parts.append(f"producer {batch.producer_id}/{batch.producer_epoch}")
    if batch.base_sequence >= 0:
        parts.append(f"sequence {batch.base_sequence}-{batch.last_sequence}")
    parts += [
        text
        for text, holds in (
            ("transactional", batch.is_transactional),
            ("control", batch.is_control),
            (f"delete from {utc(batch.delete_horizon or 0)}", batch.delete_horizon is not None),
            (f"magic {batch.magic}", batch.magic < 2),
            ("CHECKSUM WRONG", not sound),
        )
        if holds
    ]
    return "  ".join(parts)


class RecordLines:
    """How the records of a partition are printed.

    Args:
        topic, partition: of the records; None where no directory names them.
        decode: the internal topic that they are decoded as; None for any other.
        headers: show the headers of records to people too; JSON has them always.
    """

    def __init__(
        self, topic: str | None, partition: int | None, *, decode: str | None, headers: bool, full: bool, as_json: bool
    ) -> None:
        self._topic = topic
        self._partition = partition
        self._decode = decode
        self._headers = headers
        self._as_json = as_json
        self._show = format_line if as_json else lines_for_people(full)

    def line(self, batch: RecordBatch, record: Record) -> str:
        """A record of `batch`, without the line's end."""
        if batch.is_control:
            return self._control(batch, record)
        if self._decode is not None:
            return self._decoded(self._decode, record)
        headers = list(record.headers) if self._headers or self._as_json else []
        return self._show(
            ReadRecord(
                self._topic,
                self._partition,
                record.offset,
                record.timestamp,
                batch.timestamp_type,
                record.key,
                record.value,
                headers,  # type: ignore[arg-type]
            )
        )

    def _control(self, batch: RecordBatch, record: Record) -> str:
        from tagwire.records.control import decode_control

        found = decode_control(record.key, record.value)
        value = None if found.message is None else found.message.to_json(0)
        if self._as_json:
            return document(
                topic=self._topic,
                partition=self._partition,
                offset=record.offset,
                timestamp=record.timestamp,
                control=found.type,
                producer_id=batch.producer_id,
                producer_epoch=batch.producer_epoch,
                value=value,
            )
        who = f"  producer {batch.producer_id}/{batch.producer_epoch}" if batch.producer_id >= 0 else ""
        return f"{self._where(record)}  {found.type}{who}\n  {_text(value)}"

    def _decoded(self, topic: str, record: Record) -> str:
        from tagwire.records.internal_topics import decode_record

        found = decode_record(topic, record.key, record.value).to_json()
        if self._as_json:
            return document(
                topic=self._topic,
                partition=self._partition,
                offset=record.offset,
                timestamp=record.timestamp,
                **found,
            )
        parts = [self._where(record), found["type"] or "unknown"]
        if found["key"] is not None:
            parts.append(_text(found["key"]))
        told = f"cannot be read: {printable(found['error'])}" if "error" in found else _text(found["value"])
        if record.value is None and "error" not in found:
            told = "<deleted>"
        return "  ".join(parts) + f"\n  {told}"

    def _where(self, record: Record) -> str:
        named = "" if self._topic is None else f"{printable(self._topic)}/{self._partition}"
        return f"{named}@{record.offset}  {utc(record.timestamp)}"


def fault_line(fault: Fault, *, as_json: bool) -> str:
    """One thing that is wrong."""
    if as_json:
        return document(file=fault.path, position=fault.position, offset=fault.offset, fault=fault.text)
    return printable(str(fault))


def entry_line(path: Path, entry: dict[str, Any], *, as_json: bool) -> str:
    """An entry of an index, a checkpoint or a snapshot: its fields by name."""
    if as_json:
        return document(file=path, **entry)
    return "  " + "  ".join(f"{name} {printable(str(value))}" for name, value in entry.items())


def _text(value: Any) -> str:
    return safe_json(json.dumps(value, ensure_ascii=False))
