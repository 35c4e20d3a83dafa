"""What a format has to be able to do for a column, `key` or `value`, to be decoded in the workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from pyspark.sql.types import DataType

if TYPE_CHECKING:
    import pyarrow as pa

Headers = Sequence[tuple[str, bytes | None]]


class ColumnFormat(Protocol):
    """How the bytes of a column become a type of Spark's. Picklable."""

    @property
    def type(self) -> DataType:
        """What the bytes become. Only of a format that is planned."""
        ...

    @property
    def needs_headers(self) -> bool:
        """Whether a record's headers may say how its bytes are to be read. Only of a format that is planned."""
        ...

    def planned(self, topic: str | None) -> ColumnFormat:
        """The format with all that the workers need to know, fixed from now on.

        Args:
            topic: the topic that is read; None where there are several, or it is not known.

        Raises:
            ConfigError, ValueSchemaError, SchemaRegistryError: an option is missing for that; the schema is not there,
                not understood, or has no type in Spark; or its registry is away.
        """
        ...

    def fixed(self) -> dict[str, str]:
        """Options of a planned format, without what they begin with, that mean the same wherever and whenever they are
        read; of those that are given only the ones to be replaced."""
        ...

    def narrowed(self, fields: Sequence[str]) -> ColumnFormat:
        """The same for some of the fields of a struct, in this order."""
        ...

    def decoded(self, values: pa.Array, headers: pa.Array | None) -> tuple[pa.Array, pa.Array]:
        """The values as Arrow has `type`, and which rows are broken. Those and nulls are null.

        Args:
            values: binary.
            headers: of the same records, where they are needed.
        """
        ...

    def refusal(self, value: bytes, headers: Headers | None) -> str:
        """Why a value is broken, in one line."""
        ...
