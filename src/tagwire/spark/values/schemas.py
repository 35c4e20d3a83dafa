"""Columns in the formats of schema registries, Avro, Protobuf and JSON Schema, decoded for Spark.

The driver plans what they are read as; the workers ask the registry for what wrote them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import DataType

from tagwire.errors import ConfigError
from tagwire.spark.columns import HEADERS_TYPE, arrow_type
from tagwire.spark.values.arrow_types import conformed, spark_type
from tagwire.spark.values.column_format import Headers
from tagwire.values.options import ValueSettings

if TYPE_CHECKING:
    import pyarrow as pa

    from tagwire.values.value_decoder import ValueDecoder


_LONGEST: Final = 200


@dataclass(frozen=True)
class SchemaFormat:
    """Values have a schema, which is given or a registry's.

    Attributes:
        decoder: None until it is planned.
    """

    settings: ValueSettings
    decoder: ValueDecoder | None = None

    @property
    def needs_headers(self) -> bool:
        """Whether headers may say which schema wrote a value."""
        return self._planned.needs_headers

    @cached_property
    def type(self) -> DataType:
        """What a value becomes."""
        return spark_type(self._planned.type, self.settings.which)

    def planned(self, topic: str | None) -> SchemaFormat:
        """The format with the schema that it reads by, which stays whatever becomes of its subject.

        Raises:
            ConfigError, ValueSchemaError, SchemaRegistryError: as `plan_decoder`; or Spark has no type for a field.
        """
        from tagwire.values.subjects import subject_of
        from tagwire.values.value_decoder import plan_decoder

        if self.decoder is not None:
            return self
        settings = self.settings
        try:
            if settings.schema is None:
                settings = replace(settings, subject=subject_of(settings, topic))
            found = SchemaFormat(settings, plan_decoder(settings, topic))
        except ConfigError as error:
            raise ConfigError(f"option {error}") from None
        _ = found.type  # raises what is wrong with it here, not in a worker
        return found

    def fixed(self) -> dict[str, str]:
        """The text of a given schema; else the subject and its version, which a registry never changes."""
        if self.settings.schema is not None:
            return {"schema": self.settings.schema}
        return {"subject": self.settings.subject or "", "schema.version": str(self._planned.version)}

    def narrowed(self, fields: Sequence[str]) -> SchemaFormat:
        """The same for some of the fields."""
        return replace(self, decoder=self._planned.select(fields))

    def decoded(self, values: pa.Array, headers: pa.Array | None) -> tuple[pa.Array, pa.Array]:
        """The values, and which rows are broken.

        Raises:
            SchemaRegistryError: the registry cannot be reached, or refuses.
        """
        import pyarrow.compute as pc

        found, bad = self._planned.decode(values, headers)
        found, unfit = conformed(found, self._arrow_type)
        return found, bad if unfit is None else pc.or_(bad, unfit)

    def refusal(self, value: bytes, headers: Headers | None) -> str:
        """Why a value is broken."""
        import pyarrow as pa

        pairs = None if headers is None else [[{"key": key, "value": one} for key, one in headers]]
        column = None if pairs is None else pa.array(pairs, arrow_type(HEADERS_TYPE))
        found, bad = self._planned.decode(pa.array([value], pa.binary()), column)
        if not bad[0].as_py():
            return f"it holds a time that is none of Spark's: {found}"[:_LONGEST]
        return self._planned.refusal(value, headers)

    @cached_property
    def _arrow_type(self) -> pa.DataType:
        return arrow_type(self.type)

    @property
    def _planned(self) -> ValueDecoder:
        assert self.decoder is not None
        return self.decoder
