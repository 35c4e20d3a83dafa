"""Kafka's files without a broker.

Segments are read where they lie, record by record or as Arrow: for a backup, for a disk of a broker that is gone, or to
see what a batch looks like. In Spark the same is `format("tagwire-segments")`.
"""

import tempfile
from pathlib import Path

from tagwire.broker import Broker
from tagwire.client import Producer
from tagwire.records import to_arrow
from tagwire.records.files import partitions

with tempfile.TemporaryDirectory() as folder:
    with Broker(folder) as broker, Producer(broker.bootstrap, compression="zstd") as producer:
        for number in range(1000):
            producer.send("flights", b"EWR to ORD", key=b"UA-%d" % number, headers={"origin": b"EWR"})

    # The broker is gone; its files are Kafka's.
    (flights,) = (files for files in partitions(folder) if Path(files.path).name == "flights-0")
    rows = 0
    for segment in flights.segments:
        for position, batch in segment.batches():
            print(f"{segment.path.name} at byte {position}: offsets {batch.base_offset} to {batch.last_offset}")
        table = to_arrow(Path(segment.path).read_bytes())
        rows += table.num_rows

print(f"{rows} records, columns {', '.join(table.schema.names)}")
assert rows == 1000
