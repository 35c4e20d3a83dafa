"""Files that Confluent's registry has schemas import without referring to them. Kafka Connect writes such schemas.

They hold annotations, and decimals as a message; field numbers as in Confluent's documents and clients.
"""

from __future__ import annotations

from typing import Final

_DECIMAL: Final = """
syntax = "proto3";
package confluent.type;
message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
"""

_EXTENDED: Final = {
    "FileOptions": "file_meta",
    "MessageOptions": "message_meta",
    "FieldOptions": "field_meta",
    "EnumOptions": "enum_meta",
    "EnumValueOptions": "enum_value_meta",
}

_META: Final = """
syntax = "proto3";
package confluent;
import "google/protobuf/descriptor.proto";
message Rule { string name = 1; string doc = 2; string expr = 3; string sql = 4; }
message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; repeated Rule rules = 4; }
""" + "".join(f"extend google.protobuf.{option} {{ Meta {name} = 1088; }}\n" for option, name in _EXTENDED.items())

KNOWN_FILES: Final = {
    "confluent/meta.proto": _META,
    "confluent/type/decimal.proto": _DECIMAL,
    "confluent/types/decimal.proto": 'syntax = "proto3";\nimport public "confluent/type/decimal.proto";\n',
}
"""Texts by the names that they are imported by."""
