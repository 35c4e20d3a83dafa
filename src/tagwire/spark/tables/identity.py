"""What a table was begun with, and what of it a later run may not change."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tagwire.errors import StorageError
from tagwire.spark.tables.table_settings import (
    CORRUPT_OPTIONS,
    NONE,
    TIMES,
    TableSettings,
    partition_columns,
    refuse_partitions,
)

_MESSAGE = re.compile(r'"name"\s*:\s*"(\w+)"')
_SHOWN = 80
_FORMATS = [f"{name}.format" for name in CORRUPT_OPTIONS]


@dataclass(frozen=True)
class Identity:
    """What a table was begun with. A later run has to agree with it.

    Attributes:
        id: unique; written into the table and into its checkpoint.
        cluster_id: of the brokers, as they name themselves; "" when they do not.
        headers: names of the headers that are columns.
        text: whether key and value are strings.
        values: options of the source that decode values and keys; none where both are bytes or text. Their mode may
            change.
        partition_by: the columns that files are kept apart by, with commas; or none.
        topic_id: of the topic (KIP-516); "" where the brokers do not tell.
    """

    id: str
    topic: str
    cluster_id: str
    headers: tuple[str, ...]
    text: bool
    values: dict[str, str] = field(default_factory=dict)
    partition_by: str = NONE
    topic_id: str = ""

    @property
    def folders(self) -> tuple[str, ...]:
        """The columns that files are kept apart by."""
        return partition_columns(self.partition_by)

    @property
    def time_folder(self) -> str | None:
        """The one of them that is made of the timestamp."""
        return next((name for name in self.folders if name in TIMES), None)

    @property
    def corrupt(self) -> dict[str, str]:
        """By column that is decoded, "value" or "key": the column with the bytes of what could not be."""
        return {name: self.values[option] for name, option in CORRUPT_OPTIONS.items() if option in self.values}


def agreed(
    where: str, known: Identity | None, topic: str, cluster_id: str, topic_id: str, settings: TableSettings
) -> Identity:
    """What a table of this topic is, or would be where none is `known`.

    Args:
        where: the table's place, for errors.
        cluster_id, topic_id: "" where the brokers do not tell.
        settings: what of them is None is as the table was begun.

    Raises:
        StorageError: the table is of another topic or cluster, or has other columns.
        ConfigError: a new one cannot be partitioned so.
    """
    partition_by = ",".join(partition_columns(settings.partition_by)) or NONE
    if known is None:
        refuse_partitions(partition_columns(partition_by), settings.headers or ())
        known = Identity(
            uuid.uuid4().hex,
            topic,
            cluster_id,
            tuple(settings.headers or ()),
            bool(settings.text),
            dict(settings.values or {}),
            partition_by,
        )
    if settings.restart and known.topic_id and topic_id and known.topic_id != topic_id:
        # Another id: what is marked of the old topic's offsets says nothing of the new one's.
        known = replace(known, id=uuid.uuid4().hex, topic_id=topic_id)
    _refuse_other_topic(where, known, topic, cluster_id, topic_id)
    if settings.evolve:
        known = _evolved(known, settings)
    _refuse_other_columns(where, known, settings)
    _refuse_other_values(where, known, settings.values)
    return replace(known, topic_id=topic_id or known.topic_id)


def _evolved(known: Identity, settings: TableSettings) -> Identity:
    """The table with further headers, and with values of another schema. Whether the types fit is seen later."""
    headers = known.headers
    if settings.headers is not None and set(headers) <= set(settings.headers):
        headers = tuple(settings.headers)
    values = known.values
    given = settings.values
    if values and given and all(values.get(name) == given.get(name) for name in _FORMATS):
        values = {**given, **{option: values[option] for option in CORRUPT_OPTIONS.values() if option in values}}
    return replace(known, headers=headers, values=values)


def _refuse_other_topic(where: str, known: Identity, topic: str, cluster_id: str, topic_id: str) -> None:
    if known.topic != topic:
        raise StorageError(f"{where}: holds topic {known.topic!r}, not {topic!r}; choose another directory")
    if known.cluster_id and cluster_id and known.cluster_id != cluster_id:
        clusters = f"of cluster {known.cluster_id}, not of {cluster_id}"
        raise StorageError(f"{where}: holds {topic!r} {clusters}; choose another directory")
    if known.topic_id and topic_id and known.topic_id != topic_id:
        raise StorageError(
            f"{where}: holds a topic {topic!r} that was deleted and created again since (its id was "
            f"{known.topic_id}, and is {topic_id}): the offsets landed are of other records; choose another "
            "directory, or option restart to begin again"
        )


def _refuse_other_columns(where: str, known: Identity, settings: TableSettings) -> None:
    headers, text = settings.headers, settings.text
    if headers is not None and tuple(headers) != known.headers:
        raise StorageError(
            f"{where}: was begun with headers {','.join(known.headers) or '(none)'}, "
            f"not {','.join(headers) or '(none)'}; its columns stay as they are"
        )
    if text is not None and text != known.text:
        raise StorageError(
            f"{where}: was begun with key and value as {'text' if known.text else 'bytes'}; its columns stay so"
        )
    if settings.partition_by is not None and partition_columns(settings.partition_by) != known.folders:
        raise StorageError(
            f"{where}: was begun with partition_by={known.partition_by}, not {settings.partition_by}; its files stay "
            "as they are"
        )


def _refuse_other_values(where: str, known: Identity, values: Mapping[str, str] | None) -> None:
    if values is None:
        return
    for name in _FORMATS:
        if name in values and name not in known.values:
            what = f"{name.partition('.')[0]}s"
            raise StorageError(
                f"{where}: was begun with {what} as they are, not decoded by {name}={values[name]}; its columns stay so"
            )
    for name in sorted({**known.values, **values}, key=lambda name: name not in _FORMATS):
        begun, wanted = known.values.get(name), values.get(name)
        if name != "mode" and begun != wanted:
            given, now = _as_given(name, begun), _as_given(name, wanted)
            other = f"another {now}" if given == now else now
            raise StorageError(f"{where}: was begun with {name}={given}, not {other}; its columns stay so")


def _as_given(option: str, value: str | None) -> str:
    """An option's value as people write it: a schema as columns and their types, a spec by its message's name."""
    if value is None:
        return "(none)"
    if option.endswith(".schema") and value.startswith("{"):
        from pyspark.sql.types import StructType

        fields = StructType.fromJson(json.loads(value)).fields
        value = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in fields)
    elif option.endswith(".message") and (named := _MESSAGE.search(value)):
        value = f"spec of {named[1]}"
    return value if len(value) <= _SHOWN else value[:_SHOWN] + "..."
