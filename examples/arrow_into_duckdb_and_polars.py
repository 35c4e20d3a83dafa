"""Arrow into DuckDB and Polars.

A reader gives Arrow record batches. DuckDB asks them in SQL and Polars takes them as a frame, neither of them row by
row. Needs `pip install duckdb polars` beside `tagwire[arrow]`.
"""

import duckdb
import polars as pl
import pyarrow as pa

from tagwire.broker import Broker
from tagwire.client import Producer, Reader

with Broker() as broker:
    with Producer(broker.bootstrap) as producer:
        for number in range(10_000):
            producer.send("flights", b"%d" % (number % 7), key=b"UA" if number % 3 else b"DL")
    with Reader(broker.bootstrap, "flights", stop_at_end=True) as reader:
        flights = pa.Table.from_batches(reader)

by_carrier = duckdb.sql("SELECT decode(key) AS carrier, count(*) AS flights FROM flights GROUP BY 1 ORDER BY 1")
print(by_carrier.fetchall())
assert by_carrier.fetchall() == [("DL", 3334), ("UA", 6666)]

frame = pl.from_arrow(flights.select(["key", "value", "offset"]))
assert isinstance(frame, pl.DataFrame)
delays = frame.with_columns(pl.col("value").cast(pl.String).cast(pl.Int64)).group_by("key").agg(pl.col("value").mean())
print(delays.sort("key"))
assert delays.height == 2
