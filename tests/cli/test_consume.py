"""`tagwire consume`: what a person sees, what a program gets, where it starts and stops."""

from __future__ import annotations

import json
import signal
import time
import uuid

import pytest

from tagwire.broker import Broker
from tagwire.client import Admin, Consumer, Producer, Reader
from tagwire.records import Record

from .processes import start

SIX = 1_372_917_600_000  # 2013-07-04 06:00 UTC
MINUTE = 60_000
DEPARTURES = [
    Record(b"UA-%d" % index, b'{"flight":%d}' % index, [("origin", b"EWR")], SIX + index * MINUTE) for index in range(6)
]


def _values(ran) -> list[str]:
    return [json.loads(line)["value"] for line in ran.out.splitlines()]


def test_a_person_sees_place_time_key_headers_and_value(run, fill):
    topic = fill(DEPARTURES[:1])
    ran = run("consume", topic)
    assert ran.code == 0
    assert ran.out == f'{topic}/0@0  2013-07-04 06:00  key=UA-0  headers: origin=EWR\n  {{"flight":0}}\n'


def test_null_empty_and_missing_are_told_apart(run, fill):
    topic = fill([Record(None, None, [("a", None), ("a", b"")], SIX), Record(b"", b"", [], SIX)])
    assert run("consume", topic).out.splitlines() == [
        f"{topic}/0@0  2013-07-04 06:00  headers: a=<null> a=",
        "  <null>",
        f"{topic}/0@1  2013-07-04 06:00  key=",
        "  ",
    ]


def test_control_characters_from_the_wire_do_not_reach_the_terminal(run, fill):
    evil = b"\x1b]0;owned\x07\x1b[2J\x9b\n\r"
    topic = fill([Record(evil, evil, [("\x1b[1m\u202e", evil)], SIX)])
    for arguments in ([], ["--full"], ["--json"]):
        out = run("consume", topic, *arguments).out
        assert "".join(out.split("\n")).isprintable()
        assert out.count("\n") == (1 if "--json" in arguments else 2)


def test_long_keys_values_and_headers_are_cut_unless_asked_in_full(run, fill):
    long = b"x" * 5000
    topic = fill([Record(long, long, [("h" * 5000, long)], SIX)])
    short = run("consume", topic).out
    assert short.count("…") == 4
    assert max(map(len, short.splitlines())) < 300 + len(topic)
    full = run("consume", topic, "--full").out
    assert "…" not in full
    assert full.count("x" * 5000) == 3


def test_json_tells_all_of_a_record(run, fill):
    topic = fill([Record(b"\xff\x00", "é".encode(), [("a", b"1"), ("a", None)], SIX), Record(None, None, [], SIX)])
    first, second = map(json.loads, run("consume", topic, "--json").out.splitlines())
    assert first == {
        "topic": topic,
        "partition": 0,
        "offset": 0,
        "timestamp": SIX,
        "timestamp_type": "CreateTime",
        "key": {"base64": "/wA="},
        "value": "é",
        "headers": [{"key": "a", "value": "1"}, {"key": "a", "value": None}],
    }
    assert (second["key"], second["value"], second["headers"], second["offset"]) == (None, None, [], 1)


@pytest.mark.parametrize(
    ("arguments", "flights"),
    [
        ([], [0, 1, 2, 3, 4, 5]),
        (["--from", "earliest", "--to", "latest"], [0, 1, 2, 3, 4, 5]),
        (["--from", "4"], [4, 5]),
        (["--from", "6"], []),
        (["--to", "2"], [0, 1]),
        (["--to", "600"], [0, 1, 2, 3, 4, 5]),
        (["--from", "2", "--to", "2"], []),
        (["--from", "3", "--to", "1"], []),
        (["--from", "latest"], []),
        (["--from", "2013-07-04"], [0, 1, 2, 3, 4, 5]),
        (["--from", "2013-07-05"], []),
        (["--to", "2013-07-05"], [0, 1, 2, 3, 4, 5]),
        (["--from", "2013-07-04T06:02", "--to", "2013-07-04T06:04"], [2, 3]),
        (["--limit", "2"], [0, 1]),
        (["--from", "2013-07-04T06:03:30", "--limit", "1"], [4]),
        (["--from", "-2"], [4, 5]),
        (["--from", "-600"], [0, 1, 2, 3, 4, 5]),
        (["--from", f"@{SIX + 4 * MINUTE}"], [4, 5]),
        (["--from", "0=3"], [3, 4, 5]),
        (["--from", "0=3", "--to", "0=-1"], [3, 4]),
        (["-o", "1:3"], [1, 2]),
        (["-o", "-2:-1"], [4]),
        (["--offsets", ":2"], [0, 1]),
        (["-o", f"@{SIX + MINUTE}:@{SIX + 3 * MINUTE}"], [1, 2]),
        (["-c", "3"], [0, 1, 2]),
        (["--count", "1", "-p", "0"], [0]),
    ],
    ids=lambda value: " ".join(value) if value and isinstance(value[0], str) else "",
)
def test_a_read_starts_and_stops_where_it_is_told(run, fill, arguments, flights):
    ran = run("consume", fill(DEPARTURES), "--json", *arguments)
    assert ran.code == 0
    assert _values(ran) == [f'{{"flight":{index}}}' for index in flights]


def test_all_partitions_are_read_or_the_one_named(run, fill):
    topic = fill([Record(b"k%d" % index, b"v%d" % index) for index in range(40)], partitions=4)
    records = [json.loads(line) for line in run("consume", topic, "--json").out.splitlines()]
    assert {record["value"] for record in records} == {f"v{index}" for index in range(40)}
    assert {record["partition"] for record in records} == {0, 1, 2, 3}
    for partition in range(4):
        offsets = [record["offset"] for record in records if record["partition"] == partition]
        assert offsets == list(range(len(offsets)))
        alone = run("consume", topic, "--json", "--partition", partition).out.splitlines()
        assert [json.loads(line)["offset"] for line in alone] == offsets
    assert len(run("consume", topic, "--json", "--limit", 7).out.splitlines()) == 7


def test_a_range_without_records_says_so_to_a_person_only(run, fill):
    topic = fill()
    assert run("consume", topic) == (0, "", f"no records in this range of {topic}\n")
    assert run("consume", topic, "--json") == (0, "", "")


def test_an_offset_needs_its_partition_where_there_are_several(run, fill):
    topic = fill([Record(None, b"v")], partitions=2, partition=1)
    ran = run("consume", topic, "--from", "0")
    assert ran.code == 2
    assert "--partition" in ran.err
    assert run("consume", topic, "--from", "0", "--partition", "1").code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--from", "7"], "OFFSET_OUT_OF_RANGE (1): partition {topic}-0 holds 0-5, not 7"),
        (["--partition", "3"], "UNKNOWN_TOPIC_OR_PARTITION (3): topic '{topic}' has no partition 3"),
        (["--to", "0=1,7=2"], "UNKNOWN_TOPIC_OR_PARTITION (3): topic '{topic}' has no partition 7"),
    ],
)
def test_what_a_topic_does_not_hold_is_named(run, fill, arguments, said):
    topic = fill(DEPARTURES)
    ran = run("consume", topic, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("tagwire: " + said.format(topic=topic))
    assert ran.err.count("\n") == 1


def test_an_unknown_topic_is_named_and_not_created(run):
    ran = run("consume", "nowhere")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "tagwire: UNKNOWN_TOPIC_OR_PARTITION (3): topic 'nowhere'\n"
    assert "nowhere" not in run("topics").out


def test_a_corrupt_batch_is_named_after_what_stands_before_it(run, tmp_path):
    with Broker(tmp_path) as broker:
        with Producer(broker.bootstrap) as producer:
            for value in (b"first", b"second", b"third"):
                producer.send("t", value)
                producer.flush()
        (segment,) = (tmp_path / "t-0").glob("*.log")
        segment.write_bytes(segment.read_bytes().replace(b"second", b"sEcond"))
        ran = run("consume", "t", "--json", "--bootstrap", broker.bootstrap)
    assert ran.code == 2
    assert _values(ran) == ["first"]
    assert ran.err.startswith("tagwire: ")
    assert "t-0@1" in ran.err
    assert ran.err.count("\n") == 1


def test_a_format_writes_fields_as_it_says(run, fill):
    topic = fill([Record(b"k", b"vv", [("a", b"1"), ("b", None)], SIX), Record(None, None, [], SIX)])
    ran = run("consume", topic, "--format", r"%p/%o %T %k=%V:%h;\n", "--null", "-")
    assert ran.out == f"0/0 {SIX} k=2:a=1,b=-;\n0/1 {SIX} -=-1:;\n"


def test_raw_is_values_alone(run, fill):
    topic = fill([Record(b"k", b"one"), Record(b"k", None), Record(b"k", "zwölf".encode())])
    assert run("consume", topic, "--raw").out == "one\n\nzwölf\n"


def test_each_partition_may_have_its_own_range(run, fill):
    topic = fill([Record(b"k%d" % index, b"v%d" % index) for index in range(60)], partitions=3)

    def read(*arguments: object) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for line in run("consume", topic, "--format", r"%p %o\n", *arguments).out.splitlines():
            partition, offset = map(int, line.split())
            found.setdefault(partition, []).append(offset)
        return found

    everything = read()
    assert sum(map(len, everything.values())) == 60
    assert read("--from", "-2") == {partition: offsets[-2:] for partition, offsets in everything.items()}
    assert read("--from", "0=1,2=-3") == {0: everything[0][1:], 2: everything[2][-3:]}
    assert read("--from", "1=2", "--to", "1=5") == {1: [2, 3, 4]}
    assert run("consume", topic, "--from", "7=2").code == 2


def test_a_group_is_read_on_from_where_it_stands(run, fill):
    topic = fill(DEPARTURES)
    group = ("--group", f"of-{topic}"[:100])
    assert run("consume", topic, "--json", *group).code == 2  # it stands nowhere yet
    assert _values(run("consume", topic, "--json", *group, "--commit", "--limit", 2)) == [
        '{"flight":0}',
        '{"flight":1}',
    ]
    for _ in range(2):  # without --commit nothing changes
        assert len(run("consume", topic, "--json", *group).out.splitlines()) == 4
    assert _values(run("consume", topic, "--json", *group, "--commit", "--from", "latest")) == [
        f'{{"flight":{index}}}' for index in range(2, 6)
    ]
    assert run("consume", topic, "--json", *group) == (0, "", "")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_of_a_group_prints_what_the_group_gives_it_and_commits_what_was_printed(
    run, fill, bootstrap, protocol
):
    topic = fill(DEPARTURES)
    group = f"of-{topic}-{protocol}"[:100]
    joined = ("consume", topic, "--json", "--group", group, "--join", "--group-protocol", protocol)
    flights = [f'{{"flight":{index}}}' for index in range(6)]
    assert _values(run(*joined, "--limit", 1)) == flights[:1]  # and commits nothing
    assert _values(run(*joined, "--commit", "--limit", 2)) == flights[:2]
    with Admin(bootstrap) as admin:
        assert admin.describe_groups(group)[group].type == protocol
        assert [found.offset for found in admin.group_offsets(group).values()] == [2]
    assert _values(run(*joined, "--commit", "--limit", 4)) == flights[2:]


def test_two_members_share_the_partitions_of_a_topic(run, fill, bootstrap):
    topic = fill([Record(b"k%d" % index, b"v%d" % index) for index in range(40)], partitions=4)
    group = f"of-{topic}"[:100]
    with Consumer(bootstrap, group=group, protocol="consumer", offset_reset="latest", auto_commit=False) as other:
        other.subscribe(topic)
        while len(other.assignment()) < 4:
            other.poll(0.05)
        command = ("consume", topic, "--json", "--group", group, "--join", "--group-protocol", "consumer", "--commit")
        with start(*command, "--bootstrap", bootstrap, text=True) as process:
            while len(other.assignment()) != 2:
                other.poll(0.05)
            mine = {partition.partition for partition in other.assignment()}
            with Producer(bootstrap) as producer:
                for partition in range(4):
                    producer.send(topic, b"new", partition=partition)
            printed = set()
            while printed != {0, 1, 2, 3} - mine:
                record = json.loads(process.stdout.readline())
                assert record["partition"] not in mine
                if record["value"] == "new":
                    printed.add(record["partition"])
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130, process.stderr.read()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_that_a_signal_ends_leaves_its_group(fill, bootstrap, protocol, number):
    topic = fill([Record(None, b"v")])
    group = f"of-{topic}"[:100]
    command = ("consume", topic, "--json", "--group", group, "--join", "--group-protocol", protocol)
    with start(*command, "--bootstrap", bootstrap, text=True) as process:
        assert json.loads(process.stdout.readline())["value"] == "v"
        process.send_signal(number)
        assert process.wait(20) == 128 + number
        assert process.stderr.read() == ""
    with Admin(bootstrap) as admin:
        assert admin.describe_groups(group)[group].members == ()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_what_was_printed_before_a_signal_is_committed(fill, bootstrap, number):
    topic = fill([Record(None, b"v")])
    group = f"of-{topic}"[:100]
    command = ("consume", topic, "--json", "--group", group, "--commit", "--follow")
    with start(*command, "--bootstrap", bootstrap, text=True) as process:
        assert json.loads(process.stdout.readline())["value"] == "v"
        with Producer(bootstrap) as producer:
            producer.send(topic, b"next")
        assert json.loads(process.stdout.readline())["value"] == "next"  # by which the first is noted as printed
        process.send_signal(number)
        assert process.wait(20) == 128 + number
        assert process.stderr.read() == ""
    with Admin(bootstrap) as admin:
        (committed,) = admin.group_offsets(group).values()
    assert committed.offset in (1, 2)


def test_what_was_printed_before_an_interruption_is_committed(run, fill, monkeypatch):
    topic = fill(DEPARTURES)
    group = ("--group", f"of-{topic}"[:100])
    batches = iter(())

    def once_then_interrupted(reader):
        try:
            return next(batches)
        except StopIteration:
            raise KeyboardInterrupt from None

    real = Reader.__next__

    def first(reader):
        monkeypatch.setattr(Reader, "__next__", once_then_interrupted)
        return real(reader)

    monkeypatch.setattr(Reader, "__next__", first)
    ran = run("consume", topic, "--json", "--follow", "--commit", *group)
    monkeypatch.setattr(Reader, "__next__", real)
    assert (ran.code, len(ran.out.splitlines())) == (130, 6)
    assert run("consume", topic, "--json", *group) == (0, "", "")


def test_aborted_transactions_are_left_out_if_asked(run, bootstrap, fill):
    topic = fill([Record(None, b"plain")])
    with Producer(bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"aborted")
        producer.flush()
        producer.abort_transaction()
    assert _values(run("consume", topic, "--json")) == ["plain", "aborted"]
    assert _values(run("consume", topic, "--json", "--isolation", "read_committed")) == ["plain"]


@pytest.mark.parametrize("joined", [(), ("--join",)], ids=["alone", "member"])
def test_a_group_that_commits_stands_after_the_end_of_a_transaction(run, bootstrap, fill, joined):
    topic, group = fill([]), f"of-{uuid.uuid4()}"
    with Producer(bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"committed")
        producer.commit_transaction()
    command = ("consume", topic, "--json", "--group", group, "--commit", *joined)
    with Admin(bootstrap) as admin:
        if not joined:
            assert _values(run(*command)) == ["committed"]
        else:
            with start(*command, "--bootstrap", bootstrap, text=True) as process:
                assert json.loads(process.stdout.readline())["value"] == "committed"
                deadline = time.monotonic() + 30
                while time.monotonic() < deadline and not _is_at(admin, group, 2):
                    time.sleep(0.05)
                process.send_signal(signal.SIGINT)
                assert process.wait(60) == 130, process.stderr.read()
        assert _is_at(admin, group, 2)


def _is_at(admin, group, offset):
    return [found.offset for found in admin.group_offsets(group).values()] == [offset]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--offsets", "1:2", "--from", "1"], "--offsets"),
        (["--commit"], "--commit"),
        (["--json", "--raw"], "--raw"),
        (["--raw", "--format", "%v"], "--raw"),
        (["--format", "%x"], "%x"),
        (["--follow", "-o", "1:2"], "--offsets"),
        (["--join"], "--join"),
        (["--group", "g", "--group-protocol", "consumer"], "--join"),
        (["--group", "g", "--join", "--from", "5"], "--from"),
        (["--group", "g", "--join", "--partition", "0"], "--partition"),
        (["--group", "g", "--join", "--to", "5"], "--to"),
        (["--isolation", "serializable"], "--isolation"),
        (["--from", "0=1,0=2"], "--from"),
        (["--partition", "3", "--from", "0=1"], "--partition"),
        (["--partition", "3", "--to", "0=1,3=2"], "--partition"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_options_that_contradict_each_other_are_a_misuse(run, arguments, said):
    ran = run("consume", "nowhere", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1
