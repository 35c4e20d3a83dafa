"""How a stream that cannot be read says why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from tagwire.errors import TagwireError
from tagwire.spark.failure import without_tracebacks

if TYPE_CHECKING:
    import pyarrow as pa


@without_tracebacks
class RefusedStreamReader(DataSourceStreamReader):
    """Stands in for a stream reader whose options are wrong, or of a format without one: every method raises the error.

    When making a reader raises, Spark reports that it could not stop it, on top of the cause or instead of it.
    """

    def __init__(self, error: TagwireError) -> None:
        self.error = error

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Raises the error."""
        raise self.error

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802
        """Raises the error."""
        raise self.error

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Raises the error."""
        raise self.error

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Raises the error."""
        raise self.error
