"""Claim: values behind a schema registry reach Spark as typed columns faster than by Spark's own functions or by UDFs.

    make bench WHAT=values          python bench/values.py --scale 0.1 --rounds 3 --cases avro5,avro30

One real Apache Kafka, from its jars, and a registry on loopback; all contenders in one session with the same settings,
taking turns, into Spark's `noop` sink: the offset, and the value as a struct. Spark's connector with `from_avro` or
`from_protobuf` on what follows the registry's five bytes; with a pandas UDF that reads each value by fastavro, or by
Protobuf's own library; and tagwire with `value.format`. Told as well: the processor time of the whole session, workers
and Java included. A share of the rows by `--scale`.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "scripts"), str(HERE)]

import fastavro  # noqa: E402
import pyspark  # noqa: E402
from kafka_jars import MavenError  # noqa: E402
from pyspark.sql import DataFrame, SparkSession  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402, N812
from pyspark.sql.avro.functions import from_avro  # noqa: E402
from pyspark.sql.protobuf.functions import from_protobuf  # noqa: E402
from rounds import alternate, table  # noqa: E402
from spark import kafka  # noqa: E402
from spark_connector import connector  # noqa: E402
from spark_jars import spark_avro, spark_protobuf  # noqa: E402
from spark_sources import Topic, drain, fill, read, spark_session  # noqa: E402

from tests.interop.protobuf_messages import Messages  # noqa: E402
from tests.values.registry_server import RegistryServer, registry_server  # noqa: E402

MILLION = 1_000_000
DIFFERENT = 200
"""Values of a topic, over and over: about as many as a producer's batch has."""

SIZE = 5
"""Bytes of a registry's framing of Avro: 0, and the schema's id."""

CHECK = "count(*)", "bit_xor(xxhash64(offset, value))"
_TICKS = os.sysconf("SC_CLK_TCK")

Frames = dict[str, Callable[[], DataFrame]]


@dataclass(frozen=True)
class Column:
    """One column, in Avro, in Protobuf and in Spark, and its value in row `n`. `absent`: now and then it is null."""

    avro: Any
    proto: str
    spark: str
    value: Callable[[int], Any]
    absent: bool = False

    def of(self, row: int) -> Any:
        return None if self.absent and row % 7 == 0 else self.value(row)


STRING = Column("string", "string", "string", lambda n: f"text-{n:04}")
TEXT = Column(["null", "string"], "optional string", "string", lambda n: "lorem ipsum dolor"[: n % 17 + 1], True)
INT = Column("int", "int32", "int", lambda n: 1000 + n)
LONG = Column("long", "int64", "bigint", lambda n: (n + 1) << 33)
DOUBLE = Column("double", "double", "double", lambda n: (n + 1) / 4)
DELAY = Column(["null", "double"], "optional double", "double", lambda n: (n + 1) / 8, True)
FLAG = Column("boolean", "optional bool", "boolean", lambda n: n % 2 == 0)
FIVE = [STRING, INT, DELAY, LONG, TEXT]
THIRTY = [*FIVE, STRING, INT, DOUBLE, LONG, FLAG] * 3
"""Numbers, texts and some nulls, as tables have them."""


@dataclass(frozen=True)
class Bench:
    """What all cases share: which part of the rows that the claims are about, and whether UDFs take part."""

    spark: SparkSession
    bootstrap: str
    registry: RegistryServer
    scale: float
    rounds: int
    udfs: bool

    def topic(self, name: str, rows: int, values: list[bytes]) -> tuple[str, int]:
        """A topic's name and how many rows it has."""
        topic = Topic(f"{name}-{int(rows * self.scale)}", int(rows * self.scale), values=values)
        return topic.name, fill(self.bootstrap, topic)

    def read(self, source: str, topic: str, **options: str) -> DataFrame:
        return read(self.spark, source, self.bootstrap, topic, **options).select("offset", "value")

    def bodies(self, topic: str, size: int) -> DataFrame:
        """What Spark's connector reads, without the framing of so many bytes."""
        return self.read("kafka", topic).select("offset", F.expr(f"substring(value, {size + 1})").alias("value"))

    def typed(self, topic: str, **options: str) -> DataFrame:
        return self.read("tagwire", topic, **{"schema.registry.url": self.registry.url, **options})

    def compare(self, title: str, contenders: Frames, rows: int) -> None:
        """Prints a table of contenders, once all have given the same."""
        contenders = {name: frame for name, frame in contenders.items() if self.udfs or not name.endswith("UDF")}
        answers = {name: frame().selectExpr(*CHECK).first() for name, frame in contenders.items()}
        if len(set(answers.values())) != 1 or next(iter(answers.values()))[0] != rows:
            sys.exit(f"{title}: the contenders differ: {answers}")
        spent: dict[str, list[float]] = {name: [] for name in contenders}

        def work(name: str) -> None:
            before = processor_seconds()
            drain(contenders[name]())
            spent[name].append(processor_seconds() - before)

        timings = alternate({name: lambda name=name: work(name) for name in contenders}, rounds=self.rounds)
        print(table(f"{title}, {rows:,} rows", timings, units=rows, unit="rows"))
        medians = {name: statistics.median(times[-self.rounds :]) for name, times in spent.items()}
        first = next(iter(medians.values()))
        for name, seconds in medians.items():
            each = f"{seconds / rows * MILLION:.2f} s a million rows"
            print(f"  {name:32} {each:>24}, processor time {first / seconds:15.2f}", flush=True)


def processor_seconds() -> float:
    """What this process and all that it started, and these, have used."""
    parents: dict[int, int] = {}
    used: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        parents[int(path.parent.name)] = int(fields[1])
        used[int(path.parent.name)] = sum(map(int, fields[11:15]))
    ours = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(used[each] for each in ours if each in used) / _TICKS


def names(columns: list[Column]) -> list[str]:
    return [f"c{number:02}" for number in range(len(columns))]


def values_of(columns: list[Column]) -> list[dict[str, Any]]:
    return [dict(zip(names(columns), (column.of(n) for column in columns))) for n in range(DIFFERENT)]


def ddl(columns: list[Column]) -> str:
    return ", ".join(f"{name} {column.spark}" for name, column in zip(names(columns), columns))


def avro(bench: Bench, columns: list[Column], rows: int) -> None:
    """Avro values of so many columns."""
    fields = [{"name": name, "type": column.avro} for name, column in zip(names(columns), columns)]
    schema = {"type": "record", "name": "Row", "fields": fields}
    text, title = json.dumps(schema), f"avro, {len(columns)} columns"
    prefix = b"\0" + bench.registry.add("avro", text).to_bytes(4, "big")
    topic, rows = bench.topic(f"avro{len(columns)}", rows, [prefix + avro_body(schema, v) for v in values_of(columns)])

    @F.pandas_udf(ddl(columns))  # type: ignore[call-overload]
    def by_fastavro(values):  # type: ignore[no-untyped-def]
        import pandas as pd
        from fastavro import parse_schema, schemaless_reader

        parsed = parse_schema(schema)
        rows = [schemaless_reader(io.BytesIO(value[5:]), parsed, None) for value in values]
        return pd.DataFrame(rows, columns=[field["name"] for field in schema["fields"]])

    bench.compare(
        title,
        {
            "connector + from_avro": lambda: bench.bodies(topic, SIZE).select(
                "offset", from_avro("value", text).alias("value")
            ),
            "connector + fastavro UDF": lambda: bench.read("kafka", topic).select(
                "offset", by_fastavro("value").alias("value")
            ),
            "tagwire": lambda: bench.typed(topic, **{"value.format": "avro", "value.subject": "avro"}),
        },
        rows,
    )


def avro_body(schema: Any, value: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def protobuf(bench: Bench, columns: list[Column], rows: int) -> None:
    """Protobuf values of so many columns, none of which has its default where the wire would not tell it from null."""
    fields = " ".join(
        f"{column.proto} {name} = {number};"
        for number, (name, column) in enumerate(zip(names(columns), columns), start=1)
    )
    text, title = f'syntax = "proto3"; message Row {{ {fields} }}', f"protobuf, {len(columns)} columns"
    messages = Messages(text, "Row")
    prefix = b"\0" + bench.registry.add("protobuf", text, "PROTOBUF").to_bytes(4, "big") + b"\0"
    bodies = [messages.body(value) for value in values_of(columns)]
    topic, rows = bench.topic(f"protobuf{len(columns)}", rows, [prefix + body for body in bodies])
    files, wanted = messages.files, names(columns)

    @F.pandas_udf(ddl(columns))  # type: ignore[call-overload]
    def by_protobuf(values):  # type: ignore[no-untyped-def]
        import pandas as pd
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

        pool = descriptor_pool.DescriptorPool()
        for file in descriptor_pb2.FileDescriptorSet.FromString(files).file:
            pool.Add(file)
        row = message_factory.GetMessageClass(pool.FindMessageTypeByName("Row"))
        given = [{field.name: found for field, found in row.FromString(value[6:]).ListFields()} for value in values]
        return pd.DataFrame([[each.get(name) for name in wanted] for each in given], columns=wanted)

    contenders: Frames = {
        "connector + protobuf UDF": lambda: bench.read("kafka", topic).select(
            "offset", by_protobuf("value").alias("value")
        ),
        "tagwire": lambda: bench.typed(topic, **{"value.format": "protobuf", "value.subject": "protobuf"}),
    }
    try:
        spark_protobuf(pyspark.__version__)
    except MavenError as error:
        print(f"{title}: from_protobuf NOT RUN: {error}")
    else:
        native = {
            "connector + from_protobuf": lambda: bench.bodies(topic, SIZE + 1).select(
                "offset", from_protobuf("value", "Row", binaryDescriptorSet=files).alias("value")
            )
        }
        contenders = native | contenders
    bench.compare(title, contenders, rows)


CASES: dict[str, Callable[[Bench], None]] = {
    "avro5": lambda bench: avro(bench, FIVE, 4 * MILLION),
    "avro30": lambda bench: avro(bench, THIRTY, MILLION),
    "protobuf5": lambda bench: protobuf(bench, FIVE, 4 * MILLION),
    "protobuf30": lambda bench: protobuf(bench, THIRTY, MILLION),
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--scale", type=float, default=0.5, help="part of the rows")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--cores", default="1,2", help="of local[N], one session after the other")
    arguments.add_argument("--cases", default=",".join(CASES))
    arguments.add_argument("--no-udfs", dest="udfs", action="store_false", help="without UDFs, which take longest")
    arguments.add_argument("--broker", help="HOST:PORT of a Kafka that runs already")
    asked = arguments.parse_args()
    peer = connector(pyspark.__version__)
    jars = [*peer.jars, *spark_avro(pyspark.__version__)]
    with suppress(MavenError):  # each case says so
        jars += spark_protobuf(pyspark.__version__)
    print(f"Spark {pyspark.__version__}, connector {peer.version}, {asked.scale:g} of the rows", flush=True)
    with kafka(asked.broker, None) as (bootstrap, _), registry_server() as registry:
        for cores in map(int, asked.cores.split(",")):
            print(f"local[{cores}]", flush=True)
            with spark_session(cores, jars) as spark:
                for name in asked.cases.split(","):
                    started = time.monotonic()
                    CASES[name](Bench(spark, bootstrap, registry, asked.scale, asked.rounds, asked.udfs))
                    print(f"  ({name}: {time.monotonic() - started:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
