"""`tagwire land`: what it prints, and what it answers when it cannot."""

from __future__ import annotations

import json

import pytest

from tagwire.broker import Broker
from tagwire.cli import main
from tagwire.client import Client, Producer
from tagwire.records import Record

NOON = 1_372_939_200_000  # 2013-07-04 12:00 UTC


@pytest.mark.long
@pytest.mark.spark
def test_a_landing_is_reported_with_its_first_rows(spark, broker, topic, produce, tmp_path, capsys):
    produce(topic, {1: [Record(b"k", b"hello \x1b[2J", (("origin", b"EWR"),), NOON)] * 3})
    out = str(tmp_path / "out")
    command = ["land", topic, "--bootstrap", broker.bootstrap, "--to", out, "--headers", "origin", "--text"]
    assert main([*command, "--format", "parquet"]) == 0
    said = capsys.readouterr().out
    assert "3 rows landed in 1 batch" in said
    assert "2013-07-04 12:00:00" in said
    assert "origin (3)" in said
    assert "Fetch 1" in said
    assert "\x1b" not in said
    assert {path.name for path in (tmp_path / "out").glob("[!_]*")} == {"batch-00000000-0000.parquet"}
    assert (tmp_path / "out/_report.html").is_file()
    assert f'spark.read.parquet("{out}")' in said
    assert main(command[:-3]) == 0  # as parquet, which it is
    assert "0 rows landed" in capsys.readouterr().out


@pytest.mark.spark
def test_a_guarded_cluster_is_landed_by_the_properties_of_the_command_line(spark, tmp_path, capsys):
    login = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-512"}
    properties = ["security.protocol=SASL_PLAINTEXT", "sasl.mechanism=SCRAM-SHA-512", "sasl.username=alice"]
    given = [part for each in [*properties, "isolation.level=read_committed"] for part in ("-X", each)]
    out = tmp_path / "out"
    with Broker(sasl="SCRAM-SHA-512", users={"alice": "wonderland"}, fsync="never") as guarded:
        entered = Client(guarded.bootstrap, sasl_plain_username="alice", sasl_plain_password="wonderland", **login)
        with entered as client, Producer(client) as producer:
            producer.send("t", b"v", timestamp=NOON)
        command = ["land", "t", "--bootstrap", guarded.bootstrap, "--to", str(out), "--json"]
        assert main([*given, "-X", "sasl.password=looking-glass", *command]) == 2
        assert not out.exists()
        assert main([*given, "-X", "sasl.password=wonderland", *command]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out.splitlines()[-1])["rows"] == 1
    assert not any(b"wonderland" in path.read_bytes() for path in out.glob("_tagwire/*.json"))
    assert "looking-glass" not in printed.out + printed.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["t", "--bootstrap", "127.0.0.1:1"], "127.0.0.1:1"),
        (["t", "--bootstrap", "127.0.0.1:1", "--headers", "a,,b"], "headers: an empty name"),
        (["t", "--bootstrap", "nonsense:"], "nonsense"),
        (["--bootstrap", "127.0.0.1:1"], "name a TOPIC"),
        (["-X", "bootstrap.servers=127.0.0.1:1"], "name a TOPIC"),
        (["t", "--topic", "t"], "--topic"),
        (["--topic", "t", "--bootstrap", "127.0.0.1:1"], "127.0.0.1:1"),  # as it was once called
        (["--text"], "--text"),
        (["--frobnicate"], "--frobnicate"),
        (["--follow"], "--follow"),
        (["t", "--bootstrap", "127.0.0.1:1", "--follow", "--every", "nan"], "--every=nan: needs a number"),
        (["t", "--topics-like", "t.*"], "--topics-like"),
        (["--topics-like", "t.*", "--bootstrap", "127.0.0.1:1"], "127.0.0.1:1"),
        (["t", "--storage-option", "a-secret"], "needs NAME=VALUE"),
        (["t", "--catalog-property", "a-secret"], "needs NAME=VALUE"),
        (["t,u", "--table", "a.b"], "--table"),
        (["t,", "--bootstrap", "127.0.0.1:1"], "'t,' is not TOPIC,TOPIC,...: a name is empty"),
        (["t,,u", "--bootstrap", "127.0.0.1:1"], "a name is empty"),
        ([","], "a name is empty"),
        ([""], "a name is empty"),  # an empty variable of a shell is not the demonstration
        (["--topic", ""], "a name is empty"),
        (["--topics-like", "", "--bootstrap", "127.0.0.1:1"], "'--topics-like': matches no topic"),
        (["t,t", "--bootstrap", "127.0.0.1:1"], "127.0.0.1:1"),
        (["--catalog", "prod"], "--catalog"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_and_nothing_is_written(tmp_path, capsys, arguments, said):
    assert main(["land", "--to", str(tmp_path / "out"), *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert said in printed.err
    assert printed.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
