"""Kafka's JSON form of a message, both ways (docs/wire-format.md#the-json-form).

Keys are the spec's names with the first letter in lower case; uuids are url-safe base64, bytes standard base64; tagged
fields at their default are left out, and so are unknown tags. Unlike Kafka's reader, a missing key means the default;
an unknown key is an error.
"""

from __future__ import annotations

import base64
import binascii
import math
import uuid
from collections.abc import Mapping
from typing import Any, Final

from tagwire.errors import DecodeError, EncodeError, UnsupportedVersionError
from tagwire.spec import Absent, Field, Message, Struct
from tagwire.spec.model import INTEGER_RANGES

PYTHON_TYPES: Final[Mapping[str, Any]] = {
    "bool": bool,
    "float64": float | int,
    "uuid": uuid.UUID,
    "string": str,
    "bytes": bytes | bytearray | memoryview,
    "records": bytes | bytearray | memoryview,
}


_NO_NUMBERS: Final = ("NaN", "Infinity", "-Infinity")
_NOT_SET: Final = object()


def to_json(message: Message, value: Any, version: int) -> dict[str, Any]:
    """`value`, an object of the message's class, as Kafka's JSON form at `version`.

    Raises:
        EncodeError: a field holds the wrong type, a number out of its range, or null where it may not.
        UnsupportedVersionError: a field that this version cannot carry is set, or a struct that it does not have.
    """
    return _write_struct(message.root, value, version, f"{message.name} v{version}, ")


def from_json(message: Message, doc: object, version: int, classes: Mapping[str, type]) -> Any:
    """The object that `doc` describes at `version`.

    Raises:
        DecodeError: with the path of the key that is unknown or holds the wrong thing.
        UnsupportedVersionError: a struct is there that this version does not have.
    """
    return _read_struct(message.root, doc, version, classes, message.name)


def _write_struct(struct: Struct, value: Any, version: int, path: str) -> dict[str, Any]:
    doc: dict[str, Any] = {}
    _check_version(struct, version, path.rstrip("., "))
    for field in struct.fields:
        here = path + field.attribute
        try:
            item = getattr(value, field.attribute)
        except AttributeError:
            raise EncodeError(f"{here}: is not set") from None
        if version not in field.versions:
            if not field.ignorable and not is_default(field, item):
                raise UnsupportedVersionError(
                    f"{here} is not at its default, and exists only in versions {field.versions}"
                )
        elif not (field.is_tagged(version) and is_default(field, item)):
            doc[field.json_name] = _write(field, item, version, here)
    return doc


def _check_version(struct: Struct, version: int, path: str) -> None:
    """A struct may exist in fewer versions than the field that holds it."""
    if version not in struct.versions:
        raise UnsupportedVersionError(f"{path}: the struct {struct.name} exists only in versions {struct.versions}")


def is_default(field: Field, value: Any) -> bool:
    """Whether `value` is the default of `field`, as docs/wire-format.md#absent-fields compares."""
    if field.default is Absent.EMPTY_ARRAY:
        return isinstance(value, list | tuple) and len(value) == 0
    if field.default is Absent.STRUCT:
        struct = field.struct
        return (
            struct is not None
            and type(value).__name__ == struct.name
            and not getattr(value, "_unknown_tags", None)
            and all(is_default(each, getattr(value, each.attribute, _NOT_SET)) for each in struct.fields)
        )
    if value is field.default:  # NaN is not equal to itself
        return True
    return value is not None and field.default is not None and bool(value == field.default)


def _write(field: Field, value: Any, version: int, path: str) -> Any:
    if value is None:
        if version not in field.nullable_versions:
            raise EncodeError(f"{path}: cannot be null")
        return None
    if not field.type.is_array:
        return _write_element(field, value, version, path)
    if not isinstance(value, list | tuple):
        raise EncodeError(f"{path}: needs a list, not {type(value).__name__}")
    return [_write_element(field, item, version, f"{path}[{i}]") for i, item in enumerate(value)]


def _write_element(field: Field, value: Any, version: int, path: str) -> Any:
    kind = field.type.element
    given = type(value).__name__
    if field.struct is not None:
        if given != field.struct.name:
            raise EncodeError(f"{path}: needs a {field.struct.name}, not {given}")
        return _write_struct(field.struct, value, version, f"{path}.")
    if not isinstance(value, PYTHON_TYPES.get(kind, int)) or (isinstance(value, bool) and kind != "bool"):
        raise EncodeError(f"{path}: type {kind} cannot be written from {given}")
    if kind in INTEGER_RANGES:
        lowest, highest = INTEGER_RANGES[kind]
        if not lowest <= value <= highest:
            raise EncodeError(f"{path}: is out of the range of {kind}: {lowest} to {highest}")
    try:
        return _as_json(kind, value)
    except (ValueError, OverflowError) as error:  # a memoryview that was released, an int beyond every float
        raise EncodeError(f"{path}: {error}") from None


def _as_json(kind: str, value: Any) -> Any:
    if kind == "uuid":
        return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode("ascii")
    if kind in ("bytes", "records"):
        return base64.b64encode(bytes(value)).decode("ascii")
    if kind == "float64":
        return json_number(float(value))
    return value


def json_number(value: float) -> float | str:
    """A number as JSON can have it: what is none is its name, as Java's Jackson writes it."""
    if math.isfinite(value):
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def _read_struct(struct: Struct, doc: object, version: int, classes: Mapping[str, type], path: str) -> Any:
    if not isinstance(doc, Mapping):
        raise DecodeError(f"needs an object, not {_named(doc)}", path=path)
    _check_version(struct, version, path)
    fields = {field.json_name: field for field in struct.fields if version in field.versions}
    values: dict[str, Any] = {}
    for key, item in doc.items():
        field = fields.get(key)
        if field is None:
            raise DecodeError(f"no such key at version {version}", path=f"{path}.{key}")
        values[field.attribute] = _read(field, item, version, classes, f"{path}.{key}")
    return classes[struct.name](**values)


def _read(field: Field, item: object, version: int, classes: Mapping[str, type], path: str) -> Any:
    if item is None:
        if version not in field.nullable_versions and field.type.element != "records":
            raise DecodeError("cannot be null", path=path)
        return None
    if not field.type.is_array:
        return _read_element(field, item, version, classes, path)
    if not isinstance(item, list):
        raise DecodeError(f"needs an array, not {_named(item)}", path=path)
    return [_read_element(field, each, version, classes, f"{path}[{i}]") for i, each in enumerate(item)]


def _read_element(field: Field, item: object, version: int, classes: Mapping[str, type], path: str) -> Any:
    if field.struct is not None:
        return _read_struct(field.struct, item, version, classes, path)
    kind = field.type.element
    if kind == "bool":
        return _of_type(item, bool, "true or false", path)
    if kind == "float64":
        if isinstance(item, str) and item in _NO_NUMBERS:
            return float(item)
        if isinstance(item, bool) or not isinstance(item, float | int):
            raise DecodeError(f"needs a number, not {_named(item)}", path=path)
        try:
            return float(item)
        except OverflowError:
            raise DecodeError("is out of the range of a float64", path=path) from None
    if kind == "string":
        return _of_type(item, str, "text", path)
    if kind == "uuid":
        raw = _base64(item, path, url_safe=True)
        if len(raw) != 16:
            raise DecodeError("needs 22 characters of url-safe base64", path=path)
        return uuid.UUID(bytes=raw)
    if kind in ("bytes", "records"):
        return _base64(item, path, url_safe=False)
    if isinstance(item, bool) or not isinstance(item, int):
        raise DecodeError(f"needs a whole number, not {_named(item)}", path=path)
    lowest, highest = INTEGER_RANGES[kind]
    if not lowest <= item <= highest:
        raise DecodeError(f"is out of the range of {kind}: {lowest} to {highest}", path=path)
    return item


def _of_type(item: object, kind: type, what: str, path: str) -> Any:
    if not isinstance(item, kind):
        raise DecodeError(f"needs {what}, not {_named(item)}", path=path)
    return item


def _named(item: object) -> str:
    """What an error says of a wrong value: its kind in JSON's words, never its content, which may be secret."""
    if item is None:
        return "null"
    kinds: dict[type, str] = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "an array"}
    return kinds.get(type(item), "an object" if isinstance(item, Mapping) else type(item).__name__)


def _base64(item: object, path: str, *, url_safe: bool) -> bytes:
    if not isinstance(item, str):
        raise DecodeError(f"needs base64 text, not {_named(item)}", path=path)
    text = item + "=" * (-len(item) % 4)
    try:
        return base64.b64decode(text, altchars=b"-_" if url_safe else None, validate=True)
    except (binascii.Error, ValueError) as error:
        raise DecodeError(f"not base64: {error}", path=path) from None
