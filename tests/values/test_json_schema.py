"""JSON Schema as a format of values: the types it gives, what is read by it, and what is written."""

import base64
import datetime
import json
import math
import pickle
import time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagwire.errors import ValueSchemaError
from tagwire.values.json_schema import JsonSchemaFormat
from tagwire.values.python_rows import python_row
from tagwire.values.schemas import AVRO, JSON, Schema

FORMAT = JsonSchemaFormat()
UTC_MICROS = pa.timestamp("us", "UTC")
CONNECT = "org.apache.kafka.connect.data."


def schema_of(text: object, **references: object) -> Schema:
    named = tuple((name, one if isinstance(one, Schema) else schema_of(one)) for name, one in references.items())
    return Schema(json.dumps(text), JSON, named)


def type_of(text: object, **references: object) -> pa.DataType:
    return FORMAT.reader_schema(schema_of(text, **references)).type


def record(**properties: object) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def decoded(text: object, *bodies: bytes | str | None) -> tuple[list[object], list[bool]]:
    given = [one.encode() if isinstance(one, str) else one for one in bodies]
    schema = schema_of(text)
    values, bad = FORMAT.reader_schema(schema).decoder(schema).decode(pa.array(given, pa.binary()))
    assert values.type == type_of(text)
    return values.to_pylist(), bad.to_pylist()


def refusal(text: object, body: bytes) -> str:
    schema = schema_of(text)
    return FORMAT.reader_schema(schema).decoder(schema).refusal(body)


def encoded(text: object, column: pa.Array) -> tuple[list[bytes | None], list[bool]]:
    bodies, bad = FORMAT.encoder(schema_of(text), column.type).encode(column)
    assert bodies.type == pa.binary()
    return bodies.to_pylist(), bad.to_pylist()


STRING = {"type": "string"}
INTEGER = {"type": "integer"}
STRING_MAP = {"type": "object", "additionalProperties": STRING}
DECIMAL = {"title": CONNECT + "Decimal", "connect.type": "bytes"}


# What a schema is as a column ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"type": "boolean"}, pa.bool_()),
        (INTEGER, pa.int64()),
        ({"type": "number"}, pa.float64()),
        ({"type": ["integer", "number"]}, pa.float64()),
        (STRING, pa.string()),
        ({"type": "string", "format": "date"}, pa.date32()),
        ({"type": "string", "format": "date-time"}, UTC_MICROS),
        ({"type": "string", "format": "uuid"}, pa.string()),
        ({"type": "string", "contentEncoding": "base64"}, pa.binary()),
        ({"enum": ["a", "b", None]}, pa.string()),
        ({"enum": [1, 2.5]}, pa.float64()),
        ({"const": 1}, pa.int64()),
        ({"type": ["null", "integer"]}, pa.int64()),
        ({"oneOf": [{"type": "null"}, INTEGER]}, pa.int64()),
        ({"anyOf": [{"const": "a"}, {"const": "b"}]}, pa.string()),
        ({"oneOf": [INTEGER, STRING]}, pa.string()),
        ({"type": ["integer", "string"]}, pa.string()),
        (True, pa.string()),
        ({}, pa.string()),
        ({"type": "object"}, pa.string()),
        ({"type": "array", "items": INTEGER}, pa.list_(pa.int64())),
        ({"type": "array", "items": [INTEGER, STRING]}, pa.string()),
        ({"type": "array", "prefixItems": [INTEGER]}, pa.string()),
        ({"type": "object", "additionalProperties": INTEGER}, pa.map_(pa.string(), pa.int64())),
        ({"properties": {"a": INTEGER}}, pa.struct([("a", pa.int64())])),
        ({"allOf": [record(a=INTEGER), record(b=STRING)]}, pa.struct([("a", pa.int64()), ("b", pa.string())])),
        (
            {**record(a=INTEGER, b=STRING), "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            pa.struct([("a", pa.int64()), ("b", pa.string())]),
        ),
        ({"type": "integer", "connect.type": "int8"}, pa.int8()),
        ({"type": "integer", "connect.type": "int16"}, pa.int16()),
        ({"type": "integer", "connect.type": "int32"}, pa.int32()),
        ({"type": "number", "connect.type": "float32"}, pa.float32()),
        ({"type": "string", "connect.type": "bytes"}, pa.binary()),
        ({"type": "integer", "connect.type": "int32", "title": CONNECT + "Date"}, pa.date32()),
        ({"type": "integer", "connect.type": "int64", "title": CONNECT + "Timestamp"}, UTC_MICROS),
        (
            {
                "type": "number",
                "connect.type": "bytes",
                "title": CONNECT + "Decimal",
                "connect.parameters": {"scale": "2"},
            },
            pa.decimal128(38, 2),
        ),
        (
            {"type": "array", "connect.type": "map", "items": record(key=INTEGER, value=STRING)},
            pa.map_(pa.int64(), pa.string()),
        ),
        (
            record(b={"type": "string", "connect.index": 1}, a={"type": "integer", "connect.index": 0}),
            pa.struct([("a", pa.int64()), ("b", pa.string())]),
        ),
    ],
    ids=str,
)
def test_a_schema_gives_the_column_type_of_the_table(said: object, expected: pa.DataType) -> None:
    assert type_of(record(x=said)).field("x").type == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (record(a={"$ref": "#"}), "schema.a: is recursive"),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"type": "array", "items": {"$ref": "#/$defs/x"}}}}, "is recursive"),
        (record(a={"$ref": "#/definitions/no"}), "leads to nothing"),
        (record(a={"$ref": "https://example.com/a.json"}), "nothing is fetched"),
        (record(a={"$ref": "http://[bad#/a"}), "is no address"),
        (record(a={"$ref": 1}), "$ref is no string"),
        (record(a=False), "schema.a: allows no value"),
        (record(a={"allOf": [STRING, INTEGER]}), "schema.a: allows no value"),
        (record(a={"type": "text"}), "schema.a: type 'text' is none"),
        (record(a=1), "schema.a: a schema is an object"),
        ({"type": "object", "properties": []}, "properties is no object"),
        ([], "a JSON Schema is an object"),
        (record(a={"$dynamicRef": "#a"}), "$dynamicRef is not supported"),
        (record(a={"type": [{"type": "string"}]}), "schema.a: type {'type': 'string'} is none"),
        (record(a={"type": [["string"]]}), "schema.a: type ['string'] is none"),
        (record(a={"$ref": "#/allOf/" + "9" * 5000}) | {"allOf": []}, "leads to nothing"),
        ({"type": "string", "$id": "http://a/", "$defs": {"b": {"$id": "http://[bad"}}}, "is no address"),
        (
            record(a={"$ref": "#/x"}) | {"x": {"type": "number", **DECIMAL, "connect.parameters": {"scale": 1e400}}},
            "connect.parameters are no numbers",
        ),
        (record(**{"\ud800": STRING}), "half a surrogate pair"),
    ],
)
def test_a_schema_without_a_column_type_is_refused_by_place_and_reason(text: object, said: str) -> None:
    with pytest.raises(ValueSchemaError) as caught:
        type_of(text)
    assert said in str(caught.value)


def test_a_reference_is_found_by_pointer_anchor_id_and_in_the_references_of_the_registry() -> None:
    text = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://example.com/order.json",
        "type": "object",
        "properties": {
            "a": {"$ref": "#/$defs/one"},
            "b": {"$ref": "#two"},
            "c": {"$ref": "customer.json"},
            "d": {"$ref": "https://example.com/within.json"},
            "e": {"$ref": "customer.json#/properties/name"},
            "f": {"$ref": "#/$defs/with~1slash"},
        },
        "$defs": {
            "one": INTEGER,
            "two": {"$anchor": "two", "type": "boolean"},
            "three": {"$id": "within.json", "type": "number"},
            "with/slash": STRING,
        },
    }
    customer = record(name=STRING, city={"$ref": "city"})
    references = {"customer.json": schema_of(customer, city=STRING)}
    found = type_of(text, **references)
    assert found == pa.struct(
        [
            ("a", pa.int64()),
            ("b", pa.bool_()),
            ("c", pa.struct([("name", pa.string()), ("city", pa.string())])),
            ("d", pa.float64()),
            ("e", pa.string()),
            ("f", pa.string()),
        ]
    )


def test_what_is_named_twice_but_not_within_itself_is_not_recursive() -> None:
    shared = {"$ref": "#/definitions/shared"}
    text = {**record(a=shared, b=shared), "allOf": [shared, shared], "definitions": {"shared": record(n=INTEGER)}}
    inner = pa.struct([("n", pa.int64())])
    assert type_of(text) == pa.struct([("a", inner), ("b", inner), ("n", pa.int64())])


def test_beside_a_reference_nothing_counts_up_to_draft_7_and_everything_after() -> None:
    text = record(a={"$ref": "#/definitions/d", "type": ["integer", "null"]}) | {"definitions": {"d": INTEGER}}
    older, newer = schema_of(text), schema_of({"$schema": "https://json-schema.org/draft/2019-09/schema", **text})
    required = {"required": ["a"]}
    column = pa.array([{"a": 1}])
    assert encoded(json.loads(older.text) | required, column) == encoded(json.loads(newer.text) | required, column)
    contradicting = record(a={"$ref": "#/definitions/d", "type": "string"}) | {"definitions": {"d": INTEGER}}
    assert type_of(contradicting).field("a").type == pa.int64()
    with pytest.raises(ValueSchemaError, match="contradict"):
        type_of({"$schema": "https://json-schema.org/draft/2019-09/schema", **contradicting})


def test_a_schema_is_bounded_in_text_nesting_and_in_what_references_make_of_it() -> None:
    with pytest.raises(ValueSchemaError, match="nested"):
        FORMAT.reader_schema(Schema('{"type":"array","items":' * 1000 + "{}" + "}" * 1000, JSON))
    with pytest.raises(ValueSchemaError, match="nested"):
        FORMAT.reader_schema(Schema('{"a":' * 100_000, JSON))
    below = [{"$ref": f"#/$defs/a{n + 1}"} for n in range(40)]
    doubling = {f"a{n}": record(x=below[n], y=below[n]) for n in range(40)}
    with pytest.raises(ValueSchemaError, match="more than 100,000"):
        type_of({"$ref": "#/$defs/a0", "$defs": {**doubling, "a40": INTEGER}})
    with pytest.raises(ValueSchemaError, match="nested"):
        FORMAT.reader_schema(Schema('{"oneOf":[' * 390 + "{}" + "]}" * 390, JSON))
    with pytest.raises(ValueSchemaError, match="characters"):
        FORMAT.reader_schema(Schema(" " * 10_000_001, JSON))
    assert type_of(record(**{f"f{n}": STRING for n in range(10_000)})).num_fields == 10_000


def test_a_schema_of_another_format_is_refused() -> None:
    reader = FORMAT.reader_schema(schema_of(record(a=INTEGER)))
    with pytest.raises(ValueSchemaError, match="AVRO"):
        reader.decoder(Schema('"string"', AVRO))
    with pytest.raises(ValueSchemaError, match="AVRO"):
        FORMAT.reader_schema(Schema('"string"', AVRO))
    with pytest.raises(ValueSchemaError, match="no JSON"):
        FORMAT.reader_schema(Schema("<html>", JSON))


# Reading ---------------------------------------------------------------------------------------------------------

PLAIN = record(n=INTEGER, x={"type": "number"}, s=STRING)
WITH_MAP = record(n=INTEGER, x={"type": "number"}, s=STRING, m={"type": "object", "additionalProperties": INTEGER})


@pytest.mark.parametrize("text", [PLAIN, WITH_MAP], ids=["by Arrow's reader", "value by value"])
@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "Expecting value"),
        (b"nonsense", "Expecting value"),
        (b"null", "it is null"),
        (b"[]", "[] is no object"),
        (b'{"n":1', "Expecting ',' delimiter"),
        (b'{"n":1} 2', "Extra data"),
        (b'{"n":1}{"n":2}', "Extra data"),
        (b'{"n":1},{"n":2}', "Extra data"),
        (b'{"n":1}}\n{"v":{"n":2}', "Extra data"),
        (b'{"n":1},"m":{"n":2}', "Extra data"),
        (b'{"n":1,"n":2}', "n: is there twice"),
        (b'{"n":"1"}', 'n: "1" is no integer'),
        (b'{"n":1.5}', "n: 1.5 is no integer"),
        (b'{"n":true}', "n: true is no integer"),
        (b'{"n":9223372036854775808}', "n: 9223372036854775808 is no integer of 64 bits"),
        (b'{"n":' + b"9" * 6000 + b"}", "a number has thousands of digits"),
        (b'{"x":NaN}', "x: NaN is no finite number"),
        (b'{"x":-Infinity}', "x: -Infinity is no finite number"),
        (b'{"x":1e400}', "x: Infinity is no finite number"),
        (b'{"s":1}', "s: 1 is no string"),
        (b'{"s":"\xff"}', "not UTF-8 at byte 6"),
        (b'{"s":"\\ud800"}', "s: half a surrogate pair"),
        (b'{"s":"a\x00b"}', "Invalid control character"),
        (b'\xef\xbb\xbf{"n":1}', "Expecting value"),
    ],
)
def test_a_bad_value_is_a_bad_row_with_a_reason_and_its_neighbours_are_read(
    text: object, body: bytes, said: str
) -> None:
    values, bad = decoded(text, *['{"n":1}'] * 200, body, '{"n":2}', None)
    assert bad == [False] * 200 + [True, False, False]
    assert values[200] is None
    assert values[202] is None
    assert [values[199]["n"], values[201]["n"]] == [1, 2]  # type: ignore[index]
    assert said in refusal(text, body)


def test_an_object_of_many_properties_of_which_one_is_there_twice_is_judged_in_the_time_of_its_bytes() -> None:
    names = ",".join(f'"{number:x}":0' for number in range(100_000))
    body = f'{{{names},"n":1,"n":2}}'.encode()
    text = {"type": "object", "additionalProperties": INTEGER}
    start = time.process_time()
    assert decoded(text, body)[1] == [True]
    assert time.process_time() - start < 20  # where each name was looked for among all of them, minutes
    assert refusal(text, body) == "n: is there twice"


def test_a_reason_tells_of_names_that_no_text_or_line_holds() -> None:
    text = {"type": "object", "additionalProperties": INTEGER}
    assert refusal(text, b'{"\\ud800":1}') == "\\ud800: half a surrogate pair is no character"
    assert refusal(text, b'{"\\ud800":1,"\\ud800":2}') == "\\ud800: is there twice"
    assert refusal(text, b'{"a\\nb":"x"}') == 'a\\nb: "x" is no integer'
    assert len(refusal(text, b'{"' + b"a" * 100_000 + b'":"x"}')) < 100


@pytest.mark.parametrize(
    "number", ["1e99999999999999999999", "-0.0E-99999999999999999999", "1e999999999", "1e-999999999"]
)
def test_a_decimal_with_an_exponent_that_none_has_is_a_bad_value(number: str) -> None:
    text = {"type": "number", **DECIMAL, "connect.parameters": {"scale": "2"}}
    assert decoded(text, number, "1.5") == ([None, Decimal("1.50")], [True, False])
    assert "is no decimal(38,2)" in refusal(text, number.encode())


def test_a_decimal_whose_base64_is_long_is_bad_before_a_number_is_made_of_it() -> None:
    said = {**DECIMAL, "connect.parameters": {"scale": "2"}}
    text = {"type": "number", **said}
    long = json.dumps(base64.b64encode(b"\x7f" * 700_000).decode())
    start = time.process_time()
    assert decoded(text, long, json.dumps(base64.b64encode(bytes(700_000) + b"\x01").decode())) == (
        [None, Decimal("0.01")],
        [True, False],
    )
    assert time.process_time() - start < 10  # a minute, where it was made
    assert "is no decimal(38,2)" in refusal(text, long.encode())


def test_a_value_may_lack_properties_have_others_and_write_integers_with_a_point() -> None:
    for text in (PLAIN, WITH_MAP):
        values, bad = decoded(
            text,
            '{"other":[{"deep":1}],"n":7}',
            '{"n":1.0}',
            '{"x":5}',
            "{}",
            ' {"s" : "é\\u00e9\\n"} ',
            '{"n":null,"o":1,"o":2}',
        )
        assert bad == [False] * 6
        assert [(one["n"], one["x"], one["s"]) for one in values] == [  # type: ignore[index]
            (7, None, None),
            (1, None, None),
            (None, 5.0, None),
            (None, None, None),
            (None, None, "éé\n"),
            (None, None, None),
        ]


def test_an_integer_that_is_written_with_a_point_or_an_exponent_keeps_all_its_digits() -> None:
    texts = ["9007199254740993.0", "9223372036854775807.0", "-9.223372036854775808e18", "10e2"]
    assert decoded({"type": "integer"}, *texts) == (
        [9007199254740993, (1 << 63) - 1, -(1 << 63), 1000],
        [False] * 4,
    )
    texts = ["9007199254740993.5", "1.00000000000000000001", "9223372036854775808.0", "1e-99999999999999999999"]
    assert decoded({"type": "integer"}, *texts) == ([None] * 4, [True] * 4)


def test_what_no_column_takes_may_be_nested_however_deep_and_what_one_takes_is_a_bad_row() -> None:
    deep = b'{"n":1,"other":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert decoded(PLAIN, deep, b"no")[1] == [False, True]
    assert decoded(record(a=True), b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}")[1] == [True]


def test_times_dates_bytes_and_decimals_are_read_as_their_words_mean() -> None:
    decimal = {
        "type": "number",
        "title": CONNECT + "Decimal",
        "connect.type": "bytes",
        "connect.parameters": {"scale": "2", "connect.decimal.precision": "20"},
    }
    text = record(
        t={"type": "string", "format": "date-time"},
        d={"type": "string", "format": "date"},
        b={"type": "string", "contentEncoding": "base64"},
        days={"type": "integer", "connect.type": "int32", "title": CONNECT + "Date"},
        ms={"type": "integer", "connect.type": "int64", "title": CONNECT + "Timestamp"},
        small={"type": "integer", "connect.type": "int8"},
    )
    utc = datetime.UTC
    good = [
        ({"t": "2024-02-29T12:00:00Z"}, datetime.datetime(2024, 2, 29, 12, tzinfo=utc)),
        ({"t": "2024-02-29T12:00:00.1234567+02:00"}, datetime.datetime(2024, 2, 29, 10, 0, 0, 123456, tzinfo=utc)),
        ({"t": "9999-12-31t23:59:59.9z"}, datetime.datetime(9999, 12, 31, 23, 59, 59, 900000, tzinfo=utc)),
        ({"d": "2024-02-29"}, datetime.date(2024, 2, 29)),
        ({"b": "AP8="}, b"\x00\xff"),
        ({"b": ""}, b""),
        ({"days": -1}, datetime.date(1969, 12, 31)),
        ({"ms": 1500}, datetime.datetime(1970, 1, 1, 0, 0, 1, 500000, tzinfo=utc)),
        ({"small": -128}, -128),
    ]
    wrong: list[dict[str, object]] = [
        {"t": "2024-02-29T12:00:00"},
        {"t": "2024-02-30T12:00:00Z"},
        {"t": 5},
        {"d": "2023-02-29"},
        {"d": "2024-2-9"},
        {"d": "20240229"},
        {"b": "AP8"},
        {"b": "?"},
        {"b": "é"},
        {"small": 128},
        {"ms": 1 << 62},
    ]
    values, bad = decoded(text, *(json.dumps(one) for one, _ in good), *(json.dumps(one) for one in wrong))
    assert bad == [False] * len(good) + [True] * len(wrong)
    assert [next(one for one in value.values() if one is not None) for value in values[: len(good)]] == [  # type: ignore[attr-defined]
        expected for _, expected in good
    ]
    assert "'2024-02-29T12:00:00' is no date-time" in refusal(text, b'{"t":"2024-02-29T12:00:00"}')
    base64_of_12_34 = base64.b64encode((1234).to_bytes(2, "big")).decode()
    rows = ('{"d":1.5}', f'{{"d":"{base64_of_12_34}"}}', '{"d":123456789012345678.25}', '{"d":1.005}', '{"d":1e30}')
    values, bad = decoded(record(d=decimal), *rows)
    assert [one and one["d"] for one in values] == [  # type: ignore[index]
        Decimal("1.50"),
        Decimal("12.34"),
        Decimal("123456789012345678.25"),
        None,
        None,
    ]
    assert bad == [False, False, False, True, True]


@pytest.mark.parametrize("form", ["date", "date-time"])
def test_an_object_that_is_null_or_missing_has_no_time_in_it(form: str) -> None:
    inner = record(at={"type": "string", "format": form})
    whole = record(
        a={"oneOf": [{"type": "null"}, inner]}, b=inner, many=STRING_MAP, c={"type": "array", "items": inner}
    )
    assert decoded(whole, '{"a":null,"many":{},"c":[null]}', '{"b":null}', "?") == (
        [{"a": None, "b": None, "many": [], "c": [None]}, {"a": None, "b": None, "many": None, "c": None}, None],
        [False, False, True],
    )
    del whole["properties"]["many"]  # what Arrow reads, and rows one by one beside one that it does not
    assert decoded(whole, "{}", '{"a":null}', "?")[1] == [False, False, True]
    assert refusal(whole, b"{}") == "it is good"


@pytest.mark.parametrize("outer", ["items", "additionalProperties"])
def test_what_is_no_date_in_a_list_or_a_map_makes_its_own_row_bad_alone(outer: str) -> None:
    text = {"type": "array" if outer == "items" else "object", outer: {"type": "string", "format": "date"}}
    form = '["{}"]' if outer == "items" else '{{"a":"{}"}}'
    bodies = [form.format(date) for date in ("2024-02-29", "2023-02-29", "2024-02-28")]
    assert decoded(text, *bodies)[1] == [False, True, False]
    assert decoded(record(a=text), *(f'{{"a":{body}}}' for body in bodies))[1] == [False, True, False]


def test_maps_entries_and_values_of_any_type_are_read() -> None:
    text = record(
        m={"type": "object", "additionalProperties": {"type": "string", "format": "date"}},
        e={"type": "array", "connect.type": "map", "items": record(key=INTEGER, value={"type": "number"})},
        a=True,
    )
    day = datetime.date(2024, 1, 2)
    values, bad = decoded(
        text,
        '{"m":{"k":"2024-01-02","n":null},"e":[{"key":1,"value":2.5}],"a":{"x":[1,"é"]}}',
        '{"m":{"k":1}}',
        '{"e":[{"value":1}]}',
        '{"e":[null]}',
        '{"a":"text"}',
        '{"a":null}',
        '{"a":NaN}',
        '{"m":{"k":"2024-01-02","k":"2024-01-02"}}',
    )
    assert values[0] == {"m": [("k", day), ("n", None)], "e": [(1, 2.5)], "a": '{"x":[1,"é"]}'}
    assert values[4] == {"m": None, "e": None, "a": '"text"'}
    assert bad == [False, True, True, True, False, False, True, True]


def test_entries_alone_are_read_by_arrows_reader_and_one_without_a_key_is_bad() -> None:
    text = record(e={"type": "array", "connect.type": "map", "items": record(key=INTEGER, value=STRING)})
    good = '{"e":[{"key":1,"value":"a"},{"key":2}]}'
    values, bad = decoded(text, good, "{}", '{"e":[{"value":"a"}]}', good)
    assert values == [{"e": [(1, "a"), (2, None)]}, {"e": None}, None, {"e": [(1, "a"), (2, None)]}]
    assert bad == [False, False, True, False]


def test_a_value_need_not_be_an_object() -> None:
    assert decoded(INTEGER, "1", "null", '"1"') == ([1, None, None], [False, True, True])
    assert decoded({"type": ["integer", "null"]}, "1", "null") == ([1, None], [False, False])
    assert decoded({"type": "array", "items": STRING}, '["a",null]') == ([["a", None]], [False])
    assert decoded(True, '{"a": 1}') == (['{"a":1}'], [False])


def test_a_decoder_reads_the_fields_that_are_wanted_in_their_order_and_can_be_pickled() -> None:
    schema = schema_of(WITH_MAP)
    reader = FORMAT.reader_schema(schema)
    decoder = pickle.loads(pickle.dumps(reader.decoder(schema, ["s", "n"])))
    values, bad = decoder.decode(pa.array([b'{"n":1,"s":"a","m":0}', b"?"]))
    assert values.to_pylist() == [{"s": "a", "n": 1}, None]
    assert bad.to_pylist() == [False, True]
    assert reader.decoder(schema, []).decode(pa.array([b"{}", b"?"]))[1].to_pylist() == [False, True]
    with pytest.raises(ValueSchemaError, match="'no'"):
        reader.decoder(schema, ["no"])


def test_what_ends_the_list_in_which_arrow_reads_a_value_is_no_json() -> None:
    for text, value in (
        (INTEGER, "1"),
        (STRING, '"a"'),
        ({"type": "array", "items": INTEGER}, "[1]"),
        (record(), "{}"),
    ):
        assert decoded(text, value, value + '],"x":[2')[1] == [False, True]
        assert decoded(text, value + '],"x":[')[1] == [True]


def test_large_bodies_are_read_as_others_are() -> None:
    for text in (record(a=INTEGER), WITH_MAP, INTEGER):
        schema = schema_of(text)
        decoder = FORMAT.reader_schema(schema).decoder(schema)
        bodies = pa.array([b'{"a":1,"n":2}', b"3", None, b"{"], pa.binary())
        assert decoder.decode(bodies.cast(pa.large_binary())) == decoder.decode(bodies)


def test_a_null_that_stands_over_items_is_written_as_one_and_makes_no_other_row_bad() -> None:
    lists = pa.array([["a"], ["b", None], ["c"], ["d", None]], pa.list_(pa.string()))
    column = pa.StructArray.from_arrays([lists], ["l"], mask=pa.array([True, False, True, False]))
    text = {"type": ["object", "null"], "properties": {"l": {"type": "array", "items": STRING}}}
    assert encoded(text, column) == ([None] * 4, [False, True, False, True])
    assert encoded(text, column.slice(2)) == ([None] * 2, [False, True])


def test_no_bodies_give_an_empty_column() -> None:
    for text in (PLAIN, WITH_MAP, INTEGER):
        assert decoded(text) == ([], [])
        assert decoded(text, None, None) == ([None, None], [False, False])


ANY_TEXT = st.text(alphabet=st.characters(codec="utf-8"), max_size=6)
ROWS = st.fixed_dictionaries(
    {},
    optional={
        "n": st.integers(-(1 << 63), (1 << 63) - 1) | st.none(),
        "x": st.floats(allow_nan=False, allow_infinity=False),
        "s": ANY_TEXT,
        "ok": st.booleans(),
        "list": st.lists(st.fixed_dictionaries({"t": st.none() | ANY_TEXT, "l": st.lists(st.integers(0, 9))})),
        "at": st.datetimes(datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30)).map(
            lambda time: time.replace(tzinfo=datetime.UTC)
        ),
        "day": st.dates(),
        "data": st.binary(max_size=5),
        "map": st.dictionaries(ANY_TEXT, st.integers(0, 9), max_size=3),
    },
)
EVERYTHING = record(
    n={"type": ["integer", "null"]},
    x={"type": "number"},
    s=STRING,
    ok={"type": "boolean"},
    list={
        "type": "array",
        "items": record(t={"type": ["string", "null"]}, l={"type": "array", "items": INTEGER}),
    },
    at={"type": "string", "format": "date-time"},
    day={"type": "string", "format": "date"},
    data={"type": "string", "contentEncoding": "base64"},
    map={"type": "object", "additionalProperties": INTEGER},
)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.none() | ROWS, max_size=8))
def test_what_is_written_is_what_python_reads_and_what_is_read_again(rows: list[dict[str, object] | None]) -> None:
    schema = schema_of(EVERYTHING)
    kind = type_of(EVERYTHING)
    column = pa.array(rows, kind)
    bodies, bad = FORMAT.encoder(schema, kind).encode(column)
    assert bad.true_count == 0
    for body, row in zip(bodies.to_pylist(), rows):
        if row is None:
            assert body is None
            continue
        found = json.loads(body)
        assert set(found) - {"n"} == {name for name, value in row.items() if value is not None} - {"n"}
        for name in {"x", "s", "ok", "map", "list"} & set(found):
            assert found[name] == row[name]
    for fields in (None, ["n", "x", "s", "ok", "list", "at", "day", "data"]):
        values, bad = FORMAT.reader_schema(schema).decoder(schema, fields).decode(bodies)
        assert bad.true_count == 0
        expected = column if fields is None else pa.array(rows, values.type)
        assert values.to_pylist() == expected.to_pylist()


# Writing ---------------------------------------------------------------------------------------------------------


def test_columns_become_json_with_escapes_times_and_no_property_where_null_is_not_allowed() -> None:
    text = {
        **record(
            s=STRING,
            n={"type": ["integer", "null"]},
            t={"type": "string", "format": "date-time"},
            day={"type": "string", "format": "date"},
            b={"type": "string", "contentEncoding": "base64"},
            m={"type": "object", "additionalProperties": {"type": ["number", "null"]}},
            l={"type": "array", "items": record(a=INTEGER)},
            j=True,
        ),
        "required": ["s"],
    }
    when = datetime.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC)
    rows = [
        {
            "s": 'a"\\\n\x01/é',
            "n": 1,
            "t": when,
            "day": when.date(),
            "b": b"\x00\xff",
            "m": [("k", 1.5), ('"', None)],
            "l": [{"a": 1}, {"a": None}],
            "j": '{"x": 1}',
        },
        {"s": ""},
        None,
        {"s": None},
    ]
    bodies, bad = encoded(text, pa.array(rows, type_of(text)))
    assert bad == [False, False, False, True]
    assert json.loads(bodies[0] or b"") == {
        "s": 'a"\\\n\x01/é',
        "n": 1,
        "t": "2024-01-02T03:04:05.000006Z",
        "day": "2024-01-02",
        "b": "AP8=",
        "m": {"k": 1.5, '"': None},
        "l": [{"a": 1}, {}],
        "j": {"x": 1},
    }
    assert bodies[1:] == [b'{"s":"","n":null,"j":null}', None, None]
    assert (
        FORMAT.encoder(schema_of(text), type_of(text)).refusal(rows[3]) == "s: is null, which the schema does not allow"
    )


def test_connects_types_are_written_as_connect_reads_them() -> None:
    text = record(
        days={"type": "integer", "connect.type": "int32", "title": CONNECT + "Date"},
        ms={"type": "integer", "connect.type": "int64", "title": CONNECT + "Timestamp"},
        d={
            "type": "number",
            "connect.type": "bytes",
            "title": CONNECT + "Decimal",
            "connect.parameters": {"scale": "2"},
        },
        e={"type": "array", "connect.type": "map", "items": record(key=INTEGER, value=STRING)},
    )
    row = {
        "days": datetime.date(1970, 1, 11),
        "ms": datetime.datetime(1970, 1, 1, 0, 0, 1, 999, tzinfo=datetime.UTC),
        "d": Decimal("12.30"),
        "e": [(1, "a"), (2, "b")],
    }
    bodies, _ = encoded(text, pa.array([row, None], type_of(text)))
    assert bodies == [
        b'{"days":10,"ms":1000,"d":12.30,"e":[{"key":1,"value":"a"},{"key":2,"value":"b"}]}',
        None,
    ]


@pytest.mark.parametrize(
    ("said", "value", "why"),
    [
        ({"type": "number"}, math.nan, "x: nan is no number of JSON"),
        ({"type": "number"}, -math.inf, "x: -inf is no number of JSON"),
        ({"enum": ["a"]}, "b", "x: 'b' is none of the values that the schema allows"),
        (True, "{", "x: is no JSON"),
        (True, "NaN", "x: is no JSON"),
        ({"type": "array", "items": {"type": "number"}}, [1.0, math.nan], "x[1]: nan is no number of JSON"),
        ({"type": "array", "items": {"type": "number"}}, [None], "x[0]: is null, which the schema does not allow"),
        ({"type": "object", "additionalProperties": STRING}, [("k", None)], "x.k: is null"),
        ({"type": "object", "additionalProperties": STRING}, [("k", "a"), ("l", "a"), ("k", "b")], "x: 'k' is there"),
        (record(y={"type": "number"}), {"y": math.inf}, "x.y: inf is no number of JSON"),
    ],
)
def test_a_row_that_json_or_the_schema_cannot_have_is_bad_and_says_why(said: object, value: object, why: str) -> None:
    kind = type_of(record(x=said))
    good, wrong = {"x": None}, {"x": value}
    bodies, bad = encoded(record(x=said), pa.array([good, wrong, None, good], kind))
    assert bad == [False, True, False, False]
    assert bodies[1] is None
    assert bodies[2] is None
    assert (
        FORMAT.encoder(schema_of(record(x=said)), kind).refusal(pa.array([wrong], kind).to_pylist()[0]).startswith(why)
    )


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.uint64()])
def test_an_integer_of_more_digits_than_a_decimal_has_is_a_bad_row(kind: pa.DataType) -> None:
    parameters = {"scale": "2", "connect.decimal.precision": "5"}
    price = {"type": "number", "connect.type": "bytes", "title": CONNECT + "Decimal", "connect.parameters": parameters}
    column = pa.array([999, 1000, None], kind)
    assert encoded(price, column) == ([b"999", None, None], [False, True, False])
    told = FORMAT.encoder(schema_of(price), kind).refusal(1000)
    assert told == "1000 has more than 3 digits before the point"
    assert encoded(price, pa.array([-1000, 1 - (1 << 63)], pa.int64())) == ([None, None], [True, True])


def test_text_that_is_not_utf_8_and_times_beyond_the_year_9999_are_bad_rows() -> None:
    broken = pa.StructArray.from_buffers(
        pa.struct([("s", pa.string())]),
        2,
        [None],
        children=[pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xff", b"a"]).buffers())],
    )
    assert encoded(record(s=STRING), broken) == ([None, b'{"s":"a"}'], [True, False])
    time = {"type": "string", "format": "date-time"}
    column = pa.array([{"t": 253402300800_000_000}, {"t": 0}]).cast(pa.struct([("t", UTC_MICROS)]))
    assert encoded(record(t=time), column) == ([None, b'{"t":"1970-01-01T00:00:00.000000Z"}'], [True, False])


@pytest.mark.parametrize(
    ("text", "columns", "said"),
    [
        (record(a=INTEGER), pa.struct([("b", pa.int64())]), "column b is no property"),
        ({**record(a=INTEGER), "required": ["a"]}, pa.struct([]), "column a is missing"),
        (record(a=INTEGER), pa.struct([("a", pa.string())]), "column a is string; the schema has integer"),
        (record(a=INTEGER), pa.struct([("a", pa.uint64())]), "column a is uint64"),
        (record(a={"type": "integer", "connect.type": "int16"}), pa.struct([("a", pa.int32())]), "integer (16 bits)"),
        (record(a={"type": "string", "format": "date-time"}), pa.struct([("a", pa.timestamp("us"))]), "with a zone"),
        (record(a=record(b=INTEGER)), pa.struct([("a", pa.struct([("b", pa.float64())]))]), "column a.b is double"),
        (record(a={"type": "array", "items": INTEGER}), pa.struct([("a", pa.list_(pa.bool_()))]), "column a[] is bool"),
        (record(a=INTEGER), pa.struct([("a", pa.int64()), ("a", pa.int64())]), "column a is there twice"),
        (record(a=INTEGER), pa.int64(), "the value is int64"),
    ],
)
def test_columns_that_a_schema_has_no_place_for_are_refused(text: object, columns: pa.DataType, said: str) -> None:
    with pytest.raises(ValueSchemaError) as caught:
        FORMAT.encoder(schema_of(text), columns)
    assert said in str(caught.value)


def test_columns_may_be_narrower_sliced_large_or_in_a_dictionary() -> None:
    text = record(n={"type": "number"}, l={"type": "array", "items": STRING}, m=WITH_MAP["properties"]["m"])  # type: ignore[index]
    kind = pa.struct(
        [
            ("n", pa.int8()),
            ("l", pa.large_list(pa.dictionary(pa.int32(), pa.large_string()))),
            ("m", pa.map_(pa.string(), pa.int64())),
        ]
    )
    rows = [{"n": n, "l": ["a", "b"][: n % 3], "m": [("k", n)] * (n % 2)} for n in range(6)]
    column = pa.array(
        [*rows, None], pa.struct([("n", pa.int8()), ("l", pa.large_list(pa.large_string())), kind.field(2)])
    )
    bodies, bad = encoded(text, column[2:])
    assert [json.loads(one) for one in bodies[:-1] if one] == [{**one, "m": dict(one["m"])} for one in rows[2:]]  # type: ignore[call-overload]
    assert not any(bad)
    assert encoded(STRING, pa.array(["a", "b", None]).dictionary_encode()) == ([b'"a"', b'"b"', None], [False] * 3)


# Compatibility ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("older", "newer", "said"),
    [
        (record(a=INTEGER), record(a=INTEGER, b=STRING), []),
        (record(a=INTEGER), record(a={"type": "number"}), []),
        (record(a=INTEGER), record(a={"type": ["integer", "null"]}), []),
        (record(a=INTEGER, b=STRING), record(a=INTEGER), []),
        (record(a={"enum": ["x"]}), record(a={"enum": ["x", "y"]}), []),
        (record(a=INTEGER), record(a=True), []),
        (
            record(a={"type": "number"}),
            record(a=INTEGER),
            ["a: is number in the older schema, integer in the newer one"],
        ),
        (record(a={"type": ["integer", "null"]}), record(a=INTEGER), ["a: may be null in the older schema only"]),
        (record(a=INTEGER), {**record(a=INTEGER), "required": ["a"]}, ["a: is required by the newer schema only"]),
        (record(a={"enum": ["x", "y"]}), record(a={"enum": ["x"]}), ['a: "y" is allowed by the older schema only']),
        (
            record(a=STRING),
            record(a={"enum": ["x"]}),
            ["a: the older schema allows any value, the newer one only some"],
        ),
        (
            {**record(a=INTEGER, b=STRING), "additionalProperties": False},
            {**record(a=INTEGER), "additionalProperties": False},
            ["b: is no property of the newer schema, which allows no other"],
        ),
        (
            record(a={"type": "array", "items": record(b=INTEGER)}),
            record(a={"type": "array", "items": record(b=STRING)}),
            ["a[].b: is integer in the older schema, string in the newer one"],
        ),
        (
            record(a={"type": "object", "additionalProperties": INTEGER}),
            record(a={"type": "object", "additionalProperties": STRING}),
            ["a.*: is integer in the older schema, string in the newer one"],
        ),
    ],
)
def test_a_newer_schema_has_to_allow_what_the_older_one_does(older: object, newer: object, said: list[str]) -> None:
    assert FORMAT.compatibility(schema_of(older), schema_of(newer)) == said


def test_times_before_1970_are_cut_downwards_and_seconds_that_do_not_fit_are_bad_rows() -> None:
    said = record(
        at={"type": "string", "format": "date-time"},
        ms={"type": "integer", "connect.type": "int64", "title": CONNECT + "Timestamp"},
    )
    for unit, numbers, bodies in (
        ("ns", [-1, 1999], [(b"1969-12-31T23:59:59.999999Z", -1), (b"1970-01-01T00:00:00.000001Z", 0)]),
        ("us", [-1, 1999], [(b"1969-12-31T23:59:59.999999Z", -1), (b"1970-01-01T00:00:00.001999Z", 1)]),
    ):
        times = pa.array(numbers, pa.int64()).view(pa.timestamp(unit, "UTC"))
        column = pa.StructArray.from_arrays([times, times], ["at", "ms"])
        assert encoded(said, column) == ([b'{"at":"%s","ms":%d}' % body for body in bodies], [False, False])
    most = (2**63 - 1) // 1000
    seconds = pa.array([most, most + 1, -most, -most - 1, None], pa.int64()).view(pa.timestamp("s", "UTC"))
    found, bad = encoded(record(ms=said["properties"]["ms"]), pa.StructArray.from_arrays([seconds], ["ms"]))
    assert bad == [False, True, False, True, False]
    assert [found[0], found[2]] == [b'{"ms":%d}' % (sign * most * 1000) for sign in (1, -1)]
    rows = pa.StructArray.from_arrays([seconds], ["ms"])
    encoder = FORMAT.encoder(schema_of(record(ms=said["properties"]["ms"])), rows.type)
    assert encoder.refusal(python_row(rows, 1)) == "a time is beyond the milliseconds that 64 bits hold"
    assert encoder.refusal(python_row(rows, 0)) == "it is good"
