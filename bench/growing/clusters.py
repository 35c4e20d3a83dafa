"""Topics in metadata, of a cluster that is made up, and groups that `lag` tells of."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from growing.brokers import Pipeline, running, start
from growing.lines import Lines
from growing.row import Row, thousandfold
from tagwire import messages
from tagwire.client import Admin, Client, NewTopic
from tagwire.partitions import LATEST
from tagwire.spark.source.topic import TopicDataSource

NODES = 10
GROUPS_PARTITIONS = 3


def metadata(size: int, folder: Path, lines: Lines) -> None:
    """What clients take to know so many partitions, 100 a topic, on ten nodes."""
    with running(simulated=size, nodes=NODES) as broker, Client(broker.bootstrap, timeout=120) as client:
        client.metadata([])
        with lines.line("Client.metadata()"):
            topics = client.metadata().topics
        partitions = {(name, index): LATEST for name, topic in topics.items() for index in topic.partitions}
        assert len(partitions) == size
        with lines.line("Client.list_offsets()"):
            assert len(client.list_offsets(partitions)) == size
        with lines.line("Admin.partition_ends()"), Admin(client) as admin:
            assert len(admin.partition_ends(list(partitions))) == size


def planning(size: int, folder: Path, lines: Lines) -> None:
    """What the driver's Python does of a read of so many partitions, without Spark: the cluster is made up."""
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    with running(simulated=size, nodes=NODES) as broker:
        options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribePattern": "simulated-.*"}
        options |= {"startingOffsets": "earliest", "failOnDataLoss": "true"}
        source = TopicDataSource(options)
        with lines.line("batch: partitions()"):
            assert len(source.reader(source.schema()).partitions()) == size
        reader = source.streamReader(source.schema())
        begin = reader.initialOffset()
        with lines.line("micro-batch: latestOffset()"):
            end: Any = reader.latestOffset(begin, ReadAllAvailable())  # type: ignore[call-arg]
        with lines.line("micro-batch: partitions()") as line:
            assert len(reader.partitions(begin, end)) == size
        line.notes["bytes of offsets in the checkpoint"] = len(json.dumps(end, separators=(",", ":")))
        reader.stop()


def _commits(groups: int) -> Iterator[tuple[Any, int]]:
    kind = messages.OffsetCommitRequest
    topic = kind.OffsetCommitRequestTopic(
        name="t",
        partitions=[
            kind.OffsetCommitRequestPartition(partition_index=index, committed_offset=index, committed_metadata="")
            for index in range(GROUPS_PARTITIONS)
        ],
    )
    for number in range(groups):
        yield kind(group_id=f"group-{number:06}", topics=[topic]), 9


def groups(size: int, folder: Path, lines: Lines) -> None:
    """So many groups that have committed in three partitions each: what tells of them, and what keeps them."""
    data = str(folder / "data")
    broker = start(data_dir=data, fsync="never")
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic("t", num_partitions=GROUPS_PARTITIONS)])
    with lines.line("broker: a commit of each", broker.pid):
        pipeline = Pipeline(broker.bootstrap)
        kind = messages.OffsetCommitResponse
        last = deque(pipeline.send_all(_commits(size)), maxlen=1).pop()
        told = kind.decode(last[5:], 9)
        assert [each.error_code for each in told.topics[0].partitions] == [0] * GROUPS_PARTITIONS
        pipeline.close()
    with lines.line("Admin.group_lags()"), Admin(broker.bootstrap, timeout=300) as admin:
        assert len(admin.group_lags()) == size
    with lines.line("Admin.group_lags(members=True)"), Admin(broker.bootstrap, timeout=300) as admin:
        assert len(admin.group_lags(members=True)) == size
    command = [sys.executable, "-m", "tagwire", "lag", "--summary", "--json", "--bootstrap", broker.bootstrap]
    with lines.line("tagwire lag --summary --json"):
        printed = subprocess.run([*command, "-X", "request.timeout.ms=300000"], check=True, capture_output=True).stdout
    assert printed.count(b"max_lag") == size
    broker.stop()
    with running(data_dir=data, fsync="never") as broker:
        lines.add("broker: start", broker.start)


ROWS_OF_CLUSTERS = (
    Row("metadata", "partitions in metadata", thousandfold(200), metadata),
    Row("planning", "partitions of a planned read", (100, 1_000, 10_000, 100_000), planning),
    Row("groups", "groups", thousandfold(100), groups, 900),
)
