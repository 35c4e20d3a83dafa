"""Values of random schemas, written by fastavro, read by us; and written by us as fastavro writes them."""

import json
import pickle
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

from tagwire.errors import ValueSchemaError
from tagwire.values.avro import AvroFormat
from tagwire.values.schemas import Schema

from . import generated_avro as generated
from . import generated_evolution as evolution

FORMAT = AvroFormat()
MANY = 100
"""Times that each body is read, so that they are read a block at a time where the schema allows."""


@given(st.data(), generated.schemas())
@settings(max_examples=40)
def test_values_that_fastavro_writes_are_read_as_they_were_and_written_as_the_same_bytes(
    data: st.DataObject, schema: Any
) -> None:
    node = generated.parsed(schema)
    values = data.draw(st.lists(generated.values(node), min_size=1, max_size=4))
    bodies = [generated.body(schema, value) for value in values] * MANY
    reader = FORMAT.reader_schema(Schema(json.dumps(schema)))
    expected = pa.array([generated.wire_value(node, value) for value in values] * MANY + [None], reader.type)
    read, bad = reader.decoder(reader.schema).decode(pa.array([*bodies, None], pa.binary()))
    assert bad.to_pylist() == [False] * len(expected)
    read.validate(full=True)
    assert read.equals(expected)
    names = data.draw(st.lists(st.sampled_from([field.name for field in node.fields]), unique=True))
    some, bad = reader.decoder(reader.schema, names).decode(pa.array([*bodies, None], pa.binary()))
    assert bad.to_pylist() == [False] * len(expected)
    assert all(pc.struct_field(some, name).equals(pc.struct_field(expected, name)) for name in names)
    encoder = pickle.loads(pickle.dumps(FORMAT.encoder(reader.schema, reader.type)))
    written, bad = encoder.encode(read)
    assert bad.to_pylist() == [False] * len(expected)
    again, bad = reader.decoder(reader.schema).decode(written)
    assert again.equals(expected)


@given(st.data(), generated.schemas(logical=False))
@settings(max_examples=40)
def test_values_are_resolved_to_a_readers_schema_as_fastavro_resolves_them(data: st.DataObject, written: Any) -> None:
    read = data.draw(evolution.readers(written))
    values = data.draw(st.lists(generated.values(generated.parsed(written)), min_size=1, max_size=4))
    different = [generated.body(written, value) for value in values]
    expected = [generated.resolved(body, written, read) for body in different] * MANY
    bodies = different * MANY
    reader = FORMAT.reader_schema(Schema(json.dumps(read)))
    try:
        decoder = reader.decoder(Schema(json.dumps(written)))
    except ValueSchemaError:
        # fastavro finds out while it reads, and an empty list tells it nothing.
        assert generated.REFUSED in expected or "items" in str(written) or "values" in str(written)
        assert FORMAT.compatibility(Schema(json.dumps(written)), reader.schema)
        return
    column, bad = decoder.decode(pa.array(bodies, pa.binary()))
    assert bad.to_pylist() == [value is generated.REFUSED for value in expected]
    if any(bad.to_pylist()) and "bytes" not in str(written):
        assert FORMAT.compatibility(Schema(json.dumps(written)), reader.schema)
    for ours, theirs in zip(column.slice(0, len(values)).to_pylist(), expected):
        assert theirs is generated.REFUSED or generated.same(reader.node, ours, theirs)


@given(st.data(), generated.schemas())
@settings(max_examples=40)
def test_a_bad_body_among_many_is_told_as_it_is_alone_and_the_others_are_read(data: st.DataObject, schema: Any) -> None:
    node = generated.parsed(schema)
    good = [generated.body(schema, data.draw(generated.values(node))) for _ in range(3)] * MANY
    bodies = list(good)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(bodies) - 1))
        bodies[place] = data.draw(generated.mutated(bodies[place]))
    reader = FORMAT.reader_schema(Schema(json.dumps(schema)))
    decoder = reader.decoder(reader.schema)
    together, bad = decoder.decode(pa.array(bodies, pa.binary()))
    alone = {body: decoder.decode(pa.array([body], pa.binary())) for body in set(bodies)}
    assert bad.to_pylist() == [alone[body][1][0].as_py() for body in bodies]
    assert same_values(together, pa.concat_arrays([alone[body][0] for body in bodies]))
    for body, (_, wrong) in alone.items():
        assert (decoder.refusal(body) != "the body can be read") == wrong[0].as_py()


def same_values(one: pa.Array, other: pa.Array) -> bool:
    """Equal, and NaN is NaN."""
    return one.equals(other) or str(one.to_string(window=100)) == str(other.to_string(window=100))
