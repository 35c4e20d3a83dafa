"""The data engineer's way: a topic becomes a table, and goes back; then what goes wrong first."""

from __future__ import annotations

import re
import shutil

from tagwire.client import Admin, NewTopic, Producer

from ...doc_blocks import PAGES, blocks
from ..peer import NotRunError
from .way import Way

README = PAGES[0]
REQUEST = (
    "[2026-11-01 12:00:00,000] DEBUG Completed request:"
    '{"requestHeader":{"requestApiKey":3,"requestApiVersion":1,"clientId":"old","requestApiKeyName":"METADATA"},'
    '"connection":"127.0.0.1:9092-127.0.0.1:40000-0","securityProtocol":"PLAINTEXT","principal":"User:ANONYMOUS",'
    '"listener":"PLAINTEXT","clientInformation":{"softwareName":"unknown","softwareVersion":"unknown"}} '
    "(kafka.request.logger)"
)
LOOKS = """
print("flights:", flights.count(), "of which from", bytes(flights.first()["headers"][0]["value"]).decode())
print("table:", spark.read.parquet("table").count())
target = spark.read.format("tagwire").option("kafka.bootstrap.servers", "host:9092").option("subscribe", "target")
target = target.option("kafka.isolation.level", "read_committed").load()
print("target:", target.count())
segments = spark.read.format("tagwire-segments").option("subscribe", "flights").load("/var/lib/kafka/data")
print("segments:", segments.count())
print("capture:", spark.read.format("tagwire-capture").load("/var/log/kafka").count())

for mistake in (
    {"kafka.secruity.protocol": "SSL"},
    {"startingofsets": "earliest"},
    {"subscribe": "flihgts"},
    {"kafka.bootstrap.servers": "127.0.0.1:1"},
):
    options = {"kafka.bootstrap.servers": "host:9092", "subscribe": "flights"} | mistake
    try:
        spark.read.format("tagwire").options(**options).load().count()
        print(mistake, "is read as if nothing were wrong")
    except Exception as error:
        print(str(error).splitlines()[0])
"""
FORGETFUL = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.format("tagwire").option("kafka.bootstrap.servers", "host:9092").option("subscribe", "flights").load()
"""


def walk(way: Way) -> None:
    """All of it, in order."""
    if shutil.which("java") is None:
        raise NotRunError("java (17 or newer) is not on the PATH")
    with Admin(way.broker.bootstrap) as admin:
        admin.create_topics([NewTopic(name, num_partitions=2) for name in ("flights", "orders")])
    with Producer(way.broker.bootstrap) as producer:
        for number in range(10):
            producer.send("flights", b"EWR to ORD", key=b"UA-%d" % number, headers={"origin": b"EWR"})
            producer.send("orders", b'{"id": %d}' % number)

    way.installs("pip install 'tagwire[spark]'")
    way.types("tagwire doctor", "Spark finds tagwire", "all is well")

    logs = way.folder / "log"
    logs.mkdir()
    (logs / "kafka-request.log").write_text(f"{REQUEST}\n")
    data = way.folder.parent / "kafka"
    places = {"/var/lib/kafka/data": str(data), "/var/log/kafka": str(logs)}
    program = [block.placed(way.broker.bootstrap, places).lstrip() for block in blocks(README) if block.kind == "spark"]
    looks = LOOKS.replace("host:9092", way.broker.bootstrap)
    for name, place in places.items():
        looks = looks.replace(name, place)
    # A program of the page's lines and no more has landed its rows when it ends.
    way.writes("flights.py", *program)
    way.types("python -W error flights.py")
    assert way.types("python -W error -c 'import pandas; print(len(pandas.read_parquet(\"table\")))'") == "10\n"
    # What else came of them, then the mistakes, in one session: Java takes its time.
    way.writes("looks.py", *program, looks)
    way.types(
        "python -W error looks.py",
        "flights: 10 of which from EWR",
        "table: 10",
        "target: 10",
        "segments: 10",
        "capture: 1",
        "ConfigError: option kafka.secruity.protocol: no property of a Kafka client; security.protocol is one",
        "ConfigError: option startingofsets: unknown; nearest are startingOffsets, ",
        "UNKNOWN_TOPIC_OR_PARTITION (3): topic 'flihgts'",
        "ConnectError: no broker can be reached: 127.0.0.1:1 (Connection refused)",
    )

    way.follows("tagwire land orders --to lake/orders --bootstrap kafka-1:9092", "10 rows landed")
    way.types("python -W error -c 'import pandas; print(len(pandas.read_parquet(\"lake/orders\")))'", "10")
    way.follows("tagwire replay orders-again --table lake/orders --bootstrap kafka-1:9092", "10 records went to")
    way.types(f"tagwire topics --bootstrap {way.broker.bootstrap}", "orders-again")

    bootstrap = f"--bootstrap {way.broker.bootstrap}"
    way.types(f"tagwire land ordres --to lake/new {bootstrap}", "Did you mean 'orders'?", code=2, lines=1)
    way.types("tagwire lnad orders", "No such command 'lnad'. Did you mean 'land'?", code=2, lines=1)
    say = "--headers (none), not origin"
    way.types(f"tagwire land orders --to lake/orders --headers origin {bootstrap}", say, code=2, lines=1)

    # The environment is not activated, and PYSPARK_PYTHON not set: what most people meet first.
    way.types(f"{shutil.which('python3', path='/usr/bin:/bin') or 'python3'} -m venv --without-pip ../other")
    other = {"PATH": f"{way.folder.parent / 'other' / 'bin'}:/usr/bin:/bin", "VIRTUAL_ENV": None}
    if java := shutil.which("java"):
        other["PATH"] += f":{java.rpartition('/')[0]}"
    way.writes("forgetful.py", FORGETFUL.replace("host:9092", way.broker.bootstrap))
    words = "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: tagwire."
    way.types(".venv/bin/python forgetful.py", words, code=1, environment=other)
    assert words in (README.parent / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    assert "docs/troubleshooting.md" in README.read_text(encoding="utf-8")
    said = way.types(".venv/bin/tagwire doctor", "(DATA_SOURCE_NOT_FOUND)", code=1, environment=other)
    (advice,) = re.findall(r"-> (export PYSPARK_PYTHON=[^,\s]+)", said)
    way.types(f"{advice}; .venv/bin/python forgetful.py", environment=other)
