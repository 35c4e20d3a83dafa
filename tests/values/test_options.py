"""Options of values are read by Confluent's names and ours, and a wrong one is told by its name."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from tagwire.errors import ConfigError
from tagwire.values.options import HEADER, PREFIX, RECORD_NAME, TOPIC_RECORD_NAME, value_settings
from tagwire.values.registry import registry_properties, registry_settings
from tagwire.values.schemas import Reference
from tagwire.values.subjects import subject_of
from tagwire.values.value_decoder import plan_decoder

URL = {"schema.registry.url": "http://localhost:8081"}
AVRO = {"value.format": "avro", **URL}
RECORD = '{"type": "record", "name": "Order", "namespace": "shop", "fields": []}'


def test_keys_and_values_have_options_of_their_own() -> None:
    given = {
        **AVRO,
        "key.format": "protobuf",
        "key.message": "a.B",
        "key.subject": "k",
        "auto.register.schemas": "true",
    }
    value, key = value_settings("value", given), value_settings("key", given)
    assert (value.format, value.message, subject_of(value, "t")) == ("avro", None, "t-value")
    assert (key.format, key.message, subject_of(key, "t")) == ("protobuf", "a.B", "k")
    assert value.auto_register
    assert key.auto_register
    assert value.registry == key.registry


def test_a_schema_is_text_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "order.avsc"
    file.write_text(RECORD)
    for given in (RECORD, str(file), f" {file} "):
        assert value_settings("value", {"value.format": "avro", "value.schema": given}).schema == RECORD
    for text in ('"int"', '["null", "int"]'):
        assert value_settings("value", {"value.format": "avro", "value.schema": text}).schema == text
    proto = 'syntax = "proto3"; message A { int32 a = 1; }'
    assert value_settings("value", {"value.format": "protobuf", "value.schema": proto}).schema == proto


def test_subjects_are_named_by_confluents_strategies() -> None:
    for name in ("RecordNameStrategy", "io.confluent.kafka.serializers.subject.RecordNameStrategy", "RECORD"):
        settings = value_settings("value", {**AVRO, "value.subject.name.strategy": name, "value.schema": RECORD})
        assert settings.strategy == RECORD_NAME
        assert subject_of(settings, None) == "shop.Order"
    both = value_settings("value", {**AVRO, "value.subject.name.strategy": TOPIC_RECORD_NAME, "value.schema": RECORD})
    assert subject_of(both, "t") == "t-shop.Order"
    unnamed = value_settings("value", {**AVRO, "value.subject.name.strategy": "RecordNameStrategy"})
    with pytest.raises(ConfigError, match=r"value\.message"):
        subject_of(unnamed, "t")
    with pytest.raises(ConfigError, match=r"value\.subject: missing"):
        subject_of(value_settings("value", AVRO), None)


def test_a_primitive_schema_of_avro_is_read_without_quotes_too() -> None:
    for text in ("int", " int "):
        settings = value_settings("value", {"value.format": "avro", "value.schema": text})
        assert plan_decoder(settings, None).decode(pa.array([b"\x0e"]))[0].to_pylist() == [7]


def test_where_the_id_is_has_confluents_names_and_ours() -> None:
    java = "io.confluent.kafka.serializers.schema.id."
    assert value_settings("value", {**AVRO, "value.schema.id.location": "header"}).location == HEADER
    assert (
        value_settings("value", {**AVRO, "value.schema.id.serializer": java + "HeaderSchemaIdSerializer"}).location
        == HEADER
    )
    prefix = {**AVRO, "value.schema.id.deserializer": java + "PrefixSchemaIdDeserializer"}
    assert value_settings("value", prefix).location == PREFIX


def test_references_of_a_given_schema_are_named() -> None:
    settings = value_settings("value", {**AVRO, "value.schema": RECORD, "value.schema.references": "a.B=x:y:3, c=d:1"})
    assert settings.references == (Reference("a.B", "x:y", 3), Reference("c", "d", 1))


WRONG = {
    "no format": ({**URL}, "value.format=: needs avro"),
    "an unknown format": ({**AVRO, "value.format": "avr"}, "Did you mean 'avro'"),
    "neither schema nor registry": ({"value.format": "avro"}, "needs value.schema or schema.registry.url"),
    "a misspelt option": ({**AVRO, "value.shema": "x"}, "value.shema: no option .*'value.schema'"),
    "a misspelt property": ({**AVRO, "schema.registry.basic.auth.user.inf": "a:b"}, "'basic.auth.user.info'"),
    "no file": ({**AVRO, "value.schema": "no/such.avsc"}, "value.schema=no/such.avsc: neither a schema nor a file"),
    "a version": ({**AVRO, "value.schema.version": "newest"}, "value.schema.version=newest: needs latest or"),
    "version zero": ({**AVRO, "value.schema.version": "0"}, "from 1 on"),
    "a strategy": ({**AVRO, "value.subject.name.strategy": "x.Mine"}, "value.subject.name.strategy=x.Mine"),
    "a flag": ({**AVRO, "auto.register.schemas": "yes"}, "auto.register.schemas=yes: allowed is true or false"),
    "a place": ({**AVRO, "value.schema.id.location": "body"}, "value.schema.id.location=body"),
    "a class": ({**AVRO, "value.schema.id.serializer": "x.Own"}, "value.schema.id.serializer=Own"),
    "a reference": ({**AVRO, "value.schema.references": "a=b"}, "needs NAME=SUBJECT:VERSION"),
    "two schemas": ({**AVRO, "value.schema": RECORD, "value.schema.version": "1"}, "value.schema: is given beside"),
    "two versions": ({**AVRO, "use.schema.id": "1", "value.schema.version": "1"}, "use.schema.id: is given beside"),
    "a subject without registry": (
        {"value.format": "avro", "value.schema": RECORD, "value.subject": "x"},
        "value.subject: means nothing without schema.registry.url",
    ),
    "rules": ({**AVRO, "rule.executors": "x"}, "rule.executors: no option"),
}


@pytest.mark.parametrize(("given", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_option_is_named(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        value_settings("value", given)


def test_what_only_javas_objects_need_is_passed_over() -> None:
    assert value_settings("value", {**AVRO, "specific.avro.reader": "true"}) == value_settings("value", AVRO)


SECRET = "hunter2"
WRONG_REGISTRY = {
    "no url": ({"basic.auth.user.info": f"a:{SECRET}"}, "schema.registry.url: missing"),
    "no scheme": ({"url": f"al:{SECRET}@host:8081"}, "needs http://HOST:PORT"),
    "a port": ({"url": f"http://al:{SECRET}@host:99999"}, "needs http://HOST:PORT"),
    "a query": ({"url": f"http://host/?a={SECRET}"}, "without a query"),
    "mock": ({"url": "mock://x"}, "needs http://HOST:PORT"),
    "different credentials": ({"url": f"http://a:{SECRET}@h,http://b:{SECRET}@h"}, "different credentials"),
    "credentials twice": ({"url": f"http://a:{SECRET}@h", "basic.auth.user.info": f"b:{SECRET}"}, "one of the two"),
    "a user alone": ({"url": "http://h", "basic.auth.user.info": SECRET}, "needs USER:PASSWORD"),
    "a source": ({"url": "http://h", "basic.auth.credentials.source": "FILE"}, "USER_INFO, URL or SASL_INHERIT"),
    "nothing to inherit": ({"url": "http://h", "basic.auth.credentials.source": "SASL_INHERIT"}, "sasl.username"),
    "no token": ({"url": "http://h", "bearer.auth.credentials.source": "STATIC_TOKEN"}, "bearer.auth.token"),
    "a source of tokens": ({"url": "http://h", "bearer.auth.credentials.source": "OAUTHBEARER"}, "STATIC_TOKEN"),
    "a token with a line": ({"url": "http://h", "bearer.auth.token": f"a\r\nX: {SECRET}"}, "no token has"),
    "both": ({"url": f"http://a:{SECRET}@h", "bearer.auth.token": SECRET}, "one of the two"),
    "a store": ({"url": "https://h", "ssl.truststore.location": "x.jks"}, "only PEM files"),
    "a key alone": ({"url": "https://h", "ssl.key.location": "x.pem"}, "needs ssl.certificate.location"),
    "a time": ({"url": "http://h", "request.timeout.ms": "1s"}, "request.timeout.ms=1s: needs a whole number"),
    "a proxy": ({"url": "http://h", "proxy": f"al:{SECRET}@h"}, "proxy: needs http://HOST:PORT"),
}


@pytest.mark.parametrize(("given", "said"), WRONG_REGISTRY.values(), ids=WRONG_REGISTRY)
def test_a_wrong_property_of_the_registry_is_named_and_no_secret_told(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as error:
        registry_settings(given)
    assert SECRET not in str(error.value)


def test_properties_are_read_with_their_prefix_and_without() -> None:
    bare = {"url": "http://h:1/path/,https://[::1]:2", "basic.auth.user.info": f"al:{SECRET}", "max.retries": "7"}
    settings = registry_settings(bare)
    assert settings == registry_settings({f"schema.registry.{name}": value for name, value in bare.items()})
    assert settings.urls == ("http://h:1/path", "https://[::1]:2")
    assert SECRET not in repr(settings)
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_a_kafka_clients_own_tls_and_passwords_are_not_the_registrys() -> None:
    given = {
        "bootstrap.servers": "b:9092",
        "ssl.ca.location": "brokers.pem",
        "sasl.username": "al",
        "sasl.password": SECRET,
        "schema.registry.url": "http://h",
        "schema.registry.ssl.ca.location": "registry.pem",
        "bearer.auth.token": "t",
    }
    settings = registry_settings(registry_properties(given))
    assert (settings.ca_file, settings.user, settings.token) == ("registry.pem", None, "t")
    del given["bearer.auth.token"]
    inherited = registry_settings(registry_properties({**given, "basic.auth.credentials.source": "SASL_INHERIT"}))
    assert (inherited.user, inherited.password) == ("al", SECRET)
