"""Columns of framed values become typed columns, each value by its writer's schema."""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
import threading
import time
import types
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tagwire.errors import ConfigError, SchemaRegistryError, ValueSchemaError
from tagwire.values.framing import header_value, prefix_of
from tagwire.values.options import value_settings
from tagwire.values.value_decoder import ValueDecoder, plan_decoder
from tagwire.values.value_encoder import plan_encoder

from .numbers_format import NumbersFormat
from .registry_server import Answer, RegistryServer, registry_server

_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.fixture(autouse=True)
def _numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("tagwire.values.json_schema")
    module.JsonSchemaFormat = NumbersFormat  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with registry_server() as server:
        yield server


def planned(registry: RegistryServer, **more: str) -> ValueDecoder:
    given = {"value.format": "json-schema", "schema.registry.url": registry.url, "max.retries": "0"}
    return plan_decoder(value_settings("value", {**given, **{k.replace("_", "."): v for k, v in more.items()}}), "t")


def factor(number: int) -> str:
    return f'{{"factor": {number}}}'


def test_values_of_several_writers_stay_in_their_places(registry: RegistryServer) -> None:
    one = registry.add("t-value", factor(1), "JSON")
    ten = registry.add("t-value", factor(10), "JSON")
    decoder = pickle.loads(pickle.dumps(planned(registry)))
    values = [
        prefix_of(one) + b"7",
        None,
        prefix_of(ten) + b"7",
        b"text",
        prefix_of(one) + b"x",
        prefix_of(99) + b"7",
        b"\0\0",
        prefix_of(ten) + b"8",
        b"",
    ]
    found, bad = decoder.decode(pa.array(values, pa.binary()))
    assert found.to_pylist() == [7, None, 70, None, None, None, None, 80, None]
    assert bad.to_pylist() == [False, False, False, True, True, True, True, False, True]
    assert "no number" in decoder.refusal(values[4])
    assert decoder.refusal(values[4]).startswith(f"schema id {one}: ")
    assert decoder.refusal(values[5]) == "schema id 99: the registry has no such schema"
    assert decoder.refusal(b"\0\0").startswith("ends in its framing")
    assert registry.asked("/schemas/ids/") == ["/schemas/ids/1", "/schemas/ids/2", "/schemas/ids/99"]


def test_a_header_names_the_schema_before_the_value_does(registry: RegistryServer) -> None:
    one = registry.add("t-value", factor(1), "JSON")
    ten = registry.add("t-value", factor(10), "JSON")
    by_guid = ("__value_schema_id", header_value(registry.guid(ten)))
    headers = [
        [by_guid],
        None,
        [("other", b"x"), ("__key_schema_id", b"\1")],
        [("__value_schema_id", b"\1broken")],
        [("__value_schema_id", header_value(registry.guid(one))), by_guid],
        [by_guid, ("__value_schema_id", None)],
        [by_guid],
    ]
    values = [b"5", prefix_of(one) + b"5", prefix_of(one) + b"6", b"5", b"5", prefix_of(one) + b"7", None]
    decoder = planned(registry)
    assert decoder.needs_headers
    found, bad = decoder.decode(pa.array(values, pa.binary()), pa.array(headers, _HEADERS))
    assert found.to_pylist() == [50, 5, 6, None, 50, 7, None]
    assert bad.to_pylist() == [False, False, False, True, False, False, False]
    assert decoder.refusal(b"5", headers[3]).startswith("header __value_schema_id: ends in its framing")


def test_a_tombstone_whose_header_names_a_schema_moves_no_other_value(registry: RegistryServer) -> None:
    one = registry.add("t-value", factor(1), "JSON")
    named = [("__value_schema_id", header_value(registry.guid(one)))]
    decoder = planned(registry)
    values = [b"1", None, prefix_of(one) + b"3", None, b"broken", b"6"]
    headers = [named, named, [], None, [], named]
    found, bad = decoder.decode(pa.array(values, pa.binary()), pa.array(headers, _HEADERS))
    assert found.to_pylist() == [1, None, 3, None, None, 6]
    assert bad.to_pylist() == [False, False, False, False, True, False]


def test_a_registry_that_is_away_fails_and_is_no_bad_row(registry: RegistryServer) -> None:
    registry.add("t-value", factor(1), "JSON")
    decoder = planned(registry)
    other = registry.add("t-value", factor(2), "JSON")
    registry.stop()
    with pytest.raises(SchemaRegistryError, match="refused"):
        decoder.decode(pa.array([prefix_of(other) + b"1"]))


def test_what_is_encoded_decodes(registry: RegistryServer) -> None:
    registry.add("t-value", factor(1), "JSON")
    settings = value_settings("value", {"value.format": "json-schema", "schema.registry.url": registry.url})
    encoder = pickle.loads(pickle.dumps(plan_encoder(settings, "t", pa.int64())))
    values, bad = encoder.encode(pa.array([1, None, -2]))
    assert values.to_pylist() == [b"\0\0\0\0\x011", None, None]
    assert bad.to_pylist() == [False, False, True]
    assert encoder.header is None
    assert plan_decoder(settings, "t").decode(values)[0].to_pylist() == [1, None, None]


def test_no_value_is_written_with_an_id_that_no_reader_takes(registry: RegistryServer) -> None:
    registry.add("t-value", factor(1), "JSON")
    settings = value_settings("value", {"value.format": "json-schema", "schema.registry.url": registry.url})
    document = {"subject": "t-value", "version": 1, "id": 2**31, "schemaType": "JSON", "schema": factor(1)}
    registry.misbehave = lambda _: Answer(body=json.dumps(document).encode())
    with pytest.raises(SchemaRegistryError, match="tells no id of subject t-value"):
        plan_encoder(settings, "t", pa.int64())


def test_nothing_is_registered_unless_it_is_asked_for(registry: RegistryServer) -> None:
    given = {"value.format": "json-schema", "schema.registry.url": registry.url, "value.schema": factor(3)}
    with pytest.raises(ValueSchemaError, match=r"auto\.register\.schemas=true"):
        plan_encoder(value_settings("value", given), "t", pa.int64())
    asked = value_settings("value", {**given, "auto.register.schemas": "true"})
    with pytest.raises(ValueSchemaError, match="does not fit"):
        plan_encoder(asked, "t", pa.string())
    assert not [each for each in registry.requests if each.path.endswith("/versions")]
    assert plan_encoder(asked, "t", pa.int64()).prefix == prefix_of(1)


def test_bare_bodies_need_no_registry() -> None:
    settings = value_settings("value", {"value.format": "json-schema", "value.schema": factor(2)})
    decoder = plan_decoder(settings, None)
    assert not decoder.needs_headers
    assert decoder.decode(pa.array([b"2", None]))[0].to_pylist() == [4, None]
    assert plan_encoder(settings, None, pa.int64()).encode(pa.array([2]))[0].to_pylist() == [b"2"]


def test_ids_that_nobody_knows_are_asked_for_so_often_and_no_more(registry: RegistryServer) -> None:
    one = registry.add("t-value", factor(1), "JSON")
    decoder = planned(registry)
    values = [prefix_of(number) + b"1" for number in range(1000, 3000)] + [prefix_of(one) + b"1"] * 2
    found, bad = decoder.decode(pa.array(values))
    assert found.to_pylist() == [None] * 2000 + [1, 1]
    assert bad.to_pylist() == [True] * 2000 + [False] * 2
    assert len(registry.asked("/schemas/ids/")) <= 101


def test_a_writer_that_does_not_resolve_is_a_bad_row_with_its_id(registry: RegistryServer) -> None:
    registry.add("t-value", factor(1), "JSON")
    zero = registry.add("other", factor(0), "JSON")
    avro = registry.add("other", '"int"')
    circle = registry.add("circle", factor(9), "JSON", [("a", "circle", 1)])
    part = registry.add("part", factor(9), "JSON", [("a", "gone", 3)])
    decoder = planned(registry)
    values = [prefix_of(each) + b"1" for each in (zero, avro, circle, part)]
    found, bad = decoder.decode(pa.array(values))
    assert (found.null_count, pc.all(bad).as_py()) == (4, True)
    assert decoder.refusal(values[0]) == f"schema id {zero}: a factor of 0 does not resolve"
    assert decoder.refusal(values[1]) == f"schema id {avro}: is AVRO, not JSON"
    assert "in a circle" in decoder.refusal(values[2])
    assert decoder.refusal(values[3]) == f"schema id {part}: refers to gone 3, which the registry does not have"


def test_a_schema_that_lacks_what_it_refers_to_is_asked_for_again(registry: RegistryServer) -> None:
    """As where a registry that follows another has the one before it has the other."""
    registry.add("t-value", factor(1), "JSON")
    ten = registry.add("other-value", factor(10), "JSON", [("base", "base", 1)])
    decoder = planned(registry)
    assert decoder.settings.registry is not None
    soon = replace(decoder.settings, registry=replace(decoder.settings.registry, unknown_ttl=0.3))
    decoder = replace(decoder, settings=soon)
    values = pa.array([prefix_of(ten) + b"7"])
    for _ in range(2):
        assert decoder.decode(values)[1].to_pylist() == [True]
    assert "which the registry does not have" in decoder.refusal(values[0].as_py())
    assert registry.asked(f"/schemas/ids/{ten}") == [f"/schemas/ids/{ten}"]
    registry.add("base", factor(1), "JSON")
    time.sleep(0.4)
    assert decoder.decode(values)[0].to_pylist() == [70]


def test_a_process_that_was_forked_while_threads_decoded_decodes(registry: RegistryServer) -> None:
    one = registry.add("t-value", factor(1), "JSON")
    decoder = planned(registry)
    values = pa.array([prefix_of(one) + b"1"])
    decoder.decode(values)
    held, go_on = threading.Event(), threading.Event()

    class Key(str):  # compared where what decodes is looked up, which a thread is in the midst of
        def __hash__(self) -> int:
            if threading.current_thread() is thread:
                held.set()
                go_on.wait(30)
            return super().__hash__()

    other = replace(decoder, settings=replace(decoder.settings, message=Key("m")))
    thread = threading.Thread(target=other.decode, args=(values,))
    thread.start()
    assert held.wait(30)
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        os._exit(decoder.decode(values)[0].to_pylist() != [1])
    go_on.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


def test_where_only_headers_count_a_value_is_all_body(registry: RegistryServer) -> None:
    one = registry.add("t-value", factor(1), "JSON")
    decoder = planned(registry, value_schema_id_location="header")
    headers = [[("__value_schema_id", header_value(registry.guid(one)))], None, None]
    values = [b"5", prefix_of(one) + b"5", None]
    for given, expected in ((pa.array(headers, _HEADERS), [5, None, None]), (None, [None] * 3)):
        found, bad = decoder.decode(pa.array(values), given)
        assert found.to_pylist() == expected
        assert bad.to_pylist() == [expected[0] is None, True, False]
    assert decoder.refusal(values[1], None).startswith("its record has no header __value_schema_id")


def test_where_only_prefixes_count_headers_are_not_needed(registry: RegistryServer) -> None:
    one = registry.add("t-value", factor(1), "JSON")
    decoder = planned(registry, value_schema_id_location="prefix")
    assert not decoder.needs_headers
    headers = pa.array([[("__value_schema_id", b"\1rubbish")]], _HEADERS)
    assert decoder.decode(pa.array([prefix_of(one) + b"5"]), headers)[0].to_pylist() == [5]


def test_a_registry_that_knows_no_guids_makes_bad_rows_of_headers(registry: RegistryServer) -> None:
    one = registry.add("t-value", factor(1), "JSON")
    registry.guids = False
    headers = pa.array([[("__value_schema_id", header_value(registry.guid(one)))]], _HEADERS)
    assert planned(registry).decode(pa.array([b"5"]), headers)[1].to_pylist() == [True]
    given = {"value.format": "json-schema", "schema.registry.url": registry.url, "value.schema.id.location": "header"}
    with pytest.raises(ConfigError, match="tells no GUID"):
        plan_encoder(value_settings("value", given), "t", pa.int64())


def test_a_schema_in_a_header_is_written_as_it_is_read(registry: RegistryServer) -> None:
    one = registry.add("t-key", factor(1), "JSON")
    given = {"key.format": "json-schema", "schema.registry.url": registry.url, "key.schema.id.location": "header"}
    settings = value_settings("key", given)
    encoder = plan_encoder(settings, "t", pa.int64())
    assert encoder.header == ("__key_schema_id", header_value(registry.guid(one)))
    keys, _ = encoder.encode(pa.array([7]))
    assert keys.to_pylist() == [b"7"]
    decoder = plan_decoder(settings, "t")
    assert decoder.decode(keys, pa.array([[encoder.header]], _HEADERS))[0].to_pylist() == [7]
    with pytest.raises(SchemaRegistryError, match="HTTP 404"):
        plan_encoder(value_settings("key", {**given, "key.schema.version": "2"}), "t", pa.int64())


def test_a_schema_with_rules_is_not_written_without_them(registry: RegistryServer) -> None:
    registry.add("t-value", factor(1), "JSON")
    answer = {"id": 1, "schema": factor(1), "schemaType": "JSON", "ruleSet": {"domainRules": [{"type": "ENCRYPT"}]}}
    registry.misbehave = lambda request: Answer(200, json.dumps(answer).encode())
    given = {"value.format": "json-schema", "schema.registry.url": registry.url}
    with pytest.raises(ValueSchemaError, match="rules"):
        plan_encoder(value_settings("value", given), "t", pa.int64())


def test_a_plan_is_of_the_version_or_id_that_was_asked_for(registry: RegistryServer) -> None:
    registry.add("t-value", factor(1), "JSON")
    two = registry.add("t-value", factor(2), "JSON")
    assert planned(registry).version == 2
    assert planned(registry, value_schema_version="1").schema.text == factor(1)
    assert planned(registry, use_schema_id=str(two)).schema.text == factor(2)
    registry.add("shop-value", factor(1), "JSON")
    with pytest.raises(SchemaRegistryError, match="Did you mean 'shop-value'"):
        planned(registry, value_subject="shops-value")
    registry.add("avro-value", '"int"')
    with pytest.raises(ConfigError, match="subject avro-value has avro"):
        planned(registry, value_subject="avro-value")


def test_a_field_that_a_value_does_not_have_cannot_be_selected(registry: RegistryServer) -> None:
    registry.add("t-value", factor(1), "JSON")
    with pytest.raises(ConfigError, match="has no fields"):
        planned(registry).select(["a"])


def test_nothing_at_all_decodes_to_nothing(registry: RegistryServer) -> None:
    registry.add("t-value", factor(1), "JSON")
    decoder = planned(registry)
    for values in ([], [None, None]):
        for headers in (None, pa.array([None] * len(values), _HEADERS)):
            found, bad = decoder.decode(pa.array(values, pa.binary()), headers)
            assert found == pa.nulls(len(values), pa.int64())
            assert bad.to_pylist() == [False] * len(values)
