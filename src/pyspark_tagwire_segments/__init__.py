"""Where Spark finds the format `tagwire-segments` by name: see `pyspark_tagwire`."""

from contextlib import suppress

with suppress(ImportError):  # a PySpark without the data source API, or none at all
    from tagwire.spark.segments.source import SegmentsDataSource as DefaultSource

__all__ = ["DefaultSource"]
