"""Values behind a registry's framing: what confluent-kafka's serializers write we read, and what we write they read.

The registry is franz-go's, srfake. Sources of what is said on the wire: confluent-kafka 2.16.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from tagwire.errors import SchemaRegistryError
from tagwire.values.options import value_settings
from tagwire.values.value_decoder import plan_decoder
from tagwire.values.value_encoder import plan_encoder

from .confluent_serializers import Confluent, Record
from .conftest import not_run_without
from .protobuf_messages import Messages
from .registries import srfake
from .registry_cases import AVRO, AVRO_ROWS, JSON, JSON_ROWS, PROTO, PROTO_MESSAGE, PROTO_ROWS

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
LOOKED_UP = {"auto.register.schemas": False}  # which tells the GUID, too
LOCATIONS = ("prefix", "header")


@pytest.fixture(scope="module")
def registry() -> Iterator[str]:
    with not_run_without(), srfake() as url:
        yield url


@pytest.fixture(scope="module")
def confluent() -> Confluent:
    with not_run_without():
        return Confluent()


def options(registry: str, name: str, which: str = "value", **more: str) -> dict[str, str]:
    return {f"{which}.format": name, "schema.registry.url": registry, **more}


def read(records: Sequence[Record], topic: str, given: Mapping[str, str], which: str = "value") -> pa.Array:
    """What we read; no row of it is bad."""
    decoder = plan_decoder(value_settings(which, given), topic)
    headers = [[{"key": key, "value": value} for key, value in added] for _, added in records]
    found, bad = decoder.decode(pa.array([value for value, _ in records], pa.binary()), pa.array(headers, HEADERS))
    found.validate(full=True)
    told = [decoder.refusal(value or b"", added) for (value, added), wrong in zip(records, bad.to_pylist()) if wrong]
    assert told == []
    return found


def written(column: pa.Array, topic: str, given: Mapping[str, str], which: str = "value") -> list[Record]:
    """What we write; no row of it is bad."""
    encoder = plan_encoder(value_settings(which, given), topic, column.type)
    found, bad = encoder.encode(column)
    assert not bad.true_count
    return [(value, [encoder.header] if encoder.header else []) for value in found.to_pylist()]


def rows(column: pa.Array) -> list[Any]:
    return column.to_pylist(maps_as_pydicts="strict")  # type: ignore[no-any-return]


@pytest.mark.parametrize("which", ["value", "key"])
@pytest.mark.parametrize("location", LOCATIONS)
def test_avro_goes_to_and_fro_with_every_type(registry: str, confluent: Confluent, location: str, which: str) -> None:
    topic = f"avro-{location}-{which}"
    work: dict[str, Any] = {"format": "avro", "url": registry, "topic": topic, "which": which}
    peers, columns = [row for row, _ in AVRO_ROWS], [row for _, row in AVRO_ROWS]
    confluent.serialize(peers[:1], schema=AVRO, **work)  # registers it
    theirs = confluent.serialize(peers, schema=AVRO, location=location, settings=LOOKED_UP, **work)
    assert {bool(added) for _, added in theirs} == {location == "header"}
    column = read(theirs, topic, options(registry, "avro", which), which)
    assert rows(column) == columns
    given = options(registry, "avro", which, **{f"{which}.schema.id.location": location})
    ours = written(column, topic, given, which)
    assert [added for _, added in ours] == [added for _, added in theirs]
    assert confluent.deserialize(ours, **work) == peers


@pytest.mark.parametrize("location", LOCATIONS)
def test_protobuf_goes_to_and_fro_with_every_type(registry: str, confluent: Confluent, location: str) -> None:
    topic = f"protobuf-{location}"
    messages = Messages(PROTO, PROTO_MESSAGE)
    bodies = [messages.body(row) for row in PROTO_ROWS]
    work: dict[str, Any] = {"format": "protobuf", "url": registry, "topic": topic}
    work |= {"files": messages.files, "message": PROTO_MESSAGE}
    confluent.serialize(bodies[:1], **work)
    theirs = confluent.serialize(bodies, location=location, settings=LOOKED_UP, **work)
    given = options(registry, "protobuf", **{"value.message": PROTO_MESSAGE})
    column = read(theirs, topic, given)
    assert rows(column) == PROTO_ROWS
    ours = written(column, topic, {**given, "value.schema.id.location": location})
    assert [added for _, added in ours] == [added for _, added in theirs]
    found = confluent.deserialize(ours, **work)
    assert [messages.parsed(body) for body in found] == [messages.parsed(body) for body in bodies]


def test_json_goes_to_and_fro(registry: str, confluent: Confluent) -> None:
    for location in LOCATIONS:
        topic = f"json-{location}"
        work = {"format": "json-schema", "url": registry, "topic": topic, "schema": JSON}
        confluent.serialize(JSON_ROWS[:1], **work)
        theirs = confluent.serialize(JSON_ROWS, location=location, settings=LOOKED_UP, **work)
        column = read(theirs, topic, options(registry, "json-schema"))
        assert rows(column) == JSON_ROWS
        ours = written(column, topic, options(registry, "json-schema", **{"value.schema.id.location": location}))
        assert confluent.deserialize(ours, **work) == JSON_ROWS


@pytest.mark.parametrize("location", LOCATIONS)
def test_a_schema_that_we_register_is_the_one_that_the_peer_finds(
    registry: str, confluent: Confluent, location: str
) -> None:
    topic = f"ours-first-{location}"
    given = options(registry, "avro", **{"value.schema": AVRO, "auto.register.schemas": "true"})
    work: dict[str, Any] = {"format": "avro", "url": registry, "topic": topic}
    kind = plan_decoder(value_settings("value", {"value.format": "avro", "value.schema": AVRO}), None).type
    column = pa.array([row for _, row in AVRO_ROWS], kind)
    ours = written(column, topic, {**given, "value.schema.id.location": location})
    peers = [row for row, _ in AVRO_ROWS]
    assert confluent.deserialize(ours, **work) == peers
    theirs = confluent.serialize(peers, schema=AVRO, location=location, settings=LOOKED_UP, **work)
    assert [(value[:5], added) for value, added in theirs] == [(value[:5], added) for value, added in ours]


def test_three_schemas_of_one_subject_are_read_as_the_latest_of_them(registry: str, confluent: Confluent) -> None:
    fields = ['{"name":"a","type":"int"}', '{"name":"b","type":"string","default":"none"}']
    fields.append('{"name":"c","type":["null","double"],"default":null}')
    schemas = [f'{{"type":"record","name":"R","fields":[{",".join(fields[:count])}]}}' for count in (1, 2, 3)]
    row = {"a": 1, "b": "x", "c": 0.5}
    work: dict[str, Any] = {"format": "avro", "url": registry, "topic": "evolving"}
    theirs = [
        record
        for number, schema in enumerate(schemas)
        for record in confluent.serialize([dict(list(row.items())[: number + 1])] * 3, schema=schema, **work)
    ]
    expected = [{"a": 1, "b": "none", "c": None}, {"a": 1, "b": "x", "c": None}, row]
    mixed = [theirs[3 * version + index] for index in range(3) for version in (2, 0, 1)]
    assert rows(read(mixed, "evolving", options(registry, "avro"))) == [expected[2], expected[0], expected[1]] * 3
    assert rows(read(mixed, "evolving", options(registry, "avro", **{"value.schema.version": "1"}))) == [{"a": 1}] * 9


def test_a_schema_that_refers_to_another_is_found_with_it(registry: str, confluent: Confluent) -> None:
    city = '{"type":"record","name":"City","namespace":"geo","fields":[{"name":"name","type":"string"}]}'
    trip = '{"type":"record","name":"Trip","fields":[{"name":"to","type":"geo.City"},{"name":"n","type":"long"}]}'
    work: dict[str, Any] = {"format": "avro", "url": registry}
    confluent.serialize([{"name": "Oslo"}], schema=city, topic="city", **work)
    values = [{"to": {"name": "Oslo"}, "n": number} for number in range(5)]
    work |= {"topic": "trip", "schema": trip, "references": [("geo.City", "city-value", 1)]}
    theirs = confluent.serialize(values, **work)
    column = read(theirs, "trip", options(registry, "avro"))
    assert rows(column) == values
    assert confluent.deserialize(written(column, "trip", options(registry, "avro")), **work) == values


def test_a_registry_that_wants_credentials_gets_them_and_its_refusal_names_no_secret() -> None:
    with not_run_without(), srfake("Basic dXNlcjpwYXNzd29yZC1vZi11c2Vy") as url:
        given = options(url, "avro", **{"value.schema": '"string"', "auto.register.schemas": "true"})
        granted = {
            **given,
            "basic.auth.credentials.source": "USER_INFO",
            "basic.auth.user.info": "user:password-of-user",
        }
        assert written(pa.array(["x"]), "t", granted)
        for refused in (given, {**granted, "basic.auth.user.info": "user:password-of-another"}):
            with pytest.raises(SchemaRegistryError) as raised:
                written(pa.array(["x"]), "t", refused)
            assert "password" not in str(raised.value)
            assert ("HTTP 401" if refused is given else "HTTP 403") in str(raised.value)
