"""Spark's `from_protobuf`: a program of PySpark 3.4, with it on PYTHONPATH; `../test_spark_protobuf.py` runs it.

Arguments: the jar with `from_protobuf`, and the file to write. Standard input is a pickled list of (FileDescriptorSet,
message, bodies); the file a pickled list of (Spark's type as JSON, values), or of the text of the error.
"""

from __future__ import annotations

import pickle
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import Row, SparkSession
from pyspark.sql.protobuf.functions import from_protobuf


def plain(value: Any) -> Any:
    if isinstance(value, Row):
        return {name: plain(each) for name, each in value.asDict().items()}
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return bytes(value) if isinstance(value, bytearray) else value


def main() -> None:
    builder = SparkSession.builder.master("local[1]").config("spark.jars", sys.argv[1])
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    results: list[Any] = []
    with tempfile.TemporaryDirectory() as folder:
        for number, (files, message, bodies) in enumerate(pickle.load(sys.stdin.buffer)):
            path = Path(folder, str(number))
            path.write_bytes(files)
            frame = spark.createDataFrame([(bytearray(body),) for body in bodies], "value binary").coalesce(1)
            try:
                frame = frame.select(from_protobuf("value", message, str(path)).alias("value"))
                rows = [plain(row.value) for row in frame.collect()]
                results.append((frame.schema["value"].dataType.json(), rows))
            except Exception as error:
                results.append(str(error))
    spark.stop()
    Path(sys.argv[2]).write_bytes(pickle.dumps(results))


if __name__ == "__main__":
    main()
