"""Schemas as people write them, `a int, b array<struct<c:string>>`, read without Java: a source has none at hand."""

from __future__ import annotations

import re

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tagwire.errors import ConfigError

_TYPES: dict[str, DataType] = {
    "boolean": BooleanType(),
    "tinyint": ByteType(),
    "byte": ByteType(),
    "smallint": ShortType(),
    "short": ShortType(),
    "int": IntegerType(),
    "integer": IntegerType(),
    "bigint": LongType(),
    "long": LongType(),
    "float": FloatType(),
    "real": FloatType(),
    "double": DoubleType(),
    "string": StringType(),
    "binary": BinaryType(),
    "date": DateType(),
    "timestamp": TimestampType(),
    "timestamp_ltz": TimestampType(),
    "decimal": DecimalType(10, 0),
    "dec": DecimalType(10, 0),
    "numeric": DecimalType(10, 0),
}
_DECIMALS = frozenset(name for name, kind in _TYPES.items() if isinstance(kind, DecimalType))
_TOKEN = re.compile(r"\s*(`(?:[^`]|``)+`|\w+|[<>(),:])")
_MOST_DEEP = 50


def parse_schema(text: str) -> StructType:
    """The schema that `text` writes down.

    Raises:
        ConfigError: it is none, or has a type that is not one of those above, an array or a struct.
    """
    parser = _Parser(text)
    fields = parser.fields(0)
    parser.expect("")
    return StructType(fields)


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        at = 0
        while at < len(text.rstrip()):
            found = _TOKEN.match(text, at)
            if found is None:
                raise ConfigError(f"{text[at:].strip()[:40]!r} is not part of a schema")
            self.tokens.append(found[1])
            at = found.end()
        self.tokens.append("")
        self.at = 0

    def fields(self, depth: int) -> list[StructField]:
        """Fields, separated by commas."""
        found: list[StructField] = []
        while True:
            name = self.take()
            if name in ("", "<", ">", "(", ")", ",", ":"):
                raise ConfigError(f"a field's name is missing before {name or 'the end'!r}")
            if self.tokens[self.at] == ":":
                self.at += 1
            name = name[1:-1].replace("``", "`") if name.startswith("`") else name
            kind = self.type(depth)
            found.append(StructField(name, kind, nullable=not self._not_null()))
            if self.tokens[self.at] != ",":
                return found
            self.at += 1

    def type(self, depth: int) -> DataType:
        name = self.take().lower()
        if depth > _MOST_DEEP:
            raise ConfigError(f"types stand more than {_MOST_DEEP} deep in one another")
        if name == "array":
            self.expect("<")
            kind: DataType = ArrayType(self.type(depth + 1))
            self.expect(">")
            return kind
        if name == "struct":
            self.expect("<")
            kind = StructType(self.fields(depth + 1))
            self.expect(">")
            return kind
        if name in _DECIMALS and self.tokens[self.at] == "(":
            self.at += 1
            precision, scale = self._number(), 0
            if self.tokens[self.at] == ",":
                self.at += 1
                scale = self._number()
            self.expect(")")
            if not precision or scale > precision:
                wrong = "more digits behind the point than digits" if precision else "no digits"
                raise ConfigError(f"decimal({precision},{scale}) has {wrong}")
            return DecimalType(precision, scale)
        if name not in _TYPES:
            raise ConfigError(f"there is no type {name!r}; there are {', '.join(_TYPES)}, array<> and struct<>")
        return _TYPES[name]

    def take(self) -> str:
        """The next token."""
        token = self.tokens[self.at]
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def expect(self, token: str) -> None:
        """Passes over `token`. Raises ConfigError for another one."""
        found = self.take()
        if found != token:
            raise ConfigError(f"{token or 'the end'!r} is missing before {found or 'the end'!r}")

    def _not_null(self) -> bool:
        """Whether these words stand behind a type; passes over them."""
        if self.tokens[self.at].lower() != "not":
            return False
        self.at += 1
        if self.take().lower() != "null":
            raise ConfigError("'null' is missing behind 'not'")
        return True

    def _number(self) -> int:
        text = self.take()
        if not text.isdecimal() or int(text) > 38:
            raise ConfigError(f"{text!r} is no number of digits up to 38")
        return int(text)
