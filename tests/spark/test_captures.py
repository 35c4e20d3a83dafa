"""Captures in Spark: the same observations as without it, however files are split, and the same verdicts."""

from __future__ import annotations

import gzip
import json

import pyarrow.parquet as pq
import pytest
import zstandard

from tagwire.capture import Census, Losses, judge, observe
from tagwire.cli import main
from tagwire.errors import CaptureError
from tagwire.spark.captures import CaptureDataSource
from tagwire.spark.ddl import parse_schema
from tagwire.spark.failure import reason
from tagwire.spark.jobs.audit import gather

from ..capture.traffic import Talk, asks, offers, pcap

pytestmark = pytest.mark.spark

LINE = (
    "[2025-11-20 03:{minute:02}:05,678] DEBUG Completed request:RequestHeader(apiKey={api}, apiVersion={version}, "
    "clientId=c{client}, correlationId=6) -- {{}},response:{{error_code={error}}} from connection "
    "10.0.0.1:9092-10.0.0.8:{port}-0;totalTime:2.4,securityProtocol:PLAINTEXT,principal:{principal},"
    "listener:PLAINTEXT (kafka.request.logger)\n"
)


@pytest.fixture(scope="module")
def evidence(tmp_path_factory):
    """A log of many lines, two that are packed, and a capture."""
    folder = tmp_path_factory.mktemp("evidence")
    lines = [
        LINE.format(
            minute=at % 7,
            api=("JOIN_GROUP", "PRODUCE", "FETCH")[at % 3],
            version=at % 5,
            client=at % 4,
            error=(0, 25, 6)[at % 3],
            port=1000 + at % 11,
            principal=("User:ANONYMOUS", "User:a")[at % 2],
        )
        for at in range(600)
    ]
    lines.insert(300, "noise that is no request\n")
    (folder / "request.log").write_text("".join(lines))
    (folder / "request.log.1.gz").write_bytes(gzip.compress("".join(lines[:30]).encode()))
    (folder / "request.log.2.zst").write_bytes(zstandard.compress("".join(lines[30:50]).encode()))
    (folder / "a.pcap").write_bytes(pcap(Talk().open().client(asks()).broker(offers(Produce=(0, 11))).packets()))
    return folder


def told(census: Census):
    return {
        (usage.client, api, version): (
            use.count,
            use.first,
            use.last,
            use.highest_offered,
            tuple(sorted(use.error_codes.items())),
            usage.connections,
        )
        for usage in census.usages()
        for api, versions in usage.apis.items()
        for version, use in versions.items()
    }


@pytest.mark.long
def test_spark_gathers_what_one_process_gathers_however_logs_are_split(spark, evidence):
    census, losses = Census(), Losses()
    for path in sorted(evidence.iterdir()):
        census.add_all(observe(path, losses))
    found, lost = gather(spark, [str(evidence)])
    assert told(found) == told(census)
    assert lost.counts == losses.counts
    assert found.timeline == census.timeline
    verdicts = [judge(usage, "4.0.0").outcome for usage in census.usages()]
    assert [judge(usage, "4.0.0").outcome for usage in found.usages()] == verdicts


@pytest.mark.long
def test_each_session_of_a_spark_gathers(spark, evidence):
    log = [str(evidence / "request.log.2.zst")]
    found, _ = gather(spark, log)
    again, _ = gather(spark.newSession(), log)
    assert told(again) == told(found)


@pytest.mark.long
def test_the_command_tells_the_same_with_spark(spark, evidence, tmp_path, capsys):
    def ran(*options):
        code = main(["audit", str(evidence), "--target", "4.0.0", "--json", "--out", str(tmp_path / "out"), *options])
        return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert ran("--spark") == ran()
    assert pq.read_table(tmp_path / "out" / "observations.parquet").num_rows == 651


def test_with_spark_too_evidence_without_a_request_is_an_error(spark, tmp_path, capsys):
    (tmp_path / "server.log.gz").write_bytes(gzip.compress(b"noise that is no request\n"))
    assert main(["audit", str(tmp_path), "--spark"]) == 2
    assert "server.log.gz: no request in it (1 x a line that tells of no request)" in capsys.readouterr().err


def test_what_tasks_cannot_share_is_told_in_one_line(capsys):
    assert main(["audit", "-", "--spark"]) == 2
    assert capsys.readouterr().err == "tagwire: -: standard input, which tasks of Spark cannot share\n"


def test_large_logs_are_read_by_many_tasks_and_every_line_once(spark, evidence):
    reader = spark.read.format("tagwire-capture").option("maxPartitionBytes", "20000")
    frame = reader.load(str(evidence / "request.log"))
    assert frame.rdd.getNumPartitions() > 5
    rows = sorted(frame.collect(), key=lambda row: row.position)
    assert len(rows) == len({row.position for row in rows}) == 600
    row = rows[0]
    assert (row.client_address, row.api, row.api_version, row.error_codes) == ("10.0.0.8", "JoinGroup", 0, [])


@pytest.mark.long
def test_only_the_columns_asked_for_are_made(spark, evidence):
    reader = spark.read.format("tagwire-capture").schema("api string, count bigint")
    frame = reader.load(str(evidence / "request.log.1.gz"))
    assert frame.columns == ["api", "count"]
    assert frame.count() == 30


@pytest.mark.parametrize(
    ("options", "path", "said"),
    [
        ({"bodys": "true"}, "request.log", "option bodys: unknown"),
        ({"gathered": "yes?"}, "request.log", "gathered"),
        ({}, "nothing-*.log", "no such file, and no file in it"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(spark, evidence, options, path, said):
    with pytest.raises(Exception) as caught:
        spark.read.format("tagwire-capture").options(**options).load(str(evidence / path)).count()
    assert said in str(reason(caught.value))


@pytest.mark.parametrize("gathered", ["false", "true"])
@pytest.mark.parametrize("size", ["1000", "1000000"])
def test_a_log_that_is_rotated_between_a_reads_plan_and_its_tasks_ends_the_read(evidence, tmp_path, size, gathered):
    log = tmp_path / "request.log"
    log.write_bytes((evidence / "request.log").read_bytes())
    source = CaptureDataSource({"path": str(log), "maxPartitionBytes": size, "gathered": gathered})
    schema = source.schema()
    reader = source.reader(parse_schema(schema) if isinstance(schema, str) else schema)
    tasks = reader.partitions()
    with log.open("a") as more:
        more.write("what is written meanwhile\n")
    assert sum(batch.num_rows for batch in reader.read(tasks[0]))
    log.rename(tmp_path / "request.log.1")
    log.write_bytes((evidence / "request.log").read_bytes()[:2000])
    for task in tasks:
        with pytest.raises(CaptureError, match=r"request\.log: has 2,000 bytes, and had .*: it was rotated meanwhile"):
            list(reader.read(task))
