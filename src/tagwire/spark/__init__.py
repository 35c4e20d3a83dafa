"""The pipeline on Spark: data sources in `source`, `segments` and `captures`, sinks in `sink`, their use in `jobs`.

Nothing here imports PySpark or pyarrow by itself.
"""
