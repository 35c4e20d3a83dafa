"""Values with a schema as JSON, and back: what `consume --json` writes of them and `produce` reads.

Bytes that are UTF-8 stand as a string, others as `{"base64": "..."}`; dates and times as ISO 8601 has them, those with
a zone in UTC; intervals as `2 days, 12:30:00`; decimals as strings; NaN and infinities as strings; maps as objects
where their keys are strings, and as lists of pairs elsewhere.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from tagwire.cli.record_input import Read
from tagwire.cli.record_lines import Line
from tagwire.codec.json_form import json_number
from tagwire.errors import DecodeError

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN = 40
_INTERVAL = re.compile(r"(?:(-?[0-9]{1,9}) days?, )?([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?")
"""As `str` has a timedelta."""


def plain_values(column: pa.Array) -> list[Any]:
    """Python's objects for a column: dicts for structs and for maps whose keys are text, once each; lists of pairs for
    other maps.

    Raises:
        OverflowError, ValueError: a time that no calendar of Python's has.
    """
    if _has_other_keys(column.type):
        return [_by_keys(value, column.type) for value in column.to_pylist()]
    try:
        return list(column.to_pylist(maps_as_pydicts="strict"))
    except KeyError:  # a key that is there twice
        return list(column.to_pylist())


def _has_other_keys(kind: pa.DataType) -> bool:
    """Whether there is a map, at any depth, whose keys are no text."""
    import pyarrow as pa

    types = pa.types
    if types.is_map(kind):
        return not types.is_string(kind.key_type) or _has_other_keys(kind.item_type)
    if types.is_struct(kind):
        return any(_has_other_keys(field.type) for field in kind)
    return bool(types.is_nested(kind)) and _has_other_keys(kind.value_type)


def _by_keys(value: Any, kind: pa.DataType) -> Any:
    """A value with dicts in the place of those lists of pairs whose keys are text."""
    import pyarrow as pa

    types = pa.types
    if value is None or not types.is_nested(kind):
        return value
    if types.is_struct(kind):
        return {field.name: _by_keys(value[field.name], field.type) for field in kind}
    if not types.is_map(kind):
        return [_by_keys(one, kind.value_type) for one in value]
    found = [(_by_keys(key, kind.key_type), _by_keys(one, kind.item_type)) for key, one in value]
    is_object = types.is_string(kind.key_type) and len({name for name, _ in found}) == len(found)
    return dict(found) if is_object else found


def to_json(value: Any) -> Any:
    """A value as `json` takes it."""
    if isinstance(value, dict):
        return {str(name): to_json(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(one) for one in value]
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z" if value.tzinfo else value.isoformat()
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, (Decimal, timedelta)):
        return str(value)
    return json_number(value) if isinstance(value, float) else value


def as_text(value: Any) -> bytes | None:
    """A value as bytes that a person reads: text itself, all else as JSON."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode(errors="replace")
    return json.dumps(to_json(value), ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def numbered(kind: pa.DataType) -> pa.DataType:
    """A type with numbers in the place of dates and times, at any depth. Raises ValueError where it has none."""
    from tagwire.values.python_rows import numbered as of_any

    found = of_any(kind)
    if found == kind:
        raise ValueError(f"{kind} has no times")
    return found


def typed(read: Read, kinds: Mapping[str, pa.DataType], *, is_parsed: bool) -> Read:
    """Lines whose key and value are Python's objects for these types.

    Args:
        kinds: of `key` and `value`, those that have a schema.
        is_parsed: whether `read` gives them as JSON already; otherwise they are its text, or a string's own.
    """

    def read_typed(text: bytes, number: int) -> Line:
        line = read(text, number)
        for which, kind in kinds.items():
            given: Any = getattr(line, which)
            if given is None:
                continue
            try:
                found = given if is_parsed else _parsed(given, kind)
                line = line._replace(**{which: from_json(found, kind)})
            except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
                raise DecodeError(f"{which}: {error}", path=f"line {number}") from None
        return line

    return read_typed


def _parsed(text: bytes, kind: pa.DataType) -> Any:
    import pyarrow as pa

    if pa.types.is_string(kind):
        return text.decode()
    if pa.types.is_binary(kind):
        return text
    return json.loads(text)


def from_json(value: Any, kind: pa.DataType) -> Any:
    """JSON as `pyarrow.array` takes it for a type. Raises ValueError, or TypeError, for what it cannot be."""
    import pyarrow as pa

    if value is None:
        return None
    types = pa.types
    if types.is_struct(kind):
        if not isinstance(value, dict):
            raise ValueError(f"{_shown(value)} is no object")
        return {
            name: from_json(one, kind.field(name).type) if kind.get_field_index(name) >= 0 else one
            for name, one in value.items()
        }
    if types.is_list(kind) or types.is_large_list(kind):
        if not isinstance(value, list):
            raise ValueError(f"{_shown(value)} is no list")
        return [from_json(one, kind.value_type) for one in value]
    if types.is_map(kind):
        pairs = list(value.items()) if isinstance(value, dict) else value
        if not isinstance(pairs, list) or not all(isinstance(one, (list, tuple)) and len(one) == 2 for one in pairs):
            raise ValueError(f"{_shown(value)} is no object, and no list of pairs")
        return [(from_json(key, kind.key_type), from_json(one, kind.item_type)) for key, one in pairs]
    if types.is_binary(kind) or types.is_fixed_size_binary(kind) or types.is_large_binary(kind):
        return _bytes(value)
    if isinstance(value, str):
        return _from_text(value, kind)
    if types.is_decimal(kind):
        return Decimal(repr(value) if isinstance(value, float) else value)
    if types.is_timestamp(kind) and kind.unit == "ms" and type(value) is int:
        return value * 1000  # a timestamp's column has microseconds, whatever its schema counts
    return value


def _from_text(text: str, kind: pa.DataType) -> Any:
    import pyarrow as pa

    types = pa.types
    if types.is_timestamp(kind):
        found = datetime.fromisoformat(text)
        return found.replace(tzinfo=UTC) if kind.tz is not None and found.tzinfo is None else found
    if types.is_date(kind):
        return date.fromisoformat(text)
    if types.is_time(kind):
        return time.fromisoformat(text)
    if types.is_decimal(kind):
        try:
            return Decimal(text)
        except InvalidOperation:
            raise ValueError(f"{_shown(text)} is no decimal") from None
    if types.is_floating(kind):
        return float(text)
    if types.is_duration(kind):
        return _interval(text)
    return text


def _interval(text: str) -> timedelta:
    found = _INTERVAL.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:_SHOWN]!r} is no interval, such as 12:30:00 or 2 days, 0:00:00.5")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups()[:4])
    parts = {"hours": hours, "minutes": minutes, "seconds": seconds}
    return timedelta(days=days, microseconds=int((found[5] or "").ljust(6, "0")), **parts)


def _bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and list(value) == ["base64"] and isinstance(value["base64"], str):
        try:
            return base64.b64decode(value["base64"], validate=True)
        except binascii.Error as error:
            raise ValueError(f"not base64: {error}") from None
    raise ValueError(f'{_shown(value)} is neither text nor {{"base64": "..."}}')


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
