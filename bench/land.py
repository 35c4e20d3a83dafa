"""Reading a topic in Spark against the most that Spark takes from Python.   make bench WHAT=land

tagwire reads a topic of the embedded broker, every column, into Spark's `noop` sink. The ceiling is a data source whose
workers hold an Arrow batch of that topic in memory and hand it over: what is missing to it is fetching, checking and
decoding. Keys of 9 bytes, values of 100 random bytes, none or two headers of about 20 bytes; two partitions, two tasks.
`make bench WHAT=spark` compares with Spark's own connector, on a real Kafka.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from rounds import alternate, table
from spark_sources import Ceiling, Topic, drain, fill, read

from tagwire.broker import Broker
from tagwire.spark.session import session

ROWS = 2_000_000
WIRE_BYTES = 128 << 10  # in one record batch, as a busy producer makes them
ROUNDS = 7


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        Broker(folder, fsync="never") as broker,
        session(Path(folder) / "spark.log") as spark,
    ):
        spark.dataSource.register(Ceiling)
        for headers in (0, 2):
            topic = Topic(f"headers-{headers}", ROWS, headers=headers, batch_bytes=WIRE_BYTES)
            rows = fill(broker.bootstrap, topic)
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


if __name__ == "__main__":
    main()
