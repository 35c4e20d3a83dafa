"""What a field's `default` may say, and what it means (docs/wire-format.md#defaults)."""

from __future__ import annotations

import base64
import re
import uuid
from typing import Any

from tagwire.spec.model import INTEGER_RANGES, Absent, FieldType

ZERO_UUID = uuid.UUID(int=0)
_DECIMAL = re.compile(r"[+-]?\d+", re.ASCII)
_OCTAL = re.compile(r"[+-]?0\d+", re.ASCII)
_FLOAT = re.compile(r"[+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?)", re.ASCII)
"""What Java's Double.parseDouble takes, but for its hexadecimal form."""
_HEX = re.compile(r"0x[0-9a-fA-F]+", re.ASCII)
_UUID = re.compile(r"[A-Za-z0-9_-]{22}(==)?", re.ASCII)
MAX_STRING_BYTES = 32767


def implicit_default(kind: FieldType) -> Any:
    """The default of a field that states none."""
    if kind.is_array:
        return Absent.EMPTY_ARRAY
    if kind.is_struct:
        return Absent.STRUCT
    if kind.element in INTEGER_RANGES:
        return 0
    return {"bool": False, "float64": 0.0, "uuid": ZERO_UUID, "string": "", "bytes": b"", "records": None}[kind.element]


def parse_default(text: str, kind: FieldType) -> Any:
    """The value `text` means for a field of type `kind`; the text `null` means None. ValueError says what is legal."""
    if kind.element == "records":
        return None
    if text == "" and (kind.is_array or kind.element != "string"):
        return implicit_default(kind)
    if kind.is_nullable_kind and text == "null":
        return None
    if kind.is_array or kind.is_struct or kind.element == "bytes":
        raise ValueError(f"the default of a {kind} can only be null, not {text!r}")
    if kind.element == "string":
        return _string(text)
    if kind.element in INTEGER_RANGES:
        return _integer(text, kind.element)
    if kind.element == "bool":
        if text.lower() not in ("true", "false"):
            raise ValueError(f"{text!r} is no bool: write true or false")
        return text.lower() == "true"
    if kind.element == "float64":
        if not _FLOAT.fullmatch(text.strip()):
            raise ValueError(f"{text!r} is no float64")
        return float(text.strip().rstrip("fFdD"))
    return _uuid(text)


def _string(text: str) -> str:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise ValueError(f"{text!r} cannot be UTF-8") from None
    if size > MAX_STRING_BYTES:
        raise ValueError(f"a text of {size} bytes: the limit is {MAX_STRING_BYTES}")
    return text


def _integer(text: str, kind: str) -> int:
    lowest, highest = INTEGER_RANGES[kind]
    if _HEX.fullmatch(text):
        value = int(text, 16)
    elif _OCTAL.fullmatch(text):
        raise ValueError(f"{text!r} begins with 0: the classes of Kafka's generator read it as an octal number")
    elif _DECIMAL.fullmatch(text):
        value = int(text)
    else:
        raise ValueError(f"{text!r} is no {kind}: write a decimal number or 0x and hexadecimal digits")
    if not lowest <= value <= highest:
        raise ValueError(f"{text} is out of the range of {kind}: {lowest} to {highest}")
    return value


def _uuid(text: str) -> uuid.UUID:
    if not _UUID.fullmatch(text):
        raise ValueError(f"{text!r} is no uuid: write 22 characters of url-safe base64")
    return uuid.UUID(bytes=base64.urlsafe_b64decode(text[:22] + "=="))
