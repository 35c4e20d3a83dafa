"""Where Spark finds the format `tagwire` by name: it looks for `DefaultSource` in every top-level module `pyspark_*`.

Every user of any Python data source imports this module, so it is cheap and never raises.
Source: pyspark.sql.worker.lookup_data_sources.
"""

from contextlib import suppress

with suppress(ImportError):  # a PySpark without the data source API, or none at all
    from tagwire.spark.source.topic import TopicDataSource as DefaultSource

__all__ = ["DefaultSource"]
