"""The pipeline on Spark: `tagwire.spark.topic` is the data source, `tagwire.spark.land` the job that lands a topic.

Nothing here imports PySpark or pyarrow by itself.
"""
