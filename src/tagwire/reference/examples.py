"""An example of every version of every message, made by our own encoder: the same values in every run.

Values are chosen by the path of a field and not by the version, so that two versions of a message differ in what the
versions differ in.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final
from uuid import UUID

from tagwire.codec import message_class
from tagwire.codec.annotate import Span, annotate
from tagwire.codec.annotate_records import annotate_records
from tagwire.codec.classes import MessageObject
from tagwire.records import Record, write
from tagwire.spec import Field, Message, Struct
from tagwire.spec.model import INTEGER_RANGES

_BY_ENTITY: Final[dict[str, Any]] = {
    "topicName": "orders",
    "groupId": "billing",
    "transactionalId": "payments-1",
    "producerId": 4001,
    "brokerId": 1,
}
_BY_NAME: Final[dict[str, Any]] = {
    "ErrorCode": 0,
    "ThrottleTimeMs": 0,
    "Host": "kafka-1.example",
    "Port": 9092,
    "Partition": 3,
    "PartitionIndex": 3,
    "ClientSoftwareName": "apache-kafka-java",
    "ClientSoftwareVersion": "4.4.0",
    "ClientId": "console",
    "Mechanism": "SCRAM-SHA-512",
    "ProtocolType": "consumer",
    "ClusterId": "Some-Cluster_Id-0123AB",
    "ClientHost": "/192.0.2.7",
    "Rack": "zone-a",
    "RackId": "zone-a",
    "Timestamp": 1_372_926_600_000,
    "SecurityProtocol": 0,
}
_RECORDS_AT: Final = 1_372_926_600_000
_FORMATS: Final = {"ProduceRequest": (2, 3), "FetchResponse": (2, 4)}
"""{message: the first versions with records of magic 1 and 2}."""


@dataclass(frozen=True, slots=True)
class Example:
    """A message of one version, encoded.

    Attributes:
        message: the object.
        spans: what each byte means, in order and without gaps.
    """

    version: int
    message: MessageObject
    data: bytes
    spans: tuple[Span, ...]


def example(message: Message, version: int) -> Example:
    """The example of one version of a message: every field set, arrays of one struct or two values.

    Raises:
        UnsupportedVersionError: the message has no such version.
    """
    made = _Maker(message, version).object(message.root, "")
    data = made.encode(version)
    return Example(version, made, data, tuple(_with_records(annotate(message, data, version), message, version)))


def _with_records(spans: Iterable[Span], message: Message, version: int) -> Iterator[Span]:
    """The spans, a field of records as its length and what is in its batches."""
    for span in spans:
        if span.type != "records":
            yield span
            continue
        inner = _records(_magic(message, version))
        start = span.end - len(inner)
        yield replace(span, end=start, value=f"{len(inner)} bytes")
        yield from behind(list(annotate_records(inner)), start, f"{span.path}.")


def behind(spans: Sequence[Span], count: int, prefix: str) -> list[Span]:
    """The same spans in an input with `count` bytes more before it, their paths under `prefix`."""
    return [
        replace(span, start=span.start + count, end=span.end + count, path=f"{prefix}{span.path}") for span in spans
    ]


class _Maker:
    def __init__(self, message: Message, version: int) -> None:
        self.message = message
        self.version = version
        self.kind = message_class(message)

    def object(self, struct: Struct, path: str) -> Any:
        kind: Any = self.kind if struct is self.message.root else getattr(self.kind, struct.name)
        here = [field for field in struct.fields if self.version in field.versions]
        return kind(**{field.attribute: self.value(field, f"{path}{field.name}") for field in here})

    def value(self, field: Field, path: str) -> Any:
        if not field.type.is_array:
            return self.element(field, path)
        count = 1 if field.struct is not None else 2
        return [self.element(field, f"{path}[{i}]" if i else path) for i in range(count)]

    def element(self, field: Field, path: str) -> Any:
        if field.struct is not None:
            return self.object(field.struct, f"{path}.")
        if field.type.element == "records":
            return _records(_magic(self.message, self.version))
        return primitive(field, random.Random(f"{self.message.name} {path}"))


def primitive(field: Field, chance: random.Random) -> Any:
    """A value of a field, or of one of its elements, that says by itself what it may be."""
    kind = field.type.element
    named = _BY_ENTITY.get(field.entity_type, _BY_NAME.get(field.name))
    if named is not None and isinstance(named, str) == (kind == "string"):
        return named
    if kind in INTEGER_RANGES:
        return _number(field, kind, chance)
    makers: dict[str, Callable[[], Any]] = {
        "bool": lambda: True,
        "float64": lambda: chance.randrange(1, 64) / 4,
        "string": lambda: _word(field.name, chance),
        "bytes": lambda: chance.randbytes(4),
        "uuid": lambda: UUID(int=chance.getrandbits(128), version=4),
    }
    return makers[kind]()


def _number(field: Field, kind: str, chance: random.Random) -> int:
    lowest, highest = INTEGER_RANGES[kind]
    if field.tag is None and isinstance(field.default, int) and field.default > 1:
        return field.default  # in a tag it would not be written
    name = field.name
    if name.endswith("Ms"):
        number = 500 * chance.randrange(1, 60)
    elif "Offset" in name:
        number = chance.randrange(100, 1000)
    elif kind in ("int8", "uint16", "int16"):
        number = chance.randrange(1, 3)
    else:
        number = chance.randrange(1, 20)
    return max(lowest, min(number, highest))


def _word(name: str, chance: random.Random) -> str:
    letters = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("-")
    return f"{letters}-{chance.randrange(1, 10)}"


def _magic(message: Message, version: int) -> int:
    """The format of records in a version: old ones of Produce and Fetch have message sets."""
    lowest = _FORMATS.get(message.name, ())
    return sum(version >= each for each in lowest) if lowest else 2


@cache
def _records(magic: int) -> bytes:
    """One record with a key, in a batch or message set, and a header where the format has room for it."""
    headers = [("trace-id", b"01J2")] if magic == 2 else []
    return bytes(write([Record(key=b"k", value=b"v", timestamp=_RECORDS_AT, headers=headers)], magic=magic))
