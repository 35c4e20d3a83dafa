"""Values in Protobuf: `.proto` text compiled by protoc, messages as Arrow structs in Spark's mapping, and back.

Source: docs/values.md#protobuf.
"""

from tagwire.values.protobuf.protobuf_format import ProtobufFormat

__all__ = ["ProtobufFormat"]
