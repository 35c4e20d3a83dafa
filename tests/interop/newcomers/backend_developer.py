"""The backend developer's way: records in and out, a broker in the tests, and what is misspelt on the way."""

from __future__ import annotations

from ...certificates import Certificates
from ...doc_blocks import PAGES, blocks, pages_with
from ...test_docs import OWN, program, put_files, registry_of_pages
from .way import Way

README = PAGES[0]

SHOP = """
from tagwire.client import Producer


def place_order(bootstrap):
    with Producer(bootstrap) as producer:
        producer.send("orders", b"1 umbrella")
"""
WITHOUT_ARROW = """
from tagwire.broker import Broker
from tagwire.client import Producer, Reader

with Broker() as broker:
    with Producer({"bootstrap.servers": broker.bootstrap, "acks": "all"}) as producer:
        producer.send("orders", b"1 umbrella")
    for starts in ("orders", {"orders": 0}, {("orders", 0): "earliest"}):
        with Reader(broker.bootstrap, starts, stop_at_end=True) as reader:
            print([record.value for record in reader.records()])
"""
WITH_ARROW = """
from tagwire.broker import Broker
from tagwire.client import Producer, Reader

with Broker() as broker:
    with Producer(broker.bootstrap) as producer:
        producer.send("orders", b"1 umbrella")
    with Reader(broker.bootstrap, "orders", stop_at_end=True) as reader:
        for batch in reader:
            print(batch["value"].to_pylist())
"""
MISTAKES = """
from tagwire.broker import Broker
from tagwire.client import Admin, Client, Producer, Reader

with Broker() as broker, Admin(broker.bootstrap) as admin, Producer(broker.bootstrap) as producer:
    b = broker.bootstrap
    producer.send("orders", b"1 umbrella").result()
    for mistake in (
        lambda: Reader(b, 7),
        lambda: Reader(b, [0]),
        lambda: Reader(b, {"orders": "erliest"}),
        lambda: list(Reader(b, "ordres", stop_at_end=True).records()),
        lambda: Producer({"bootstrap.server": b}),
        lambda: Producer({"bootstrap.servers": b, "secruity.protocol": "SSL"}),
        lambda: Producer(b, compression="snapy"),
        lambda: producer.send("orders", "1 umbrella"),
        lambda: Client(b, tiemout=3),
        lambda: Client("127.0.0.1:1", timeout=0.5).metadata(),
        lambda: Broker(num_partition=3),
        lambda: admin.delete_topics("ordres"),
    ):
        try:
            mistake()
            print("nothing is said")
        except Exception as error:
            print(f"{type(error).__name__}: {error}")
"""
SAID = (
    """ConfigError: starts=7: allowed is a topic, such as "orders", a topic and a partition, such as ("orders", 0)""",
    """ConfigError: one of starts=0: allowed is a topic, such as "orders",""",
    """ConfigError: starts: orders-0='erliest': allowed is an offset, "earliest", "latest",""",
    "KafkaError: UNKNOWN_TOPIC_OR_PARTITION (3): topic 'ordres'",
    "ConfigError: bootstrap.server: no property of a Kafka client; bootstrap.servers is one",
    "ConfigError: secruity.protocol: no property of a Kafka client; security.protocol is one",
    "ConfigError: compression=snapy: allowed is none, gzip, snappy, lz4, zstd",
    'EncodeError: value must be bytes or None, not str: write "...".encode()',
    "ConfigError: tiemout: no such option; timeout is one",
    "ConnectError: no broker can be reached: 127.0.0.1:1 (Connection refused)",
    "ConfigError: num_partition: no such option; num_partitions is one",
    "delete topic 'ordres': there is no topic ordres",
)
MISSPELT = """
import pytest


@pytest.mark.kafka_brokre(num_partitions=3)
def test_a_marker(kafka_broker): ...


@pytest.mark.kafka_broker(num_partition=3)
def test_an_option(kafka_broker): ...
"""


def walk(way: Way) -> None:
    """All of it, in order."""
    way.installs("pip install tagwire")
    found = way.types("python -m tagwire.doctor", "compiled", "extras installed: none;", "all is well")
    assert "audit (lacks msgspec, pyarrow, rich, typer)" in found
    way.types("tagwire topics", "typer is not installed: pip install 'tagwire[cli]'", code=2, lines=1)
    way.writes("orders.py", WITHOUT_ARROW)
    assert way.types("python -W error orders.py").count("[b'1 umbrella']") == 3

    page = [block for block in blocks(README) if block.kind == "program"]
    way.writes("readme.py", *(block.source for block in page))
    way.types("python -W error readme.py", "'trace-id'", "b'01J2'")

    advice = "pip install 'tagwire[arrow]'"
    way.writes("batches.py", WITH_ARROW)
    way.types("python -W error batches.py", f"pyarrow is not installed: {advice}", code=1)
    way.installs(advice)
    way.types("python -W error batches.py", "[b'1 umbrella']")

    way.writes("mistakes.py", MISTAKES)
    said = way.types("python -W error mistakes.py", *SAID).splitlines()
    assert len(said) == len(SAID)

    way.installs("pip install pytest")
    way.writes("test_shop.py", SHOP, *(block.source for block in blocks(README) if block.kind == "pytest"))
    way.types("python -m pytest -q -W error test_shop.py", "1 passed")
    way.writes("test_misspelt.py", MISSPELT)
    way.types(
        "python -m pytest -q test_misspelt.py",
        "ConfigError: marker kafka_brokre: no such marker; kafka_broker is one",
        "ConfigError: num_partition: no such option; num_partitions is one",
        "2 errors",
        code=1,
    )

    # Every page, in an environment that has what the pages say is needed and nothing else.
    way.installs("pip install 'tagwire[avro]'")
    put_files(way.folder, Certificates.make(way.folder))
    with registry_of_pages() as registry:
        for path in pages_with("program"):
            found = [block for block in blocks(path) if block.kind == "program"]
            way.writes("page.py", program(path, way.broker.bootstrap, registry, found))
            way.types("python -W error page.py")
        for path in pages_with("pytest"):
            found = [block for block in blocks(path) if block.kind == "pytest"]
            way.writes("test_page.py", OWN + program(path, way.broker.bootstrap, registry, found))
            way.types("python -m pytest -q -W error test_page.py", " passed")
