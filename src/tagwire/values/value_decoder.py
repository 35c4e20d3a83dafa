"""Columns of values to typed columns: each value by the schema that wrote it, all of them to one reader's type.

What is read is settled where a read is planned; it is pickled to the processes that read, each of which asks the
registry for a writer's schema once.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from tagwire.errors import ConfigError, DecodeError, SchemaRegistryError, ValueSchemaError
from tagwire.escaping import told
from tagwire.extras import Needs
from tagwire.values.body_format import BodyDecoder, ReaderSchema
from tagwire.values.formats import body_format, format_of
from tagwire.values.framing import (
    HEADERS,
    Framed,
    Framing,
    Split,
    counted,
    header_of,
    read_framing,
    split_headers,
    split_prefixes,
)
from tagwire.values.options import HEADER, PREFIX, ValueSettings
from tagwire.values.registry.schema_registry import MissingReferenceError, shared_registry
from tagwire.values.schemas import PROTOBUF, RegisteredSchema, Schema
from tagwire.values.subjects import subject_of, version_of

with Needs("arrow"):
    import pyarrow as pa
    import pyarrow.compute as pc

_KEPT: Final = 1000
_MOST_UNKNOWN: Final = 100
"""Ids in one column that the registry does not know: after so many it is not asked of further ones. Values that were
never framed can hold as many ids as there are values."""


@dataclass(frozen=True)
class ValueDecoder:
    """How a column is decoded. Picklable; `plan_decoder` makes it.

    Attributes:
        reader: the schema that values are read as, and `schema` its text with all that it refers to.
        fields: which of a struct's fields are read, in their order; None is all.
    """

    settings: ValueSettings
    schema: Schema
    reader: ReaderSchema
    fields: tuple[str, ...] | None = None
    version: int | None = None

    @property
    def type(self) -> pa.DataType:
        """What a value becomes."""
        whole = self.reader.type
        return whole if self.fields is None else pa.struct([whole.field(name) for name in self.fields])

    @property
    def needs_headers(self) -> bool:
        """Whether headers say which schema wrote a value, or may say it."""
        return self.settings.registry is not None and self.settings.location != PREFIX

    def select(self, fields: Sequence[str]) -> ValueDecoder:
        """What decodes some of a struct's fields and no other.

        Raises:
            ConfigError: a value is no struct, or has no such field.
        """
        if not pa.types.is_struct(self.reader.type):
            raise ConfigError(f"{self.settings.which}: is {self.reader.type}, which has no fields")
        there = [field.name for field in self.reader.type]
        for name in fields:
            if name not in there:
                raise ConfigError(f"{self.settings.which}: has no field {name!r}; there are {', '.join(there)}")
        return replace(self, fields=tuple(fields))

    def decode(self, values: pa.Array, headers: pa.Array | None = None) -> tuple[pa.Array, pa.Array]:
        """Values of `type`, and a boolean array of the rows that are bad. Those and nulls are null.

        Args:
            values: binary.
            headers: a list of structs of key and value for each row; needed where `needs_headers`, None is no headers.

        Raises:
            SchemaRegistryError: the registry cannot be reached, or refuses. An id that it does not know is a bad row.
        """
        values = _binary(values)
        if self.settings.registry is None:
            return self._bare().decode(values)
        groups, unframed = self._split(values, headers)
        if len(groups) == 1 and groups[0].rows is None:
            return self._decoded(groups[0], _Unknown())
        return self._put_together(values, groups, unframed)

    def refusal(self, value: bytes, headers: Sequence[tuple[str, bytes | None]] | None = None) -> str:
        """Why a value is bad, in one line.

        Raises:
            SchemaRegistryError: the registry cannot be reached, or refuses.
        """
        if self.settings.registry is None:
            return self._bare().refusal(value)
        indexed = self.schema.schema_type == PROTOBUF
        name = HEADERS[self.settings.which]
        frame = None if self.settings.location == PREFIX else header_of(headers, name)
        try:
            if frame is not None:
                framing, body = read_framing(frame, indexed)[0], value
            elif self.settings.location == HEADER:
                return f"its record has no header {name}, which would name its schema"
            else:
                framing, size = read_framing(value, indexed)
                body = value[size:]
        except DecodeError as error:
            return f"header {name}: {error}" if frame is not None else str(error)
        found = self._decoder(framing, _Unknown())
        return f"{framing}: {found if isinstance(found, str) else found.refusal(body)}"

    # -----------------------------------------------------------------------------------------------------------------

    def _split(self, values: pa.Array, headers: pa.Array | None) -> tuple[list[Framed], pa.Array]:
        indexed = self.schema.schema_type == PROTOBUF
        none = pa.array([], pa.int64())
        if self.settings.location == PREFIX or headers is None:
            if self.settings.location == HEADER:
                return [], pc.indices_nonzero(values.is_valid()).cast(pa.int64())
            split = split_prefixes(values, indexed)
            return split.groups, split.unframed
        by_header, others = split_headers(values, headers, HEADERS[self.settings.which], indexed)
        if self.settings.location == HEADER:
            left = pc.indices_nonzero(values.is_valid()).cast(pa.int64()) if others is None else others
            by_prefix = Split([], left)
        elif others is None:
            by_prefix = split_prefixes(values, indexed)
            return by_prefix.groups, by_prefix.unframed
        elif len(others):
            inner = split_prefixes(values.take(others), indexed)
            moved = [
                Framed(each.framing, others if each.rows is None else others.take(each.rows), each.bodies)
                for each in inner.groups
            ]
            by_prefix = Split(moved, others.take(inner.unframed))
        else:
            by_prefix = Split([], none)
        return by_header.groups + by_prefix.groups, pa.concat_arrays([by_header.unframed, by_prefix.unframed])

    def _decoded(self, group: Framed, unknown: _Unknown) -> tuple[pa.Array, pa.Array]:
        decoder = self._decoder(group.framing, unknown)
        if isinstance(decoder, str):
            return pa.nulls(len(group.bodies), self.type), group.bodies.is_valid()
        return decoder.decode(group.bodies)

    def _put_together(self, values: pa.Array, groups: list[Framed], unframed: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Groups in the order of their rows. Those of the most rows first: if some id is not asked for, it is a rare
        one."""
        unknown = _Unknown()
        found = []
        bads = []
        rows = []
        for group in sorted(groups, key=lambda each: -len(each.bodies)):
            decoded, bad = self._decoded(group, unknown)
            found.append(decoded)
            bads.append(bad)
            rows.append(counted(len(values)) if group.rows is None else group.rows)
        nulls = pc.indices_nonzero(values.is_null()).cast(pa.int64())
        if any(group.rows is None for group in groups):
            nulls = nulls.slice(0, 0)
        rows += [unframed, nulls]
        found.append(pa.nulls(len(unframed) + len(nulls), self.type))
        bads += [_repeated(True, len(unframed)), _repeated(False, len(nulls))]
        order = pc.array_sort_indices(pa.concat_arrays(rows))
        return pa.concat_arrays(found).take(order), pa.concat_arrays(bads).take(order)

    def _bare(self) -> BodyDecoder:
        key = (self.settings.format, self.schema, self.settings.message, self.fields)
        found = _decoders.get(key)
        if found is None:
            indexes = body_format(self.settings.format).message_indexes(self.schema, self.settings.message)
            found = _decoders.put(key, self.reader.decoder(self.schema, self.fields, indexes))
        assert not isinstance(found, str)
        return found

    def _decoder(self, framing: Framing, unknown: _Unknown) -> BodyDecoder | str:
        """What decodes bodies of a framing, or why nothing does."""
        assert self.settings.registry is not None
        key = (self.settings.registry, self.settings.message, self.schema, self.fields, framing)
        found = _decoders.get(key)
        if found is not None:
            return found
        if unknown.count >= _MOST_UNKNOWN:
            return f"not asked for: the registry knew none of {unknown.count} other ids in the same column"
        registry = shared_registry(self.settings.registry)
        try:
            if isinstance(framing.schema, int):
                writer = registry.by_id(framing.schema).schema
            else:
                writer = registry.by_guid(framing.schema).schema
        except SchemaRegistryError as error:
            if not error.not_found:
                raise
            unknown.count += 1
            return "the registry has no such schema"
        except MissingReferenceError as error:
            return str(error)
        except ValueSchemaError as error:
            return _decoders.put(key, str(error))
        if writer.schema_type != self.schema.schema_type:
            return _decoders.put(key, f"is {writer.schema_type}, not {self.schema.schema_type}")
        try:
            return _decoders.put(key, self.reader.decoder(writer, self.fields, framing.message_indexes))
        except ValueSchemaError as error:
            return _decoders.put(key, str(error))


def plan_decoder(settings: ValueSettings, topic: str | None) -> ValueDecoder:
    """How the values or keys of a topic are decoded, by a given schema or the subject's.

    Args:
        topic: what names the subject; None where there is more than one, and the subject or the schema is given.

    Raises:
        ConfigError: the settings name no subject.
        ValueSchemaError: the schema cannot be understood, or has no column type.
        SchemaRegistryError: the registry cannot be reached, refuses, or has no such subject or version.
    """
    format_ = body_format(settings.format)
    schema, version = reader_schema(settings, topic)
    return ValueDecoder(settings, schema, format_.reader_schema(schema, settings.message), None, version)


def reader_schema(settings: ValueSettings, topic: str | None) -> tuple[Schema, int | None]:
    """The schema that settings mean, and its version where the subject's is meant. Raises as `plan_decoder`."""
    if settings.schema is not None:
        references: tuple[tuple[str, Schema], ...] = ()
        if settings.references and settings.registry is not None:
            references = shared_registry(settings.registry).resolved(settings.references)
        return Schema(settings.schema, settings.schema_type, references), None
    found = registered_schema(settings, topic)
    return found.schema, found.version


def registered_schema(settings: ValueSettings, topic: str | None) -> RegisteredSchema:
    """The version of a subject that settings mean. Raises as `plan_decoder`."""
    assert settings.registry is not None
    registry = shared_registry(settings.registry)
    if settings.schema_id is not None:
        found, named = registry.by_id(settings.schema_id), f"schema id {settings.schema_id}"
    else:
        subject = subject_of(settings, topic)
        found, named = version_of(registry, subject, settings.version), f"subject {told(subject)}"
    if found.schema.schema_type != settings.schema_type:
        raise ConfigError(
            f"{settings.which}.format={settings.format}: {named} has {format_of(found.schema.schema_type)}"
        )
    return found


class _Unknown:
    """How many ids of a column the registry did not know."""

    def __init__(self) -> None:
        self.count = 0


class _Decoders:
    """What decodes, by the schemas of writer and reader: the last used ones of the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[object, ...], BodyDecoder | str] = OrderedDict()

    def get(self, key: tuple[object, ...]) -> BodyDecoder | str | None:
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def put(self, key: tuple[object, ...], value: BodyDecoder | str) -> BodyDecoder | str:
        with self._lock:
            self._kept[key] = value
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return value

    def forked(self) -> None:
        """A thread that the child does not have may have held the lock."""
        self._lock = threading.Lock()


_decoders: Final = _Decoders()
os.register_at_fork(after_in_child=_decoders.forked)


def _binary(values: pa.Array) -> pa.Array:
    if pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
        return values
    return values.cast(pa.binary())


def _repeated(value: bool, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value), count)
