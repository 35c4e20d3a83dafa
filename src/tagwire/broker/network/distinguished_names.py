"""Whom a certificate names, as Java writes it: RFC 2253, the last part first, as in `CN=alice,OU=billing,O=Example`.

Principals and mapping rules are written against that text, so it has to be the same. What has no keyword there is told
by its OID, and its value as the hex of its DER. As X500Principal.getName of OpenJDK. Source: RFC 2253.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

MOST_BYTES: Final = 64 << 10
"""Of a certificate whose name is read."""

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
# By the tag of a text's kind: UTF8String, PrintableString, T61String, IA5String, GeneralString, UniversalString and
# BMPString.
_ENCODINGS: Final = {
    0x0C: "utf-8",
    0x13: "ascii",
    0x14: "latin-1",
    0x16: "ascii",
    0x1B: "ascii",
    0x1C: "utf-32-be",
    0x1E: "utf-16-be",
}
_SEQUENCE, _SET, _OID, _VERSION = 0x30, 0x31, 0x06, 0xA0
_ESCAPED: Final = ',=+<>#;"\\'


def subject_of(certificate: bytes) -> str:
    """The name of whom a certificate (DER) is of.

    Raises:
        ValueError: it is none.
    """
    if len(certificate) > MOST_BYTES:
        raise ValueError(f"a certificate of more than {MOST_BYTES} bytes")
    (outer,) = _elements(certificate, _SEQUENCE)
    signed = next(_elements(outer, _SEQUENCE), b"")
    fields = list(_all(signed))
    if fields and fields[0][0] == _VERSION:
        del fields[0]
    # Serial number, signature, issuer, validity, subject.
    if len(fields) < 5 or fields[4][0] != _SEQUENCE:
        raise ValueError("a certificate without a subject")
    parts = ["+".join(map(_assertion, _elements(part, _SEQUENCE))) for part in _elements(fields[4][1], _SET)]
    return ",".join(reversed(parts))


def _assertion(data: bytes) -> str:
    """One type with its value."""
    (kind, oid), (tag, value) = _all(data)
    if kind != _OID:
        raise ValueError("a name without a type")
    dotted = _dotted(oid)
    keyword = _KEYWORDS.get(dotted)
    if keyword is None or tag not in _ENCODINGS:
        return f"{keyword or dotted}=#{_encoded(tag, value).hex()}"
    try:
        text = value.decode(_ENCODINGS[tag])
    except UnicodeDecodeError:
        raise ValueError("a name that is no text") from None
    return f"{keyword}={_escaped(text)}"


def _escaped(text: str) -> str:
    found = "".join("\\" + character if character in _ESCAPED else character for character in text)
    found = found.replace("\0", "\\00")
    inner = found.strip(" ")
    before = len(found) - len(found.lstrip(" "))
    after = len(found) - before - len(inner)
    return "\\ " * before + inner + "\\ " * after


def _dotted(oid: bytes) -> str:
    numbers: list[int] = []
    number = 0
    for byte in oid:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    if not numbers or oid[-1] & 0x80:
        raise ValueError("an OID that ends in the middle")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _encoded(tag: int, value: bytes) -> bytes:
    size = len(value)
    if size < 0x80:
        return bytes((tag, size)) + value
    width = (size.bit_length() + 7) // 8
    return bytes((tag, 0x80 | width)) + size.to_bytes(width, "big") + value


def _elements(data: bytes, tag: int) -> Iterator[bytes]:
    """The contents of elements that are all of one kind."""
    for found, content in _all(data):
        if found != tag:
            raise ValueError(f"an element of kind {found:#x}, not {tag:#x}")
        yield content


def _all(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The elements of a DER text, each with its tag."""
    at = 0
    while at < len(data):
        if at + 2 > len(data):
            raise ValueError("an element that ends in the middle")
        tag, size = data[at], data[at + 1]
        at += 2
        if size & 0x80:
            width = size & 0x7F
            if not 1 <= width <= 4 or at + width > len(data):
                raise ValueError("an element of unknown size")
            size = int.from_bytes(data[at : at + width], "big")
            at += width
        if at + size > len(data):
            raise ValueError("an element that ends in the middle")
        yield tag, data[at : at + size]
        at += size
