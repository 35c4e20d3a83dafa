"""Where Spark finds the format `tagwire-capture` by name: see `pyspark_tagwire`."""

from contextlib import suppress

with suppress(ImportError):  # a PySpark without the data source API, or none at all
    from tagwire.spark.captures import CaptureDataSource as DefaultSource

__all__ = ["DefaultSource"]
