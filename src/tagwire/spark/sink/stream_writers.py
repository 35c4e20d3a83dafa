"""Streaming writes. This module needs PySpark 4.1: older ones hand rows over as Python objects."""

from __future__ import annotations

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from tagwire.spark.sink.writers import AtLeastOnceWriter


class StreamWriter(AtLeastOnceWriter, DataSourceStreamArrowWriter):
    """A streaming write at least once: a micro-batch that Spark runs again is written again."""

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Nothing is left to do: each task's rows were acknowledged before it ended."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Nothing can be taken back."""
