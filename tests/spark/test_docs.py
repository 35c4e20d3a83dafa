"""The Python blocks of README and docs that need Spark run as they stand, on the brokers and directories of a test."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tagwire.broker import Broker
from tagwire.client import Admin, NewTopic, Producer

from ..doc_blocks import blocks, pages_with
from ..values.registry_server import registry_server

SPEC = """{ "apiKey": 9001, "type": "data", "name": "FlightUpdate", "validVersions": "0", "flexibleVersions": "0+",
  "fields": [ { "name": "Carrier", "type": "string", "versions": "0+" } ] }"""
DEPARTURE = """{"type": "record", "name": "Departure", "fields": [
  {"name": "carrier", "type": "string"}, {"name": "delay", "type": "int"}]}"""
TOPICS = ("flights", "orders", "departures")
REQUEST = (
    "[2026-11-01 12:00:00,000] DEBUG Completed request:"
    '{"requestHeader":{"requestApiKey":3,"requestApiVersion":1,"clientId":"old","requestApiKeyName":"METADATA"},'
    '"connection":"127.0.0.1:9092-127.0.0.1:40000-0","securityProtocol":"PLAINTEXT","principal":"User:ANONYMOUS",'
    '"listener":"PLAINTEXT","clientInformation":{"softwareName":"unknown","softwareVersion":"unknown"}} '
    "(kafka.request.logger)\n"
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path, str]]:
    """A broker's address and directory, with the topics that pages name, and a schema registry."""
    folder = tmp_path_factory.mktemp("cluster")
    with Broker(folder, fsync="never") as broker, registry_server() as registry:
        for subject in ("departures-value", "target-value", "carriers"):
            registry.add(subject, DEPARTURE)
        with Admin(broker.bootstrap) as admin:
            admin.create_topics([NewTopic(name, configs={"retention.ms": -1}) for name in TOPICS])
            admin.create_topics("target")
            admin.alter_group_offsets("billing", {"orders": "earliest"})
        with Producer(broker.bootstrap) as producer:
            for number in range(10):
                producer.send("flights", b"EWR to ORD", key=b"UA-%d" % number, headers={"origin": b"EWR"})
                order = json.dumps({"id": number, "total": 1.5}).encode()
                producer.send("orders", order, headers={"tenant": b"acme"})
                producer.send("departures", b"\0\0\0\0\1\4UA" + bytes([2 * number]))
        yield broker.bootstrap, folder, registry.url


def places(folder: Path, data: Path, registry: str, number: int) -> dict[str, str]:
    """What a page's directories and files stand for; each block has a checkpoint and a table of its own."""
    own = folder / str(number)
    own.mkdir()
    return {
        '"checkpoint"': repr(str(own / "checkpoint")),
        '"checkpoints/': f'"{own}/checkpoints/',
        '.start("': f'.start("{own}/',
        '"lake/': f'"{own}/lake/',
        '"/var/lib/kafka/data': f'"{data}',
        '"/var/log/kafka"': repr(str(folder / "logs")),
        "http://registry:8081": registry,
        '"FlightUpdate.json"': repr(str(folder / "FlightUpdate.json")),
    }


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", pages_with("spark"), ids=lambda page: page.name)
def test_the_blocks_of_a_page_that_need_spark_run(
    page: Path, spark: Any, cluster: tuple[str, Path, str], tmp_path: Path
) -> None:
    bootstrap, data, registry = cluster
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "kafka-request.log").write_text(REQUEST)
    (tmp_path / "FlightUpdate.json").write_text(SPEC)
    scope: dict[str, Any] = {}  # what a page uses is on the page
    found = [block for block in blocks(page) if block.kind == "spark"]
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", module="tagwire")
            for number, block in enumerate(found):
                source = block.placed(bootstrap, places(tmp_path, data, registry, number))
                exec(compile(source, str(page), "exec"), scope)
                assert not spark.streams.active, f"{page.name}:{block.line} ends before its stream does"
    finally:
        for query in spark.streams.active:
            query.stop()
    if '"target"' in page.read_text("utf-8"):
        target = spark.read.format("tagwire").option("kafka.bootstrap.servers", bootstrap).option("subscribe", "target")
        assert target.load().count() >= 10
    if page.name == "landing.md":
        assert scope["report"].rows == 10
    if page.name == "README.md":
        assert scope["flights"].count() == 10
        (table,) = tmp_path.glob("*/table")
        assert spark.read.parquet(str(table)).count() == 10
        assert scope["flights"].first()["headers"][0]["key"] == "origin"
