"""A record as a person sees it, and as one line of JSON: what `consume --json` writes and `produce --json` reads.

    {"topic":"flights","partition":3,"offset":88121,"timestamp":1372917600000,"timestamp_type":"CreateTime",
     "key":"UA-1545","value":"...","headers":[{"key":"origin","value":"EWR"}]}

Bytes that are UTF-8 stand as a string, others as `{"base64": "..."}`, null as null. Timestamps are milliseconds since
1970, -1 for none. A line read back gives the same bytes.
"""

from __future__ import annotations

import base64
import binascii
import json
import shutil
import sys
from collections.abc import Callable, Container
from typing import Any, NamedTuple

from tagwire.cli.terminal import cut, printable, readable, safe_json, utc
from tagwire.errors import DecodeError

Headers = list[tuple[str, bytes | None]]

_FIELDS = ("topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers")
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


_KEY_WIDTH = 60
_HEADER_WIDTH = 40
_PIPED_WIDTH = 200


class ReadRecord(NamedTuple):
    """A record that was read. topic and partition are None where nobody knows them: in a file of another name. Keys and
    values with a schema are what `typed_values.to_json` gives."""

    topic: str | None
    partition: int | None
    offset: int
    timestamp: int
    timestamp_type: str
    key: Any
    value: Any
    headers: Headers


class Line(NamedTuple):
    """What one line says of a record to produce. `timestamp` and `partition` are None where the line has none. Keys and
    values are bytes, or have a schema."""

    key: Any
    value: Any
    headers: Headers
    timestamp: int | None
    partition: int | None


def format_line(read: ReadRecord) -> str:
    """One record as JSON, without the line's end."""
    record = read._asdict()
    record["key"], record["value"] = _from_bytes(read.key), _from_bytes(read.value)
    record["headers"] = [{"key": name, "value": _from_bytes(content)} for name, content in read.headers]
    return safe_json(_encode(record))


def lines_for_people(full: bool) -> Callable[[ReadRecord], str]:
    """How a person sees a record: where and when it is, its key and headers, and on a line of its own the value.

    Args:
        full: cut nothing; else long keys, headers and values end in an ellipsis.
    """
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _PIPED_WIDTH
    value_width, key_width, header_width = (None, None, None) if full else (width - 2, _KEY_WIDTH, _HEADER_WIDTH)

    def show(record: ReadRecord) -> str:
        where = "" if record.topic is None else f"{printable(record.topic)}/{record.partition}"
        first = f"{where}@{record.offset}  {utc(record.timestamp)}"
        if record.key is not None:
            first += f"  key={readable(record.key, key_width)}"
        if record.headers:
            headers = (
                f"{cut(printable(str(name)), header_width)}={readable(value, header_width)}"
                for name, value in record.headers
            )
            first += "  headers: " + " ".join(headers)
        return f"{first}\n  {readable(record.value, value_width)}"

    return show


def parse_line(text: bytes, number: int, typed: Container[str] = ()) -> Line:
    """What a line says. Topic, offset and timestamp_type are allowed and mean nothing here: the broker gives them.

    Args:
        number: the line's number, from 1, for errors.
        typed: which of key and value have a schema: they stay what JSON has.

    Raises:
        DecodeError: not such a line; the text names the line and the field.
    """
    try:
        fields = json.loads(text, object_pairs_hook=_each_once)
    except json.JSONDecodeError as error:
        raise _wrong(number, f"not JSON: {error.msg} at column {error.colno}") from None
    except (ValueError, RecursionError) as error:
        raise _wrong(number, f"not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise _wrong(number, "not a JSON object")
    for name in fields:
        if name not in _FIELDS:
            raise _wrong(number, f"unknown field {cut(printable(name), 40)!r}; known are {', '.join(_FIELDS)}")
    if "value" not in fields:
        raise _wrong(number, "no value; a record without one has null")
    timestamp = _whole(fields, "timestamp", -1, 2**63 - 1, number)
    partition = _whole(fields, "partition", 0, 2**31 - 1, number)
    key, value = (
        fields.get(name) if name in typed else _to_bytes(fields.get(name), name, number) for name in ("key", "value")
    )
    return Line(key, value, _headers(fields.get("headers"), number), timestamp, partition)


def _from_bytes(data: Any) -> Any:
    if not isinstance(data, bytes):
        return data
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _to_bytes(value: Any, field: str, number: int) -> bytes | None:
    if value is None:
        return None
    try:
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, dict) and list(value) == ["base64"] and isinstance(value["base64"], str):
            return base64.b64decode(value["base64"], validate=True)
    except UnicodeEncodeError as error:
        raise _wrong(number, f"{field}: not Unicode text: {error.reason}") from None
    except (binascii.Error, ValueError) as error:
        raise _wrong(number, f"{field}: not base64: {error}") from None
    raise _wrong(number, f'{field}: neither text nor null nor {{"base64": "..."}}')


def _headers(value: Any, number: int) -> Headers:
    if value is None:
        return []
    if not isinstance(value, list):
        raise _wrong(number, "headers: not a list")
    headers: Headers = []
    for index, header in enumerate(value):
        field = f"headers[{index}]"
        if not isinstance(header, dict) or set(header) != {"key", "value"} or not isinstance(header["key"], str):
            raise _wrong(number, f'{field}: not {{"key": "...", "value": ...}}')
        _to_bytes(header["key"], f"{field}.key", number)
        headers.append((header["key"], _to_bytes(header["value"], f"{field}.value", number)))
    return headers


def _whole(fields: dict[str, Any], field: str, lowest: int, highest: int, number: int) -> int | None:
    value = fields.get(field)
    if value is None:
        return None
    if type(value) is not int or not lowest <= value <= highest:
        raise _wrong(number, f"{field}: not a whole number from {lowest} to {highest}")
    return value


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a field stands there twice")
    return fields


def _wrong(number: int, why: str) -> DecodeError:
    return DecodeError(why, path=f"line {number}")
