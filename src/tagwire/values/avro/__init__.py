"""Values in Avro's binary encoding: schemas, their resolution, and Arrow columns from and to bodies.

Sources: the Avro specification, 1.11; docs/values.md.
"""

from tagwire.values.avro.avro_format import AvroFormat

__all__ = ["AvroFormat"]
