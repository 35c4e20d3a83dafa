"""`tagwire consume` and `produce` of values and keys with a schema."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from tagwire.cli.record_lines import parse_line
from tagwire.cli.typed_values import typed
from tagwire.client import Reader
from tagwire.errors import DecodeError
from tagwire.records import Record

from ..values.registry_server import RegistryServer, registry_server

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}], "default": None},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}], "default": None},
        {"name": "price", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}],
         "default": None},
        {"name": "data", "type": ["null", "bytes"], "default": None},
        {"name": "x", "type": ["null", "double"], "default": None},
        {"name": "tags", "type": {"type": "map", "values": "int"}, "default": {}},
    ],
}  # fmt: skip
VALUE = {
    "id": 1,
    "day": "2024-02-29",
    "at": "2024-02-29T12:00:00.500000Z",
    "price": "12.50",
    "data": {"base64": "/w=="},
    "x": "NaN",
    "tags": {"a": 1},
}
EMPTY = {**dict.fromkeys(VALUE), "id": 2, "tags": {}}


@pytest.fixture(scope="module")
def registry() -> Iterator[RegistryServer]:
    with registry_server() as one:
        yield one


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    def lines(*texts: str) -> Path:
        path = tmp_path / "lines"
        path.write_text("".join(text + "\n" for text in texts))
        return path

    return lines


def values_in(bootstrap: str, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    with Reader(bootstrap, topic, stop_at_end=True) as reader:
        return [(each.key, each.value) for each in reader.records()]


def test_what_is_produced_as_json_is_consumed_as_the_same_json(run, fill, registry, lines, bootstrap):
    topic = fill()
    schema_id = registry.add(f"{topic}-value", json.dumps(ORDER))
    registry.add(f"{topic}-key", '"long"')
    file = lines(*(json.dumps({"key": 7, "value": value}) for value in (VALUE, {"id": 2}, None)))
    options = ("--json", "--value-format", "avro", "--key-format", "avro", "--registry", registry.url)
    ran = run("produce", topic, "--file", file, *options)
    assert (ran.code, ran.err) == (0, "")
    assert values_in(bootstrap, topic)[0][1][:5] == struct.pack(">bI", 0, schema_id)
    ran = run("consume", topic, *options)
    assert (ran.code, ran.err) == (0, "")
    found = [json.loads(line) for line in ran.out.splitlines()]
    assert [(each["key"], each["value"]) for each in found] == [(7, VALUE), (7, EMPTY), (7, None)]


PROTOBUF = """
syntax = "proto3";
import "google/protobuf/duration.proto";
message Odd {
  message Inner { map<string, int32> named = 1; map<int64, string> numbered = 2; }
  map<int32, string> numbered = 1;
  map<bool, string> told = 2;
  map<string, Inner> inner = 3;
  repeated google.protobuf.Duration took = 4;
}
"""


def test_maps_by_numbers_and_intervals_are_consumed_as_they_are_produced(run, fill, registry, lines):
    topic = fill()
    registry.add(f"{topic}-value", PROTOBUF, "PROTOBUF")
    value = {
        "numbered": [[1, "a"], [-2, "b"]],
        "told": [[True, "yes"]],
        "inner": {"x": {"named": {"a": 1}, "numbered": [[5, "c"]]}},
        "took": ["0:00:00", "1 day, 2:03:04.500000", "-2 days, 23:59:59.999999", "3652500 days, 0:00:00"],
    }
    empty = {"numbered": [], "told": [], "inner": {}, "took": []}
    options = ("--json", "--value-format", "protobuf", "--registry", registry.url)
    file = lines(*(json.dumps({"value": each}) for each in (value, empty)))
    ran = run("produce", topic, "--file", file, *options)
    assert (ran.code, ran.err) == (0, "")
    ran = run("consume", topic, *options)
    assert (ran.code, ran.err) == (0, "")
    found = [json.loads(line)["value"] for line in ran.out.splitlines()]
    assert [{**each, "numbered": sorted(each["numbered"], reverse=True)} for each in found] == [value, empty]


def test_times_that_no_calendar_has_are_told_by_their_numbers_and_end_nothing(run, fill, registry, lines):
    topic = fill()
    registry.add(f"{topic}-value", json.dumps(ORDER))
    days = {"id": 1, "day": 2**31 - 1, "at": "2024-02-29T12:00:00Z", "tags": {}}
    milliseconds = {"id": 2, "at": -(10**15), "tags": {}}
    options = ("--json", "--value-format", "avro", "--registry", registry.url)
    file = lines(*(json.dumps({"value": value}) for value in (days, milliseconds, VALUE)))
    assert run("produce", topic, "--file", file, *options).code == 0
    ran = run("consume", topic, *options)
    assert (ran.code, ran.err) == (0, "")
    first, second, third = (json.loads(line)["value"] for line in ran.out.splitlines())
    assert (first["day"], first["id"]) == (2**31 - 1, 1)
    assert second["at"] == -(10**15)
    assert third == VALUE
    assert run("consume", topic, "--raw", *options[1:]).out.count("\n") == 3


def test_a_time_that_is_a_number_counts_what_its_schema_counts(run, fill, registry, lines):
    local = {"type": "long", "logicalType": "local-timestamp-millis"}
    avro = {
        "type": "record",
        "name": "Times",
        "fields": [
            {"name": "millis", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
            {"name": "micros", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "local", "type": {"type": "array", "items": local}},
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "clock", "type": {"type": "int", "logicalType": "time-millis"}},
        ],
    }  # fmt: skip
    timestamp = {"type": "integer", "connect.type": "int64", "title": "org.apache.kafka.connect.data.Timestamp"}
    connect = {"properties": {"millis": timestamp}}
    near, far = 1_700_000_000_123, 10**15
    for format_, schema, text, value, shown in (
        (
            "avro",
            avro,
            "AVRO",
            {"millis": near, "micros": near * 1000, "local": [near], "day": 1, "clock": 5},
            {
                "millis": "2023-11-14T22:13:20.123000Z",
                "micros": "2023-11-14T22:13:20.123000Z",
                "local": ["2023-11-14T22:13:20.123000"],
                "day": "1970-01-02",
                "clock": 5,
            },
        ),
        ("json-schema", connect, "JSON", {"millis": near}, {"millis": "2023-11-14T22:13:20.123000Z"}),
    ):
        topic = fill()
        registry.add(f"{topic}-value", json.dumps(schema), text)
        options = ("--json", "--value-format", format_, "--registry", registry.url)
        # What no calendar has is told by the same number that it is taken by.
        file = lines(json.dumps({"value": value}), json.dumps({"value": {**value, "millis": far}}))
        assert run("produce", topic, "--file", file, *options).code == 0
        ran = run("consume", topic, *options)
        assert (ran.code, ran.err) == (0, "")
        first, second = (json.loads(line)["value"] for line in ran.out.splitlines())
        assert first == shown
        assert second["millis"] == far


def test_people_see_values_as_json_and_plain_lines_are_json(run, fill, registry, lines):
    topic = fill()
    registry.add(f"{topic}-value", json.dumps({"properties": {"id": {"type": "integer"}, "s": {}}}), "JSON")
    options = ("--value-format", "json-schema", "--schema-registry", registry.url)
    assert (
        run("produce", topic, "--file", lines('{"id": 1, "s": "\\"é\\""}', "NULL"), "--null", "NULL", *options).code
        == 0
    )
    assert run("consume", topic, "--raw", *options).out == '{"id":1,"s":"\\"é\\""}\n\n'
    assert run("consume", topic, "-f", "%v|%V ", "--null", "-", *options).out == '{"id":1,"s":"\\"é\\""}|21 -|-1 '
    assert '  {"id":1,' in run("consume", topic, *options).out


def test_text_is_taken_and_printed_as_it_is_where_the_schema_says_string(run, fill, registry, lines):
    topic = fill()
    registry.add(f"{topic}-value", '"string"')
    options = ("--value-format", "avro", "--registry", registry.url)
    assert run("produce", topic, "--file", lines("plain text"), *options).code == 0
    assert run("consume", topic, "--raw", *options).out == "plain text\n"


def test_the_schema_of_an_id_is_read_by_where_a_property_names_it(run, fill, registry, lines, caplog):
    topic = fill()
    old = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
    new = {**old, "fields": [*old["fields"], {"name": "b", "type": "int", "default": 7}]}
    first, _ = (registry.add(f"{topic}-value", json.dumps(schema)) for schema in (old, new))
    options = ("--json", "--value-format", "avro", "--registry", registry.url)
    by_id = ("-X", f"use.schema.id={first}")
    assert run("produce", topic, "--file", lines('{"value": {"a": 1, "b": 2}}'), *options).code == 0
    assert run("produce", topic, "--file", lines('{"value": {"a": 3}}'), *options, *by_id).code == 0
    told = [run("consume", topic, *options, *more) for more in ((), by_id, ("-X", "use.latest.version=true"))]
    assert [(ran.code, ran.err) for ran in told] == [(0, "")] * 3
    newest, oldest, latest = ([json.loads(line)["value"] for line in ran.out.splitlines()] for ran in told)
    assert newest == latest == [{"a": 1, "b": 2}, {"a": 3, "b": 7}]
    assert oldest == [{"a": 1}, {"a": 3}]
    assert not caplog.records  # no client of brokers was asked what it knows of that
    ran = run("produce", topic, "--file", lines('{"value": {"a": 1, "b": 2}}'), *options, *by_id)
    assert (ran.code, "b" in ran.err) == (2, True)


def test_a_schema_may_be_a_file_and_then_values_are_bare(run, fill, lines, tmp_path, bootstrap):
    topic = fill()
    schema = tmp_path / "order.json"
    schema.write_text('{"properties": {"id": {"type": "integer"}}}')
    options = ("--value-format", "json-schema", "--value-schema", schema)
    assert run("produce", topic, "--file", lines('{"id":5}'), *options).code == 0
    assert values_in(bootstrap, topic) == [(None, b'{"id":5}')]
    assert run("consume", topic, "--raw", *options).out == '{"id":5}\n'
    by_properties = ("-X", "value.format=json-schema", "-X", f"value.schema={schema}")
    assert run("consume", topic, "--raw", *by_properties).out == '{"id":5}\n'


def test_what_cannot_be_decoded_ends_it_or_is_null_or_left_out(run, fill, registry, lines):
    topic = fill()
    registry.add(f"{topic}-value", '"long"')
    assert run("produce", topic, "--file", lines("no framing", "NULL"), "--null", "NULL").code == 0
    options = ("--value-format", "avro", "--registry", registry.url)
    assert run("produce", topic, "--file", lines("5"), *options).code == 0
    shown = ("-f", "%o=%v ", "--null", "-")
    ran = run("consume", topic, *shown, *options)
    assert (ran.code, ran.out) == (2, "")
    assert f"value of {topic}-0@0: begins with byte 110" in ran.err
    assert "--bad-values null or drop" in ran.err
    assert ran.err.count("\n") == 1
    for what, out in (("null", "0=- 1=- 2=5 "), ("drop", "1=- 2=5 ")):
        ran = run("consume", topic, *shown, *options, "--bad-values", what)
        assert (ran.code, ran.out) == (0, out)
        member = ("--group", f"{topic}-{what}", "--join", "--limit", len(out.split()))
        assert run("consume", topic, *shown, *options, "--bad-values", what, *member).out == out
    ran = run("consume", topic, "--bad-values", "null")
    assert ran.code == 2
    assert "--value-format" in ran.err


def test_a_members_values_have_their_schema_too(run, fill, registry, lines):
    topic = fill()
    registry.add(f"{topic}-value", json.dumps(ORDER))
    options = ("--value-format", "avro", "--registry", registry.url)
    assert run("produce", topic, "--file", lines('{"id": 4}'), *options).code == 0
    ran = run("consume", topic, "--group", topic, "--join", "--limit", 1, "--json", *options)
    assert json.loads(ran.out)["value"]["id"] == 4


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"id": "x"}', "id"),
        ('{"id": 1, "colour": 2}', "'colour' is no field of the schema"),
        ("[1]", "line 1: value: [1] is no object"),
        ("{", "line 1: value: Expecting"),
        ('{"id": 1, "day": "tomorrow"}', "line 1: value: Invalid isoformat"),
        ('{"id": 1, "data": {"base64": "?"}}', "line 1: value: not base64"),
        ('{"id": 1, "price": "much"}', 'line 1: value: "much" is no decimal'),
        ('{"id": 1, "price": "0E-100000000"}', "price: 0E-100000000 is no decimal128(9, 2)"),
        ('{"id": 1, "tags": ["a1"]}', 'line 1: value: ["a1"] is no object, and no list of pairs'),
        ('{"id": 1, "tags": 5}', "line 1: value: 5 is no object, and no list of pairs"),
    ],
)
def test_a_line_that_its_schema_does_not_fit_is_told_in_one_line(run, fill, registry, lines, line, said, bootstrap):
    topic = fill()
    registry.add(f"{topic}-value", json.dumps(ORDER))
    ran = run("produce", topic, "--file", lines(line), "--value-format", "avro", "--registry", registry.url)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1
    assert values_in(bootstrap, topic) == []


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        (["ab"], pa.map_(pa.string(), pa.string()), "no list of pairs"),
        ([{"a": 1, "b": 2}], pa.map_(pa.string(), pa.string()), "no list of pairs"),
        ("ab", pa.map_(pa.string(), pa.string()), "no list of pairs"),
        ("1 day", pa.duration("us"), "is no interval"),
        ("999999999 days, 99:00:00", pa.duration("us"), "magnitude"),
    ],
)
def test_what_only_looks_like_pairs_or_an_interval_is_refused(value, kind, said):
    read = typed(partial(parse_line, typed={"value"}), {"value": kind}, is_parsed=True)
    with pytest.raises(DecodeError, match=f"line 1: value: .*{said}"):
        read(json.dumps({"value": value}).encode(), 1)


def test_a_value_that_cannot_be_decoded_ends_consume_after_those_before_it(run, fill, registry):
    schema = json.dumps({"properties": {"id": {"type": "integer"}}})
    topic = fill()
    schema_id = registry.add(f"{topic}-value", schema, "JSON")
    frame = struct.pack(">bI", 0, schema_id)
    topic = fill([Record(None, frame + b'{"id":1}'), Record(None, b"bare")])
    registry.add(f"{topic}-value", schema, "JSON")
    ran = run("consume", topic, "--raw", "--value-format", "json-schema", "--registry", registry.url)
    assert (ran.code, ran.out) == (2, '{"id":1}\n')
    assert f"value of {topic}-0@1" in ran.err


def test_options_about_schemas_that_contradict_each_other_are_refused(run, fill, registry):
    topic = fill()
    for command in ("consume", "produce"):
        ran = run(command, topic, "--value-schema", "order.avsc")
        assert (ran.code, "needs --value-format" in ran.err) == (2, True)
        ran = run(command, topic, "--value-format", "avro", "--registry", registry.url, "-X", "value.subjekt=a")
        assert (ran.code, "value.subjekt" in ran.err) == (2, True)


def test_properties_of_a_registry_may_stand_in_a_file_for_brokers_too(run, fill, registry, tmp_path, caplog):
    topic = fill([Record(None, b"v")])
    file = tmp_path / "client.properties"
    file.write_text(f"schema.registry.url={registry.url}\nbasic.auth.user.info=a:hunter2\nvalue.subject=orders\n")
    ran = run("--properties", file, "consume", topic, "--raw")
    assert (ran.code, ran.out, ran.err) == (0, "v\n", "")
    assert not caplog.records
