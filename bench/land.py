"""Reading a topic in Spark against the most that Spark takes from Python.   make bench WHAT=land

tagwire reads a topic of the embedded broker, every column, into Spark's `noop` sink. The ceiling is a data source whose
workers hold an Arrow batch of that topic in memory and hand it over: what is missing to it is fetching, checking and
decoding. Keys of 9 bytes, values of 100 random bytes, none or two headers of about 20 bytes; two partitions, two tasks.
`make bench WHAT=spark` compares with Spark's own connector, on a real Kafka.

Then the job: `tagwire land` makes a table of the topic in micro-batches of several sizes. It is compared with a plain
read that Spark writes as Parquet, from as many tasks as there are partitions: what is missing to that is the shuffle
that makes few files, and what lands each record once.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession
from rounds import alternate, table
from spark_sources import Ceiling, Topic, drain, fill, read

from tagwire.broker import Broker
from tagwire.spark.jobs.land import BatchSettings, land
from tagwire.spark.session import session

ROWS = 2_000_000
WIRE_BYTES = 128 << 10  # in one record batch, as a busy producer makes them
ROUNDS = 7
LAND_ROUNDS = 3
BATCHES = (250_000, 1_000_000, 4_000_000)


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        Broker(folder, fsync="never") as broker,
        session(Path(folder) / "spark.log") as spark,
    ):
        spark.dataSource.register(Ceiling)
        filled: dict[str, int] = {}
        for headers in (0, 2):
            topic = Topic(f"headers-{headers}", ROWS, headers=headers, batch_bytes=WIRE_BYTES)
            rows = filled[topic.name] = fill(broker.bootstrap, topic)
            options = {"includeHeaders": str(headers > 0).lower()}
            sources = {"ceiling": {**options, "rows": str(rows)}, "tagwire": options}
            contenders = {
                source: lambda s=source, g=given, t=topic: read(spark, s, broker.bootstrap, t.name, **g)
                for source, given in sources.items()
            }
            for source, reading in contenders.items():
                counted = reading().count()
                if abs(counted - rows) > len(sources):
                    sys.exit(f"{source} gave {counted} rows of {rows}")
            contenders = {source: lambda r=reading: drain(r()) for source, reading in contenders.items()}
            timings = alternate(contenders, rounds=ROUNDS)
            print(table(f"{headers or 'no'} headers", timings, units=rows, unit="rows"), flush=True)
        landing(spark, broker.bootstrap, "headers-0", filled["headers-0"], Path(folder) / "tables")


def landing(spark: SparkSession, bootstrap: str, topic: str, rows: int, folder: Path) -> None:
    """Times the job; each run makes a table of its own, which is removed."""

    def written() -> None:
        frame = read(spark, "tagwire", bootstrap, topic).select("key", "value", "partition", "offset", "timestamp")
        frame.write.parquet(f"file://{folder}/plain")
        shutil.rmtree(folder / "plain")

    def landed(batch: int) -> None:
        report = land(bootstrap, topic, folder / "landed", batches=BatchSettings(batch_offsets=batch), spark=spark)
        assert report.rows == rows
        files[batch] = report.files
        shutil.rmtree(folder / "landed")

    files: dict[int, int] = {}
    contenders = {"Spark reads and writes": written}
    contenders |= {f"land, {batch:,} a batch": lambda batch=batch: landed(batch) for batch in BATCHES}
    print(table("landing", alternate(contenders, rounds=LAND_ROUNDS), units=rows, unit="rows"))
    print(f"  files of the table: {', '.join(f'{count} by {batch:,}' for batch, count in files.items())}", flush=True)


if __name__ == "__main__":
    main()
