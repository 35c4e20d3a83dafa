"""confluent-kafka's serializers: a program with its packages on PYTHONPATH; `../confluent_serializers.py` runs it.

Standard input is a pickled list of works, standard output a pickled list of their results: for each work a list, one
item a value, or the text of the error that it ended with. Protobuf's messages go by as their bytes.
"""

from __future__ import annotations

import pickle
import sys
from typing import Any

from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    header_schema_id_serializer,
    prefix_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext


def made(work: dict[str, Any], client: SchemaRegistryClient) -> Any:
    """The serializer or deserializer of a work."""
    kind, writes = work["format"], work["what"] == "serialize"
    settings = dict(work.get("settings", {}))
    if writes:
        by_header = work.get("location") == "header"
        settings["schema.id.serializer"] = header_schema_id_serializer if by_header else prefix_schema_id_serializer
    if kind == "protobuf":
        from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer

        message = message_class(work["files"], work["message"])
        if not writes:
            return ProtobufDeserializer(message, settings, client)
        serializer = ProtobufSerializer(message, client, settings)
        return lambda value, context: serializer(message.FromString(value), context)
    schema = work.get("schema")
    if schema is not None and work.get("references"):
        references = [SchemaReference(*each) for each in work["references"]]
        schema = Schema(schema, {"avro": "AVRO", "json-schema": "JSON"}[kind], references)
    if kind == "avro":
        if writes:
            return AvroSerializer(client, schema, conf=settings)
        return AvroDeserializer(client, schema, conf=settings)
    if writes:
        return JSONSerializer(schema, client, conf=settings)
    return JSONDeserializer(schema, schema_registry_client=client, conf=settings)


def message_class(files: bytes, name: str) -> Any:
    """The class of a message of a FileDescriptorSet."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    pool = descriptor_pool.Default()
    for each in descriptor_pb2.FileDescriptorSet.FromString(files).file:
        if not each.name.startswith("google/"):
            pool.Add(each)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def done(work: dict[str, Any]) -> list[Any] | str:
    field = {"value": MessageField.VALUE, "key": MessageField.KEY}[work.get("which", "value")]
    try:
        serde = made(work, SchemaRegistryClient({"url": work["url"], **work.get("client", {})}))
        results: list[Any] = []
        for value in work["values"]:
            if work["what"] == "serialize":
                headers: list[tuple[str, bytes]] = []
                found = serde(value, SerializationContext(work["topic"], field, headers))
                results.append((found, headers))
            else:
                data, headers = value
                found = serde(data, SerializationContext(work["topic"], field, headers))
                results.append(found.SerializeToString() if work["format"] == "protobuf" else found)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return results


def main() -> None:
    works = pickle.load(sys.stdin.buffer)
    pickle.dump([done(work) for work in works], sys.stdout.buffer)


if __name__ == "__main__":
    main()
