"""`tagwire topics alter` and `trim`, and what `describe` tells of disks and configs."""

from __future__ import annotations

import json

import pytest

from tagwire import messages

from ..client.admin_responses import SERVED, Looked
from ..client.fake_broker import FakeCluster


@pytest.fixture
def cluster():
    with FakeCluster() as one:
        for partition, end in zip(one.topic("t", 2), (10, 4)):
            partition.end = end
        one.serve(
            {**SERVED, 35: (1, 4)},
            {
                **Looked().responses(),
                "CreatePartitions": lambda request: _grown(one, request),
                "DeleteRecords": lambda request: _trimmed(one, request),
                "DescribeLogDirs": lambda _: _disks(),
            },
        )
        yield one


@pytest.fixture
def ran(run, cluster):
    def ran(*arguments):
        return run("topics", *arguments, "--bootstrap", cluster.bootstrap)

    return ran


def _grown(cluster, request):
    kind = messages.CreatePartitionsResponse
    (topic,) = request.topics
    if not request.validate_only:
        cluster.topic(topic.name, topic.count)
    return kind(results=[kind.CreatePartitionsTopicResult(name=topic.name)])


def _trimmed(cluster, request):
    kind = messages.DeleteRecordsResponse
    (topic,) = request.topics
    for each in topic.partitions:
        cluster.topics[topic.name][each.partition_index].start = each.offset
    partitions = [
        kind.DeleteRecordsPartitionResult(partition_index=each.partition_index, low_watermark=each.offset)
        for each in topic.partitions
    ]
    return kind(topics=[kind.DeleteRecordsTopicResult(name=topic.name, partitions=partitions)])


def _disks():
    kind = messages.DescribeLogDirsResponse
    partitions = [
        kind.DescribeLogDirsPartition(partition_index=0, partition_size=700),
        kind.DescribeLogDirsPartition(partition_index=1, partition_size=9, is_future_key=True),
    ]
    return kind(
        results=[
            kind.DescribeLogDirsResult(
                log_dir="/d", topics=[kind.DescribeLogDirsTopic(name="t", partitions=partitions)]
            )
        ]
    )


def rows(text):
    return [line.split() for line in text.splitlines()]


def test_partitions_are_added(ran, cluster):
    assert ran("alter", "t", "--partitions", 5, "--dry-run").out == "t could have 5 partitions now\n"
    assert len(cluster.topics["t"]) == 2
    assert ran("alter", "t", "--partitions", 5).out == "t has 5 partitions now\n"
    assert len(cluster.topics["t"]) == 5
    told = json.loads(ran("alter", "t", "--partitions", 6, "--json").out)
    assert told == {"topic": "t", "partitions": 6, "altered": True}


@pytest.mark.parametrize(
    ("before", "starts"), [("latest", [10, 4]), ("7", [7, 4]), ("earliest", [0, 0]), ("2030-01-01", [10, 4])]
)
def test_records_are_deleted_before_an_offset_or_a_time(ran, cluster, before, starts):
    dry = [json.loads(line) for line in ran("trim", "t", "--before", before, "--dry-run", "--json").out.splitlines()]
    assert [row["after"] for row in dry] == [row["records"] for row in dry] == starts
    assert [partition.start for partition in cluster.topics["t"]] == [0, 0]
    out = ran("trim", "t", "--before", before).out
    assert rows(out)[1:] == [["t", str(index), "0", str(start), str(start)] for index, start in enumerate(starts)]
    assert [partition.start for partition in cluster.topics["t"]] == starts


def test_one_partition_alone_is_trimmed(ran, cluster):
    assert ran("trim", "t", "--before", "latest", "--partition", 1).code == 0
    assert [partition.start for partition in cluster.topics["t"]] == [0, 4]


def test_what_cannot_be_trimmed_is_told_in_one_line(ran):
    assert ran("trim", "t", "--before", "soon").code == 2
    missing = ran("trim", "missing", "--before", "latest")
    assert (missing.code, missing.out, missing.err.count("\n")) == (2, "", 1)


def test_a_description_tells_sizes_and_configs(ran, run, cluster):
    run("configs", "alter", "topic/t", "--set", "retention.ms=5", "--bootstrap", cluster.bootstrap)
    out = ran("describe", "t").out.splitlines()
    assert [line.split()[-3:] for line in out[1:3]] == [["0", "10", "700"], ["0", "4", "-"]]
    assert out[3:] == ["t: retention.ms=5"]
    told = json.loads(ran("describe", "t", "--json").out)
    assert told["configs"] == {"retention.ms": "5"}
    assert [partition["bytes"] for partition in told["partitions"]] == [700, None]


def test_an_old_broker_is_described_without_what_it_cannot_tell(ran, cluster):
    for api in (32, 35):
        del cluster.served[api]
    told = json.loads(ran("describe", "t", "--json").out)
    assert (told["configs"], [partition["bytes"] for partition in told["partitions"]]) == (None, [None, None])


def test_an_old_broker_that_cannot_add_partitions_is_named(ran, cluster):
    del cluster.served[37]
    found = ran("alter", "t", "--partitions", 5)
    assert (found.code, found.out) == (2, "")
    assert "does not serve CreatePartitions; tagwire needs 0-3 (Kafka" in found.err
