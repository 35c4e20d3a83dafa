"""Kafka's small text files: checkpoints, properties, a partition's topic id. Source: facts/kafka_protocol.md 5.7.

What a checkpoint and partition.metadata look like stands in records/files. Reading is strict: a file that breaks its
format is a StorageError that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar
from uuid import UUID

from tagwire.broker.storage.files import Files, read_file, replace_file
from tagwire.errors import DecodeError, StorageError
from tagwire.records.files import checkpoints, partition_metadata
from tagwire.records.files.checkpoints import TopicAndPartition

Content = TypeVar("Content")


def write_offsets(files: Files, path: Path, offsets: Mapping[TopicAndPartition, int]) -> None:
    """Write an offset for each topic and partition, as in recovery-point-offset-checkpoint."""
    replace_file(files, path, checkpoints.format_offsets(offsets))


def read_offsets(files: Files, path: Path) -> dict[TopicAndPartition, int]:
    """Offsets by topic and partition; empty when the file is missing or empty."""
    try:
        return _read(path, checkpoints.read_offsets, read_file(files, path))
    except FileNotFoundError:
        return {}


def write_epochs(files: Files, path: Path, epochs: Iterable[tuple[int, int]]) -> None:
    """Write leader epochs and their start offsets, as in leader-epoch-checkpoint."""
    replace_file(files, path, checkpoints.format_epochs(epochs))


def read_epochs(files: Files, path: Path) -> list[tuple[int, int]]:
    """Leader epochs and their start offsets, oldest first; empty when the file is missing or empty."""
    try:
        return [*_read(path, checkpoints.read_epochs, read_file(files, path))]
    except FileNotFoundError:
        return []


def _read(path: Path, reader: Callable[[bytes], Content], data: bytes) -> Content:
    try:
        return reader(data)
    except DecodeError as error:
        raise StorageError(f"{path}: {error}") from None


def write_properties(files: Files, path: Path, properties: Mapping[str, str]) -> None:
    """Write `name=value` lines, as in meta.properties. Names and values here need no escapes."""
    replace_file(files, path, "".join(f"{name}={value}\n" for name, value in properties.items()).encode())


def read_properties(files: Files, path: Path) -> dict[str, str]:
    """The properties in a file; comments and blank lines are skipped.

    Raises:
        FileNotFoundError: there is no such file.
    """
    lines = (line.strip() for line in _read(path, checkpoints.text_of, read_file(files, path)).splitlines())
    pairs = (line.partition("=") for line in lines if line and line[0] not in "#!")
    return {name.strip(): value.strip() for name, _, value in pairs}


def write_topic_id(files: Files, path: Path, topic_id: UUID) -> None:
    """Write partition.metadata."""
    replace_file(files, path, partition_metadata.format_topic_id(topic_id))


def read_topic_id(files: Files, path: Path) -> UUID:
    """The topic id in partition.metadata."""
    try:
        return _read(path, partition_metadata.read_topic_id, read_file(files, path))
    except FileNotFoundError:
        raise StorageError(f"{path} is missing") from None
