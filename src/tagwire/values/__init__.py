"""Values of records in Avro, Protobuf and JSON Schema, as Arrow arrays; with a schema registry or a given schema.

Source: docs/values.md.
"""
