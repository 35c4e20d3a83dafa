"""Kafka's small text files: checkpoints, properties, a partition's topic id. Source: facts/kafka_protocol.md 5.7.

Reading is strict: a file that breaks its format is a StorageError that names it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from pathlib import Path
from uuid import UUID

from tagwire.broker.files import Files, read_file, replace_file
from tagwire.errors import StorageError

TopicAndPartition = tuple[str, int]


def write_offsets(files: Files, path: Path, offsets: Mapping[TopicAndPartition, int]) -> None:
    """Write `<topic> <partition> <offset>` lines, as in recovery-point-offset-checkpoint."""
    lines = (f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items()))
    _write_checkpoint(files, path, lines)


def read_offsets(files: Files, path: Path) -> dict[TopicAndPartition, int]:
    """Offsets by topic and partition; empty when the file is missing or empty."""
    return {
        (topic, _number(path, partition)): _number(path, offset)
        for topic, partition, offset in _read_checkpoint(files, path, 3)
    }


def write_epochs(files: Files, path: Path, epochs: Iterable[tuple[int, int]]) -> None:
    """Write `<leader epoch> <start offset>` lines, as in leader-epoch-checkpoint."""
    _write_checkpoint(files, path, (f"{epoch} {offset}" for epoch, offset in epochs))


def read_epochs(files: Files, path: Path) -> list[tuple[int, int]]:
    """Leader epochs and their start offsets, oldest first; empty when the file is missing or empty."""
    return [(_number(path, epoch), _number(path, offset)) for epoch, offset in _read_checkpoint(files, path, 2)]


def _write_checkpoint(files: Files, path: Path, lines: Iterable[str]) -> None:
    body = list(lines)
    replace_file(files, path, "\n".join(["0", str(len(body)), *body, ""]).encode())


def _read_checkpoint(files: Files, path: Path, columns: int) -> list[list[str]]:
    try:
        lines = _text(path, read_file(files, path)).splitlines()
    except FileNotFoundError:
        return []
    if not lines:
        return []
    rows = [line.split() for line in lines[2:]]
    if lines[0] != "0" or len(lines) < 2 or lines[1] != str(len(rows)) or any(len(row) != columns for row in rows):
        raise StorageError(f"{path}: not a checkpoint of version 0 with as many lines of {columns} columns as it says")
    return rows


def _number(path: Path, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise StorageError(f"{path}: {text!r} stands where a number should") from None


def _text(path: Path, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise StorageError(f"{path}: not a text file") from None


def write_properties(files: Files, path: Path, properties: Mapping[str, str]) -> None:
    """Write `name=value` lines, as in meta.properties. Names and values here need no escapes."""
    replace_file(files, path, "".join(f"{name}={value}\n" for name, value in properties.items()).encode())


def read_properties(files: Files, path: Path) -> dict[str, str]:
    """The properties in a file; comments and blank lines are skipped.

    Raises:
        FileNotFoundError: there is no such file.
    """
    lines = (line.strip() for line in _text(path, read_file(files, path)).splitlines())
    pairs = (line.partition("=") for line in lines if line and line[0] not in "#!")
    return {name.strip(): value.strip() for name, _, value in pairs}


def uuid_text(value: UUID) -> str:
    """A uuid as Kafka writes it: 22 characters of URL-safe base64."""
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


def parse_uuid(text: str) -> UUID:
    """The uuid that `uuid_text` wrote. ValueError for anything else."""
    try:
        data = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except binascii.Error:
        data = b""
    if len(data) != 16:
        raise ValueError(f"{text!r} is not a uuid of 22 base64 characters")
    return UUID(bytes=data)


def write_topic_id(files: Files, path: Path, topic_id: UUID) -> None:
    """Write partition.metadata."""
    replace_file(files, path, f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode())


def read_topic_id(files: Files, path: Path) -> UUID:
    """The topic id in partition.metadata."""
    try:
        lines = (line.partition(":") for line in _text(path, read_file(files, path)).splitlines())
        found = {name.strip(): value.strip() for name, _, value in lines}
        topic_id = parse_uuid(found["topic_id"])
        if int(found["version"]) < 0 or not topic_id.int:
            raise ValueError("the version is negative or the id is zero")
    except FileNotFoundError:
        raise StorageError(f"{path} is missing") from None
    except (KeyError, ValueError) as error:
        raise StorageError(f"{path}: not a partition.metadata file: {error}") from None
    return topic_id
