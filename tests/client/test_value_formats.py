"""Values and keys by their schemas: typed columns of batches, Python's objects in records, and back."""

from __future__ import annotations

import asyncio
import decimal
import json
import re
import struct
import uuid
from collections.abc import Iterator
from io import BytesIO
from itertools import count, islice
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from tagwire.broker import Broker
from tagwire.client import Admin, NewTopic, Producer, Reader
from tagwire.client.aio import AsyncConsumer, AsyncProducer, AsyncReader
from tagwire.errors import ConfigError, DecodeError, EncodeError, SchemaRegistryError, ValueSchemaError
from tagwire.values.options import value_settings

from ..values.registry_server import Answer, RegistryServer, Request, registry_server
from .faces import THREADS, Face, tasks

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "city", "type": ["null", "string"], "default": None},
        {"name": "tags", "type": {"type": "map", "values": "int"}, "default": {}},
    ],
}
OLDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}
JSON_ORDER = {"type": "object", "properties": {"id": {"type": "integer"}, "day": {"type": "string", "format": "date"}}}

_numbers = count()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as one:
        yield one


@pytest.fixture(scope="module")
def registry() -> Iterator[RegistryServer]:
    with registry_server() as one:
        yield one


@pytest.fixture(params=["threads", "asyncio"], scope="module")
def face(request: pytest.FixtureRequest) -> Iterator[Face]:
    if request.param == "threads":
        yield THREADS
    else:
        with tasks("asyncio", asyncio.new_event_loop) as one:
            yield one


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"orders{next(_numbers)}"
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic(name, num_partitions=1)])
    return name


def framed(schema_id: int, body: bytes) -> bytes:
    return struct.pack(">bI", 0, schema_id) + body


def avro(schema: dict[str, Any], value: dict[str, Any], schema_id: int) -> bytes:
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return framed(schema_id, out.getvalue())


def put(broker: Broker, topic: str, *records: tuple[Any, ...]) -> None:
    with Producer(broker.bootstrap) as producer:
        for value, *rest in records:
            producer.send(topic, value, *rest, partition=0)


def three_orders(broker: Broker, registry: RegistryServer, topic: str) -> None:
    """Two schemas, interleaved, and a tombstone."""
    old = registry.add(f"{topic}-value", json.dumps(OLDER))
    new = registry.add(f"{topic}-value", json.dumps(ORDER))
    put(
        broker,
        topic,
        (avro(ORDER, {"id": 1, "city": "Köln", "tags": {"a": 1}}, new),),
        (avro(OLDER, {"id": 2}, old), b"key"),
        (None, b"key"),
    )


EXPECTED = [{"id": 1, "city": "Köln", "tags": {"a": 1}}, {"id": 2, "city": None, "tags": {}}, None]


# Reading -------------------------------------------------------------------------------------------------------------


def test_batches_have_columns_of_the_schemas_types_and_the_columns_asked_for(
    broker: Broker, registry: RegistryServer, topic: str, face: Face
) -> None:
    three_orders(broker, registry, topic)
    for columns in (("value",), ("key", "value", "offset"), ("topic", "partition", "offset", "timestamp", "value")):
        with face.reader(
            broker.bootstrap,
            topic,
            stop_at_end=True,
            columns=columns,
            value_format="avro",
            schema_registry=registry.url,
        ) as reader:
            (batch,) = list(reader)
        assert tuple(batch.schema.names) == columns
        kind = batch.schema.field("value").type
        assert kind.field("id").type == pa.int64()
        assert [one and one["id"] for one in batch.column("value").to_pylist()] == [1, 2, None]
    with face.reader(broker.bootstrap, topic, stop_at_end=True, columns=["offset"], value_format="avro",
                     schema_registry=registry.url) as reader:  # fmt: skip
        assert [batch.to_pydict() for batch in reader] == [{"offset": [0, 1, 2]}]


def test_records_have_values_and_keys_as_python_has_them_and_keep_the_rest(
    broker: Broker, registry: RegistryServer, topic: str, face: Face
) -> None:
    schema_id = registry.add(f"{topic}-value", json.dumps(JSON_ORDER), "JSON")
    put(broker, topic, (framed(schema_id, b'{"id":7}'), b"\x0a", [("h", b"1")]), (framed(schema_id, b"{}"), None))
    options = {
        "value_format": "json-schema",
        "key_format": {"format": "avro", "schema": '"long"'},
        "schema_registry": {"schema.registry.url": registry.url},
    }
    registry.add(f"{topic}-key", '"long"')
    with face.reader(broker.bootstrap, topic, stop_at_end=True, value_format="json-schema",
                     schema_registry=registry.url) as reader:  # fmt: skip
        first, second = list(reader.records())
    assert (first.value, first.key, list(first.headers)) == ({"id": 7, "day": None}, b"\x0a", [("h", b"1")])
    assert (first.topic, first.partition, first.offset, second.offset) == (topic, 0, 0, 1)
    with face.reader(broker.bootstrap, topic, stop_at_end=True, **options, bad_values="null") as reader:
        assert [(each.key, each.value["id"]) for each in reader.records()] == [(None, 7), (None, None)]
    bare = {"value_format": {"format": "json-schema", "schema": json.dumps(JSON_ORDER)}}
    with face.reader(broker.bootstrap, topic, stop_at_end=True, **bare, bad_values="null") as reader:
        assert [each.value for each in reader.records()] == [None, None]


@pytest.mark.parametrize("way", ["poll", "consume", "one by one", "batches"])
def test_a_consumer_gives_typed_values_whichever_way_it_is_read(
    broker: Broker, registry: RegistryServer, topic: str, face: Face, way: str
) -> None:
    three_orders(broker, registry, topic)
    options = {"value_format": "avro", "schema_registry": registry.url, "offset_reset": "earliest"}
    with face.consumer(broker.bootstrap, group=f"g{uuid.uuid4()}", **options) as consumer:
        consumer.subscribe(topic)
        found: list[Any] = []
        if way == "one by one":
            found = [record.value for record in islice(consumer, 3)]
        while len(found) < 3:
            if way == "batches":
                batch = consumer.poll_batch(5.0)
                found += batch.column("value").to_pylist(maps_as_pydicts="strict")
            else:
                given = consumer.poll(5.0) if way == "poll" else consumer.consume(3 - len(found), 5.0)
                found += [record.value for record in given]
        assert found == EXPECTED
        consumer.commit()
        assert [each.offset for each in consumer.committed().values()] == [3]


@pytest.mark.parametrize("way", ["poll", "one by one", "batches", "reader", "reader's records"])
def test_a_bad_value_is_raised_after_what_stands_before_it_until_it_is_sought_past(
    broker: Broker, registry: RegistryServer, topic: str, face: Face, way: str
) -> None:
    schema_id = registry.add(f"{topic}-value", json.dumps(JSON_ORDER), "JSON")
    good = framed(schema_id, b'{"id":1}')
    put(broker, topic, (good,), (good,), (framed(schema_id, b'{"id":"x"}'),), (good,))
    options: dict[str, Any] = {"value_format": "json-schema", "schema_registry": registry.url}
    found: list[int] = []
    said: list[str] = []
    if way.startswith("reader"):
        made = face.reader(broker.bootstrap, topic, stop_at_end=True, **options)
    else:
        made = face.consumer(broker.bootstrap, **options, auto_commit=False)
    with made as reader:
        if not way.startswith("reader"):
            reader.assign({(topic, 0): 0})
        while len(found) < 3 and len(said) < 3:
            try:
                if way == "poll":
                    found += [record.offset for record in reader.poll(5.0)]
                elif way == "one by one":
                    for record in reader:
                        found.append(record.offset)
                        if len(found) == 3:
                            break
                elif way == "reader's records":
                    for record in reader.records():
                        found.append(record.offset)
                else:
                    batch = reader.poll_batch(5.0) if way == "batches" else next(reader)
                    found += batch.column("offset").to_pylist()
            except DecodeError as error:
                said.append(str(error))
                assert found == [0, 1]
                assert reader.position((topic, 0)) == 2
                if len(said) == 2:
                    reader.seek((topic, 0), 3)
    assert found == [0, 1, 3]
    assert said == [f'value of {topic}-0@2: schema id {schema_id}: id: "x" is no integer'] * 2


def test_bad_values_may_be_null_or_left_out(broker: Broker, registry: RegistryServer, topic: str, face: Face) -> None:
    schema_id = registry.add(f"{topic}-value", json.dumps(JSON_ORDER), "JSON")
    good, wrong = framed(schema_id, b'{"id":1}'), framed(schema_id, b"?")
    put(broker, topic, (wrong,), (good,), (wrong,), (b"bare",), (good,), (framed(999_999, b"{}"),))
    options = {"stop_at_end": True, "value_format": "json-schema", "schema_registry": registry.url}
    for bad, expected in (("null", [None, 1, None, None, 1, None]), ("drop", [1, 1])):
        with face.reader(broker.bootstrap, topic, **options, bad_values=bad) as reader:
            (batch,) = list(reader)
            assert [one and one["id"] for one in batch.column("value").to_pylist()] == expected
            assert reader.position((topic, 0)) == 6
        with face.reader(broker.bootstrap, topic, **options, bad_values=bad) as reader:
            assert [one.value and one.value["id"] for one in reader.records()] == expected
            assert reader.position((topic, 0)) == 6


def test_topics_of_different_types_come_in_batches_of_their_own(
    broker: Broker, registry: RegistryServer, topic: str, face: Face
) -> None:
    other = f"{topic}-other"
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic(other, num_partitions=1)])
    first = registry.add(f"{topic}-value", json.dumps(JSON_ORDER), "JSON")
    second = registry.add(f"{other}-value", json.dumps({"properties": {"x": {"type": "number"}}}), "JSON")
    put(broker, topic, *[(framed(first, b'{"id":1}'),)] * 3)
    put(broker, other, *[(framed(second, b'{"x":1}'),)] * 3)
    with face.reader(broker.bootstrap, [topic, other], stop_at_end=True, value_format="json-schema",
                     schema_registry=registry.url) as reader:  # fmt: skip
        found = {batch.column("topic")[0].as_py(): batch for batch in reader}
    assert found[topic].column("value").to_pylist() == [{"id": 1, "day": None}] * 3
    assert found[other].column("value").to_pylist() == [{"x": 1.0}] * 3


def test_many_records_are_given_once_and_in_order_however_they_are_read(
    broker: Broker, registry: RegistryServer, topic: str, face: Face
) -> None:
    schema_id = registry.add(f"{topic}-value", json.dumps(JSON_ORDER), "JSON")
    put(broker, topic, *((framed(schema_id, b'{"id":%d}' % number),) for number in range(1700)))
    options: dict[str, Any] = {"value_format": "json-schema", "schema_registry": registry.url, "auto_commit": False}
    with face.consumer(broker.bootstrap, **options, max_poll_records=300) as consumer:
        consumer.assign({(topic, 0): 0})
        found = [each.value["id"] for each in consumer.consume(7, 5.0)]
        found += [each.value["id"] for each in islice(consumer, 450)]
        assert consumer.position((topic, 0)) == len(found)
        while len(found) < 1700:
            found += [each.value["id"] for each in consumer.poll(5.0)]
    assert found == list(range(1700))
    with face.reader(broker.bootstrap, topic, stop_at_end=True, value_format="json-schema",
                     schema_registry=registry.url) as reader:  # fmt: skip
        assert [each.value["id"] for each in islice(reader.records(), 600)] == list(range(600))
        assert reader.position((topic, 0)) == 600
        assert [each.value["id"] for each in reader.records()] == list(range(600, 1700))


def test_a_registry_that_is_away_is_raised_and_nothing_is_lost(
    broker: Broker, registry: RegistryServer, topic: str, face: Face
) -> None:
    three_orders(broker, registry, topic)
    options = {"value_format": "avro", "schema_registry": registry.url, "stop_at_end": True}
    registry.misbehave = lambda request: Answer(403, b"{}") if topic in request.path else None
    try:
        with face.reader(broker.bootstrap, topic, **options) as reader:
            with pytest.raises(SchemaRegistryError):
                next(reader)
            registry.misbehave = None
            reader.seek((topic, 0), 0)
            assert [batch.num_rows for batch in reader] == [3]
    finally:
        registry.misbehave = None


def test_a_registry_that_is_slow_keeps_no_other_task_of_the_loop(
    broker: Broker, registry: RegistryServer, topic: str
) -> None:
    three_orders(broker, registry, topic)

    async def run() -> int:
        loop = asyncio.get_running_loop()
        turns = 0
        is_done = False

        async def ticking() -> None:
            nonlocal turns
            while not is_done:
                turns += 1
                await asyncio.sleep(0.001)

        beside = asyncio.create_task(ticking())
        found = []
        for kind, args in ((AsyncReader, (topic,)), (AsyncConsumer, ())):
            asked = asyncio.Event()

            def slow(request: Request, asked: asyncio.Event = asked) -> Answer | None:
                loop.call_soon_threadsafe(asked.set)
                return Answer(silence=0.3, status=404, body=b"{}") if topic in request.path else None

            registry.misbehave = slow
            options = {"value_format": "avro", "schema_registry": registry.url}
            async with kind(broker.bootstrap, *args, **options) as reader:  # type: ignore[operator]
                if kind is AsyncConsumer:
                    await reader.assign({(topic, 0): 0})
                    reading = asyncio.create_task(reader.poll(5.0))
                else:
                    reading = asyncio.create_task(anext(reader))
                await asked.wait()
                before = turns
                with pytest.raises(SchemaRegistryError):
                    await reading
                found.append(turns - before)
        is_done = True
        await beside
        return min(found)

    try:
        assert asyncio.run(run()) > 3
    finally:
        registry.misbehave = None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"value_format": "avor"}, "value.format=avor"),
        ({"value_format": "avro"}, "needs value.schema or schema.registry.url"),
        ({"value_format": 3}, "value_format"),
        ({"value_format": {"format": "avro", "schema": '"int"', "colour": "red"}}, "value.colour"),
        ({"value_format": {"format": "avro", "schema": object()}}, "value_format: schema: needs text"),
        ({"schema_registry": "http://r"}, "schema_registry: means nothing without"),
        ({"bad_values": "null"}, "bad_values: means nothing without"),
        ({"value_format": {"format": "avro", "schema": '"int"'}, "bad_values": "ignore"}, "raise, null, drop"),
        ({"value_format": "avro", "schema_registry": 8081}, "schema_registry: needs its address"),
        ({"key_format": value_settings("value", {"value.format": "avro", "value.schema": '"int"'})}, "of the value"),
    ],
)
def test_options_that_mean_nothing_are_refused_by_name(
    broker: Broker, face: Face, options: dict[str, Any], said: str
) -> None:
    for make in (face.reader, face.consumer):
        with pytest.raises(ConfigError) as caught:
            make(broker.bootstrap, *(["t"] if make is face.reader else []), **options)
        assert said in str(caught.value)


# Writing -------------------------------------------------------------------------------------------------------------


def sent(broker: Broker, topic: str) -> list[tuple[bytes | None, bytes | None, list[Any]]]:
    with THREADS.reader(broker.bootstrap, topic, stop_at_end=True) as reader:
        return [(each.key, each.value, list(each.headers)) for each in reader.records()]


def read_back(broker: Broker, registry: RegistryServer, topic: str, **options: Any) -> list[Any]:
    given = {"value_format": "avro", "schema_registry": registry.url, **options}
    with THREADS.reader(broker.bootstrap, topic, stop_at_end=True, **given) as reader:
        return [each.value for each in reader.records()]


def test_dicts_are_sent_by_the_newest_schema_of_the_subject_and_defaults_stand_for_what_is_missing(
    broker: Broker, registry: RegistryServer, topic: str, face: Face
) -> None:
    registry.add(f"{topic}-value", json.dumps(OLDER))
    schema_id = registry.add(f"{topic}-value", json.dumps(ORDER))
    with face.producer(broker.bootstrap, value_format="avro", schema_registry=registry.url) as producer:
        delivery = producer.send(topic, {"id": 1, "city": "Köln", "tags": {"a": 1}}, key=b"k", headers=[("h", b"1")])
        producer.send(topic, {"id": 2})
        producer.send(topic, None)
        producer.flush()
        assert delivery.result().offset == 0
    assert [(key, value and value[:5], headers) for key, value, headers in sent(broker, topic)] == [
        (b"k", framed(schema_id, b""), [("h", b"1")]),
        (None, framed(schema_id, b""), []),
        (None, None, []),
    ]
    assert read_back(broker, registry, topic) == EXPECTED


def test_keys_and_values_go_by_schemas_that_are_given_with_the_id_in_a_header(
    broker: Broker, registry: RegistryServer, topic: str, face: Face
) -> None:
    registry.add(f"{topic}-key", '"long"')
    entries = pa.array(
        [{"key": "a", "value": b"1"}, {"key": "b", "value": None}, {"key": "under a null", "value": b""}]
    )
    headers = pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), entries, mask=pa.array([False, True]))
    with face.producer(
        broker.bootstrap,
        value_format={"format": "json-schema", "schema": json.dumps(JSON_ORDER), "schema.id.location": "header"},
        key_format="avro",
        schema_registry={"schema.registry.url": registry.url, "auto.register.schemas": True},
    ) as producer:
        producer.send(topic, {"id": 1}, key=5, headers={"h": b"1"})
        producer.send_arrow(
            topic,
            pa.table({"key": pa.array([6, 7]), "value": [{"id": 2}, {"id": 3}], "headers": headers}),
        )
    assert registry.asked(f"/subjects/{topic}-value")
    found = sent(broker, topic)
    assert [value for _, value, _ in found] == [b'{"id":1}', b'{"id":2}', b'{"id":3}']
    assert [[name for name, _ in headers] for _, _, headers in found] == [
        ["h", "__value_schema_id"],
        ["a", "b", "__value_schema_id"],
        ["__value_schema_id"],
    ]
    assert found[1][2][:2] == [("a", b"1"), ("b", None)]
    with face.reader(broker.bootstrap, topic, stop_at_end=True, value_format="json-schema", key_format="avro",
                     schema_registry=registry.url) as reader:  # fmt: skip
        assert [(each.key, each.value["id"]) for each in reader.records()] == [(5, 1), (6, 2), (7, 3)]


def test_arrow_rows_are_encoded_from_typed_columns_before_one_is_sent(
    broker: Broker, registry: RegistryServer, topic: str, face: Face
) -> None:
    schema_id = registry.add(f"{topic}-value", json.dumps({"properties": {"x": {"type": "number"}}}), "JSON")
    with face.producer(broker.bootstrap, value_format="json-schema", schema_registry=registry.url) as producer:
        values = pa.array([{"x": 1.5}, None, {"x": 2.0}])
        chunked = pa.chunked_array([values[:1], values[1:]])
        for rows in (pa.record_batch({"value": values}), pa.table({"value": chunked})):
            producer.send_arrow(topic, rows)
        bad = pa.array([{"x": float("nan")}])
        with pytest.raises(EncodeError, match="row 2: value: x: nan"):
            producer.send_arrow(topic, pa.table({"value": pa.chunked_array([values[:2], bad])}))
        with pytest.raises(ValueSchemaError, match="column y is no property"):
            producer.send_arrow(topic, pa.table({"value": [{"y": 1}]}))
    expected = [framed(schema_id, b'{"x":1.5}'), None, framed(schema_id, b'{"x":2}')]
    assert [value for _, value, _ in sent(broker, topic)] == expected * 2


def test_a_row_of_arrow_with_a_time_that_python_has_not_is_refused_like_others(
    broker: Broker, registry: RegistryServer, topic: str
) -> None:
    far = pa.array([1 << 60], pa.int64()).view(pa.timestamp("us", "UTC"))
    near = pa.array([1], pa.int64()).view(far.type)
    late = pa.StructArray.from_arrays([near, far], ["before", "at"])
    wrong = pa.StructArray.from_arrays([far, pa.array(["C"])], ["at", "which"])
    at = {"type": "long", "logicalType": "timestamp-micros"}
    fields = [{"name": "at", "type": at}, {"name": "which", "type": {"type": "enum", "name": "E", "symbols": ["A"]}}]
    avro = {"type": "record", "name": "R", "fields": fields}
    properties = {"properties": {name: {"type": "string", "format": "date-time"} for name in ("before", "at")}}
    for format_, schema, kind, values, said in (
        ("json-schema", properties, "JSON", late, "at: lies beyond the years 0 to 9999"),
        ("avro", avro, "AVRO", wrong, "at which: its text is no symbol of enum E"),
    ):
        registry.add(f"{topic}-{kind}", json.dumps(schema), kind)
        value_format = {"format": format_, "subject": f"{topic}-{kind}"}
        with Producer(broker.bootstrap, value_format=value_format, schema_registry=registry.url) as producer:
            with pytest.raises(EncodeError, match=f"row 0: value: {said}"):
                producer.send_arrow(topic, pa.table({"value": values}))
            if format_ == "json-schema":
                with pytest.raises(EncodeError, match=f"value of a record for '{topic}': {said}"):
                    producer.send(topic, {"at": 1 << 60})
    assert not sent(broker, topic)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"id": "x"}, "value of a record for"),
        ({"id": 1, "colour": "red"}, "'colour' is no field of the schema; there are id, city, tags"),
        ({"id": 1.5}, "id: 1.5 is no whole number"),
        ({"id": 1, "tags": {"a": decimal.Decimal("0.5")}}, "tags, a: 0.5 is no whole number"),
        ({"id": 1, "tags": [None]}, "tags: needs a dict, or a list of pairs"),
        ({"id": 1, "tags": {None}}, "tags: needs a dict, or a list of pairs"),
        ({"city": "Köln"}, "id"),
        (b"bytes", "needs a dict of id, city, tags, not bytes"),
        ({"id": 1 << 70}, "value of a record for"),
        ({"id": None}, "id"),
    ],
)
def test_a_value_that_its_schema_does_not_fit_is_refused_by_field_and_nothing_is_sent(
    broker: Broker, registry: RegistryServer, topic: str, face: Face, value: object, said: str
) -> None:
    registry.add(f"{topic}-value", json.dumps(ORDER))
    with face.producer(broker.bootstrap, value_format="avro", schema_registry=registry.url) as producer:
        with pytest.raises(EncodeError) as caught:
            producer.send(topic, value)
        assert said in str(caught.value)
        producer.send(topic, {"id": 1})
    assert len(sent(broker, topic)) == 1


@pytest.mark.parametrize("text", ["0E-100000000", "1E-100000000", "-1E-2147483640", "1E+100000000"])
def test_a_decimal_of_millions_of_places_is_refused_and_does_not_end_the_process(
    broker: Broker, registry: RegistryServer, topic: str, text: str
) -> None:
    """As Arrow did."""
    price = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    many = {"type": "map", "values": {"type": "array", "items": price}}
    fields = [{"name": "one", "type": price}, {"name": "many", "type": many}]
    registry.add(f"{topic}-value", json.dumps({"type": "record", "name": "R", "fields": fields}))
    far, near = decimal.Decimal(text), decimal.Decimal("0E-1000")
    with Producer(broker.bootstrap, value_format="avro", schema_registry=registry.url) as producer:
        for value, where in (({"one": far, "many": {}}, "one"), ({"one": near, "many": {"a": [near, far]}}, "many, a")):
            with pytest.raises(EncodeError, match=re.escape(f"{where}: {far} is no decimal128(9, 2)")):
                producer.send(topic, value)
        producer.send(topic, {"one": near, "many": {"a": [near]}})
    assert len(sent(broker, topic)) == 1


def test_interceptors_see_what_was_sent_and_the_partition_goes_by_the_keys_bytes(
    broker: Broker, registry: RegistryServer, topic: str
) -> None:
    registry.add(f"{topic}-value", json.dumps(ORDER))
    seen: list[object] = []

    def note(topic: str, record: Any) -> Any:
        seen.append(record.value)
        return record.replace(value={**record.value, "city": "Bonn"})

    with Producer(broker.bootstrap, value_format="avro", schema_registry=registry.url, interceptors=[note]) as producer:
        producer.send(topic, {"id": 1})
    assert seen == [{"id": 1}]
    assert read_back(broker, registry, topic) == [{"id": 1, "city": "Bonn", "tags": {}}]


def test_a_subject_without_a_schema_and_a_registry_that_is_away_are_told_by_send(
    broker: Broker, registry: RegistryServer, topic: str, face: Face
) -> None:
    with face.producer(broker.bootstrap, value_format="avro", schema_registry=registry.url) as producer:
        with pytest.raises(SchemaRegistryError, match=f"{topic}-value"):
            producer.send(topic, {"id": 1})
        registry.add(f"{topic}-value", json.dumps(ORDER))
        producer.send(topic, {"id": 1})
    assert len(read_back(broker, registry, topic)) == 1


def test_a_slow_registry_keeps_no_other_task_from_sending(broker: Broker, registry: RegistryServer, topic: str) -> None:
    registry.add(f"{topic}-value", json.dumps(ORDER))
    registry.misbehave = lambda request: Answer(silence=0.2, status=404, body=b"{}") if topic in request.path else None

    async def run() -> int:
        async with AsyncProducer(broker.bootstrap, value_format="avro", schema_registry=registry.url) as producer:
            sending = asyncio.create_task(producer.send(topic, {"id": 1}))
            turns = 0
            while not sending.done():
                turns += 1
                await asyncio.sleep(0.001)
            with pytest.raises(SchemaRegistryError):
                await sending
            return turns

    try:
        assert asyncio.run(run()) > 3
    finally:
        registry.misbehave = None


def test_a_time_that_python_has_none_for_is_a_bad_value_of_records_and_none_of_batches(
    broker: Broker, registry: RegistryServer, topic: str
) -> None:
    schema = json.dumps({"type": "long", "logicalType": "timestamp-millis"})
    schema_id = registry.add(f"{topic}-value", schema)
    far = BytesIO()
    fastavro.schemaless_writer(far, "long", 300_000_000_000_000)
    put(broker, topic, (framed(schema_id, b"\x02"),), (framed(schema_id, far.getvalue()),))
    options: dict[str, Any] = {"value_format": "avro", "schema_registry": registry.url, "stop_at_end": True}
    with Reader(broker.bootstrap, topic, **options) as reader:
        assert [batch.num_rows for batch in reader] == [2]
    with Reader(broker.bootstrap, topic, **options) as reader, pytest.raises(DecodeError, match="-0@1: Python has no"):
        list(reader.records())
    with Reader(broker.bootstrap, topic, **options, bad_values="null") as reader:
        assert [each.value is None for each in reader.records()] == [False, True]


def test_nested_values_come_back_as_the_dicts_that_were_sent(broker: Broker, topic: str) -> None:
    inner = {"type": "record", "name": "In", "fields": [{"name": "m", "type": {"type": "map", "values": "int"}}]}
    nested = [{"name": "s", "type": ["null", inner]}, {"name": "l", "type": {"type": "array", "items": ["null", "In"]}}]
    schema = json.dumps({"type": "record", "name": "Out", "fields": nested})
    rows: list[dict[str, Any]] = [{"s": {"m": {"k": 1}}, "l": [None, {"m": {}}]}, {"s": None, "l": []}]
    bare = {"value_format": {"format": "avro", "schema": schema}}
    with Producer(broker.bootstrap, **bare) as producer:  # type: ignore[arg-type]
        for row in (*rows, None):
            producer.send(topic, row)
    with Reader(broker.bootstrap, topic, stop_at_end=True, **bare) as reader:  # type: ignore[arg-type]
        read = [record.value for record in reader.records()]
    assert sorted(map(repr, read)) == sorted(map(repr, [*rows, None]))
