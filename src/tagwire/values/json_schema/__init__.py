"""Values whose schema is a JSON Schema: drafts 4, 6, 7, 2019-09 and 2020-12, as far as they give a column type.

Sources: json-schema.org's specifications; Kafka Connect's annotations, as Confluent's JSON Schema converter writes
them; docs/values.md.
"""

from tagwire.values.json_schema.schema_format import JsonSchemaFormat

__all__ = ["JsonSchemaFormat"]
