"""`tagwire produce`: lines become records, and a topic can be copied."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from io import FileIO

import pytest

from tagwire.cli.record_input import records_of
from tagwire.client import Admin
from tagwire.records import Record

from .processes import start


@pytest.fixture
def produce(run, fill, tmp_path):
    """Writes `data` to a file and produces it to a new topic: (what the command did, the topic)."""

    def produce(data: bytes, *arguments: object, partitions: int = 1):
        file = tmp_path / "lines"
        file.write_bytes(data)
        topic = fill(partitions=partitions)
        return run("produce", topic, "--file", file, *arguments), topic

    return produce


@pytest.fixture
def held(run):
    """The records of a topic, as JSON objects in order of partition and offset."""

    def held(topic: str) -> list[dict]:
        found = [json.loads(line) for line in run("consume", topic, "--json").out.splitlines()]
        return sorted(found, key=lambda record: (record["partition"], record["offset"]))

    return held


@pytest.mark.parametrize(
    ("data", "values"),
    [
        (b"a\nb\n", ["a", "b"]),
        (b"a\nb", ["a", "b"]),
        (b"a\n\nb\n", ["a", "", "b"]),
        (b"a\r\n", ["a\r"]),
        (b"\xff\n", [{"base64": "/w=="}]),
        (b"x" * 200_000 + b"\ny", ["x" * 200_000, "y"]),
        (b"", []),
    ],
    ids=["lines", "no end", "empty line", "carriage return", "not utf-8", "longer than a read", "nothing"],
)
def test_each_line_is_a_value_byte_for_byte(produce, held, data, values):
    ran, topic = produce(data)
    assert ran.code == 0
    assert [record["value"] for record in held(topic)] == values


def test_the_last_word_tells_how_many_and_where(produce):
    ran, topic = produce(b"a\nb\nc\n")
    assert ran.out == f"3 records to {topic}: {topic}/0@0-2\n"
    ran, topic = produce(b"a\n", "--partition", "1", partitions=2)
    assert ran.out == f"1 record to {topic}: {topic}/1@0\n"
    ran, topic = produce(b"")
    assert ran.out == f"0 records to {topic}\n"


def test_keys_headers_compression_and_acks_are_as_told(produce, held):
    ran, topic = produce(b"a\n", "--key", "k", "--header", "h=1", "--header", "h=x=y", "--compression", "zstd")
    assert ran.code == 0
    (record,) = held(topic)
    assert (record["key"], record["value"]) == ("k", "a")
    assert record["headers"] == [{"key": "h", "value": "1"}, {"key": "h", "value": "x=y"}]
    for acks in ("all", "1", "0"):
        ran, topic = produce(b"a\n", "--acks", acks)
        assert ran.code == 0
        while acks == "0" and not held(topic):  # nobody has waited for the broker to store it
            continue
        assert len(held(topic)) == 1


def test_bytes_on_the_command_line_that_are_not_text_arrive_as_they_are(produce, held):
    ran, topic = produce(b"a\n", "--key", "\udcff", "--header", "h=\udcfe")
    assert ran.code == 0
    (record,) = held(topic)
    assert (record["key"], record["headers"][0]["value"]) == ({"base64": "/w=="}, {"base64": "/g=="})
    ran, topic = produce(b"a\n", "--header", "\udcff=x")  # the key of a header is text
    assert ran.code == 2
    assert ran.err.startswith("tagwire: ")
    assert ran.err.count("\n") == 1
    assert held(topic) == []


def test_a_key_is_parted_from_its_value_at_the_first_separator(produce, held):
    ran, topic = produce(b"a::1::2\n::x\n", "--key-separator", "::")
    assert ran.code == 0
    assert [(record["key"], record["value"]) for record in held(topic)] == [("a", "1::2"), ("", "x")]


def test_equal_keys_go_to_one_partition(produce, held):
    _, topic = produce(b"a:1\nb:2\na:3\nc:4\nb:5\na:6\n", "--key-separator", ":", partitions=5)
    places: dict[str, set[int]] = {}
    for record in held(topic):
        places.setdefault(record["key"], set()).add(record["partition"])
    assert {key: len(partitions) for key, partitions in places.items()} == {"a": 1, "b": 1, "c": 1}


@pytest.mark.parametrize("keep", [True, False])
def test_a_topic_is_copied_with_headers_keys_nulls_binary_and_timestamps(run, fill, produce, held, keep):
    records = [
        Record(b"k", b"v", [("a", b"1"), ("a", None), ("b", b"")], 1_372_917_600_000),
        Record(None, None, [], 1),
        Record(b"", b"", [], 2),
        Record(b"\xff\xfe", bytes(range(256)), [("ü", b"\x80")], 3),
    ]
    original = fill(records, partitions=3)
    lines = run("consume", original, "--json").out.encode()
    ran, copy = produce(lines, "--json", *(["--keep-partitions"] if keep else []), partitions=3)
    assert ran.code == 0
    said = ("key", "value", "headers", "timestamp", *(["partition", "offset"] if keep else []))
    parts = [
        sorted(([record[field] for field in said] for record in held(topic)), key=lambda record: record[3])
        for topic in (original, copy)
    ]
    assert parts[0] == parts[1]
    assert len(parts[0]) == 4


@pytest.mark.parametrize(
    ("data", "arguments", "said"),
    [
        (b"a:1\nb:2\nnothing\nc:3\n", ["--key-separator", ":"], "line 3: no ':' in it"),
        (b'{"value":"a"}\n\n{"value":"b"}\n{"value":1}\n', ["--json"], "line 4: value: neither text nor null"),
    ],
    ids=["separator", "json"],
)
def test_a_bad_line_is_named_and_what_stands_before_it_is_sent_and_told(produce, held, data, arguments, said):
    ran, topic = produce(data, *arguments)
    assert ran.code == 2
    assert ran.out == f"2 records to {topic}: {topic}/0@0-1\n"
    assert ran.err.startswith(f"tagwire: {said}")
    assert ran.err.count("\n") == 1
    assert len(held(topic)) == 2


@pytest.mark.parametrize(
    ("data", "arguments"),
    [(b"a\n", ["--partition", "9"]), (b'{"value":"a","partition":9}\n', ["--json", "--keep-partitions"])],
    ids=["option", "line"],
)
def test_a_partition_that_does_not_exist_is_named(produce, held, data, arguments):
    ran, topic = produce(data, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert f"partition {topic}-9" in ran.err
    assert held(topic) == []


def test_a_record_larger_than_the_topic_takes_is_refused_and_others_are_told(run, tmp_path, held):
    run("topics", "create", "small", "--config", "max.message.bytes=1000")
    file = tmp_path / "lines"
    file.write_bytes(b"x" * 5000)
    ran = run("produce", "small", "--file", file)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("tagwire: MESSAGE_TOO_LARGE (10)")
    assert "small-0" in ran.err
    assert held("small") == []


def test_lines_that_come_one_by_one_are_sent_as_they_come(run, fill, bootstrap):
    topic = fill()
    with (
        subprocess.Popen(
            [sys.executable, "-m", "tagwire", "produce", topic, "--bootstrap", bootstrap],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
        subprocess.Popen(
            [sys.executable, "-m", "tagwire", "consume", topic, "--follow", "--json", "--bootstrap", bootstrap],
            stdout=subprocess.PIPE,
            text=True,
        ) as follower,
    ):
        for value in ("first", "second"):
            process.stdin.write(value + "\n")
            process.stdin.flush()
            assert json.loads(follower.stdout.readline())["value"] == value
        follower.terminate()
        out, err = process.communicate()
    assert (process.returncode, out, err) == (0, f"2 records to {topic}: {topic}/0@0-1\n", "")


def test_an_input_that_does_not_block_ends_where_its_writer_ends_it():
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    with FileIO(read_end) as source, FileIO(write_end, "w") as writer:
        told = iter([b"", b"first\n", b"", b"second\n"])

        def write_or_end() -> None:
            if (line := next(told, None)) is None:
                writer.close()
            else:
                writer.write(line)

        assert list(records_of(source, b"\n", write_or_end)) == [b"first", b"second"]


@pytest.mark.parametrize(
    ("text", "options", "fields"),
    [
        (b"k 5 v w\n", ["%k %T %v"], {"key": "k", "timestamp": 5, "value": "v w"}),
        (b"k 5 v w\n", ["%k %T %v\\n"], {"key": "k", "timestamp": 5, "value": "v w"}),
        (b"[v] a=1,b=,a=x=y\n", ["[%v] %h"], {"value": "v", "headers": [("a", "1"), ("b", ""), ("a", "x=y")]}),
        (b"1|NULL|NULL\n", ["%p|%k|%s", "--null", "NULL"], {"partition": 1, "key": None, "value": None}),
        (b"|\n", ["%k|%v", "--null", ""], {"key": None, "value": None}),
        (b"|\n", ["%k|%v"], {"key": "", "value": ""}),
        (b"a%b\tc\n", ["a%%%k\\t%v"], {"key": "b", "value": "c"}),
        (b"topic:7 v\n", ["%t:%o %v"], {"key": None, "value": "v"}),
        (b"v,h=1\n", ["%v,%h", "--header", "g=0"], {"value": "v", "headers": [("g", "0"), ("h", "1")]}),
        (b"k\n", ["%k"], {"key": "k", "value": None}),
        (b"v;\n", ["%v;"], {"value": "v"}),
        (b"v\n", ["%v;"], {"value": "v"}),
    ],
)
def test_a_line_holds_what_the_format_says(produce, held, text, options, fields):
    ran, topic = produce(text, "--format", *options, partitions=2)
    assert ran.code == 0
    (record,) = held(topic)
    record["headers"] = [(header["key"], header["value"]) for header in record["headers"]]
    assert {name: record[name] for name in fields} == fields


def test_what_consume_formats_is_read_back(run, fill, produce, held):
    records = [Record(b"k%d" % number, b"v", [("h", b"%d" % number)], number) for number in range(5)]
    original = fill(records)
    form = r"%k|%h|%T|%v\n"
    ran, copy = produce(run("consume", original, "--format", form).out.encode(), "--format", form)
    assert ran.code == 0
    said = ("key", "value", "headers", "timestamp")
    copied, first = ([{name: record[name] for name in said} for record in held(topic)] for topic in (copy, original))
    assert copied == first


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("", "names no field"),
        ("%k%v", "has nothing between %k and %v"),
        ("%v %v", "names a field twice"),
        ("%q", "'%q' means nothing; there are %t %p %o %T %k %v %s %h %%"),
        ("%v,%", "'%' means nothing; there are"),
        ("%v\\q", r"'\\q' means nothing"),
    ],
)
def test_a_format_that_cannot_be_read_by_is_refused(produce, form, said):
    ran, _ = produce(b"v\n", "--format", form)
    assert ran.code == 2
    assert said in " ".join(ran.err.replace("│", " ").split())


@pytest.mark.parametrize(
    ("line", "form", "said"),
    [
        (b"k\n", "%k %v", "line 1: no b' ' after %k"),
        (b"v\n", "[%v]", "line 1: no b'[' where the format has it"),
        (b"x v\n", "%T %v", "line 1: timestamp b'x' is not a number"),
        (b"-1 v\n", "%p %v", "line 1: partition b'-1' is not a number"),
        (b"v h\n", "%v %h", "line 1: header b'h' is not KEY=VALUE"),
        (b"v \xff=1\n", "%v %h", "line 1: the header key"),
    ],
)
def test_a_line_that_does_not_hold_what_the_format_says_is_named(produce, held, line, form, said):
    ran, topic = produce(line, "--format", form)
    assert ran.code == 2
    assert said in ran.err
    assert held(topic) == []


@pytest.mark.parametrize(
    ("data", "delimiter", "values"),
    [
        (b"a\0b\nc\0", "\\0", ["a", "b\nc"]),
        (b"a\n\nb\nc\n\n", "\\n\\n", ["a", "b\nc"]),
        (b"a--b-c--" + b"x" * 200_000 + b"--y", "--", ["a", "b-c", "x" * 200_000, "y"]),
        (b"a%b", "%", ["a", "b"]),
        (b"-" * 65_537 + b"+" + b"z", "-+", ["-" * 65_536, "z"]),
    ],
)
def test_records_end_where_the_delimiter_says(produce, held, data, delimiter, values):
    ran, topic = produce(data, "--delimiter", delimiter)
    assert ran.code == 0
    assert [record["value"] for record in held(topic)] == values


def test_the_report_tells_a_program_what_was_written_where(produce):
    ran, topic = produce(b"0 a\n2 b\n0 c\n", "--format", "%p %v", "--report", partitions=3)
    assert [json.loads(line) for line in ran.out.splitlines()] == [
        {"topic": topic, "partition": 0, "records": 2, "first_offset": 0, "last_offset": 1},
        {"topic": topic, "partition": 2, "records": 1, "first_offset": 0, "last_offset": 0},
    ]
    ran, topic = produce(b"a\n", "--acks", "0", "--report")
    assert json.loads(ran.out) == {
        "topic": topic,
        "partition": 0,
        "records": 1,
        "first_offset": None,
        "last_offset": None,
    }


def test_in_a_transaction_a_bad_line_leaves_nothing(run, produce):
    ran, topic = produce(b"a:1\nb:2\nnothing\n", "--key-separator", ":", "--transaction", "load")
    assert (ran.code, ran.out) == (2, "")
    assert run("consume", topic, "--json", "--isolation", "read_committed").out == ""
    ran, topic = produce(b"a:1\nb:2\n", "--key-separator", ":", "--transaction", "load")
    assert (ran.code, ran.out) == (0, f"2 records to {topic}: {topic}/0@0-1\n")
    assert len(run("consume", topic, "--json", "--isolation", "read_committed").out.splitlines()) == 2


def test_a_time_can_be_given_to_all(produce, held):
    ran, topic = produce(b"a\nb\n", "--timestamp", "1372917600000", "--null", "b")
    assert ran.code == 0
    assert [(record["timestamp"], record["value"]) for record in held(topic)] == [
        (1372917600000, "a"),
        (1372917600000, None),
    ]


@pytest.mark.parametrize(
    "options",
    [
        ["--json", "--format", "%v"],
        ["--json", "--null", "x"],
        ["--format", "%v", "--key", "k"],
        ["--delimiter", ""],
    ],
)
def test_options_that_contradict_each_other_are_refused(produce, options):
    ran, _ = produce(b"a\n", *options)
    assert ran.code == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
@pytest.mark.parametrize("transaction", [False, True])
def test_a_signal_sends_what_was_read_or_none_of_it(run, fill, bootstrap, transaction, number):
    topic = fill()
    options = ["--transaction", f"id-{topic}"] if transaction else []
    with start("produce", topic, "--bootstrap", bootstrap, *options, stdin=subprocess.PIPE, text=True) as process:
        process.stdin.write("first\nsecond\n")
        process.stdin.flush()
        while run("consume", topic, "--json").out.count("\n") < 2:
            assert process.poll() is None
        process.send_signal(number)
        out, err = process.communicate()
    assert (process.returncode, "Traceback" in err) == (128 + number, False)
    with Admin(bootstrap) as admin:
        assert f"id-{topic}" not in [each.transactional_id for each in admin.list_transactions(states=["Ongoing"])]
    assert out == ("" if transaction else f"2 records to {topic}: {topic}/0@0-1\n")
    committed = run("consume", topic, "--json", "--isolation", "read_committed").out
    assert committed.count("\n") == (0 if transaction else 2)
