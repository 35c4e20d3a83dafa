"""Header registers: which int key has which name, and the bridge between int-keyed and string-keyed headers.

A register is a TOML file that an organisation keeps (docs/dialects.md#the-key-space):

    space = "local"           # or open, testing, kafka
    scheme = "new"            # or old; new where it is left out

    [[entries]]
    key = 1114000             # TOML also writes it 0x0010FF90
    name = "app.name"
    description = "..."       # this and what follows may be left out
    by = "..."
    url = "..."
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

from tagwire.errors import EncodeError, HeaderRegisterError
from tagwire.kernel.record_objects import is_int_key, with_headers
from tagwire.kernel.record_writing import as_headers, as_pair
from tagwire.records.header_keys import RANGES, RESERVED, SPACES, HeaderKeys, range_of, ranges_of
from tagwire.records.record import HeaderKey, Headers, Record

_TEXTS = ("name", "description", "by", "url")
_DECIMAL = re.compile(r"0|-?[1-9][0-9]{0,9}")


class HeaderEntry(NamedTuple):
    """One registered header. `source` is where it stands, for errors: file and entry."""

    key: int
    name: str
    description: str = ""
    by: str = ""
    url: str = ""
    source: str = "Kafka's own register"


KAFKA = (
    HeaderEntry(HeaderKeys.CLIENT_ID, "client.id", "who produced the record", "Apache Kafka"),
    HeaderEntry(HeaderKeys.CLUSTER_ID, "cluster.id", "the cluster that the record first came to", "Apache Kafka"),
    HeaderEntry(HeaderKeys.CORRELATION_ID, "correlation.id", "the request that the record responds to", "Apache Kafka"),
)
"""The open-source register; part of every `HeaderRegister`."""


class HeaderRegister:
    """Names of int header keys: Kafka's own, and those of the registers it was made of.

        register = HeaderRegister.load("headers.toml")
        register.key_of("app.name")                              # 1114000
        register.to_strings([(1114000, b"ig"), (7, b"x")])       # (("app.name", b"ig"), ("7", b"x"))

    Args:
        entries: what is registered beside Kafka's own. An entry may be there twice if it says the same key and name.
        scheme: of the key space, "new" or "old".
        name: what errors call the register; of a loaded one its files.

    Raises:
        HeaderRegisterError: two entries share a key or a name; a name reads as a number.
        ConfigError: an unknown scheme.
    """

    def __init__(self, entries: Iterable[HeaderEntry] = (), *, scheme: str = "new", name: str = "") -> None:
        ranges_of(scheme)
        self.scheme = scheme
        self.name = name or "the register"
        self._by_key: dict[int, HeaderEntry] = {}
        self._by_name: dict[str, HeaderEntry] = {}
        problems = []
        for entry in (*KAFKA, *entries):
            known = self._by_key.get(entry.key)
            if known is not None and known.name == entry.name:
                continue
            wrong = _entry_problems(entry) + _taken(entry, self._by_key, self._by_name)
            problems += wrong
            if not wrong:
                self._by_key[entry.key] = self._by_name[entry.name] = entry
        if problems:
            raise HeaderRegisterError(problems)

    @classmethod
    def load(cls, *paths: str | Path) -> Self:
        """The registers in these files as one.

        Raises:
            HeaderRegisterError: with everything that is wrong in them: TOML, fields, keys that are reserved or outside
                the register's space, keys and names that are there twice, registers of different schemes.
            OSError: a file cannot be read.
        """
        problems: list[str] = []
        entries: list[HeaderEntry] = []
        schemes: dict[str, str] = {}
        for path in paths:
            scheme, found, wrong = _read(Path(path))
            problems += wrong
            entries += found
            schemes.setdefault(scheme, str(path))
        if len(schemes) > 1:
            problems.append("; ".join(f"{path}: its scheme is {scheme}" for scheme, path in schemes.items()))
        try:
            register = cls(entries, scheme=next(iter(schemes), "new"), name=", ".join(map(str, paths)))
        except HeaderRegisterError as error:
            problems += error.problems
        if problems:
            raise HeaderRegisterError(problems)
        return register

    def key_of(self, name: str) -> int | None:
        """The key registered under `name`; None where there is none."""
        entry = self._by_name.get(name)
        return None if entry is None else entry.key

    def name_of(self, key: int) -> str | None:
        """The name registered for `key`; None where there is none."""
        entry = self._by_key.get(key)
        return None if entry is None else entry.name

    def spelled(self, key: int) -> str:
        """The string key that an int key is bridged to: its name, or where it has none its decimal number."""
        return self.name_of(key) or str(key)

    def key_as_text(self, decimal: bytes) -> str:
        """The same for the decimal number of a key."""
        return self.spelled(int(decimal))

    def __iter__(self) -> Iterator[HeaderEntry]:
        """Every entry, by key."""
        return iter(sorted(self._by_key.values()))

    def __len__(self) -> int:
        return len(self._by_key)

    def to_strings(self, headers: Headers) -> tuple[tuple[str, bytes | None], ...]:
        """Headers for record batches: an int key by its name, an unregistered one as its decimal number."""
        return tuple([(key if isinstance(key, str) else self.spelled(key), value) for key, value in headers])

    def to_ints(self, headers: Headers, *, of: str = "") -> tuple[tuple[int, bytes], ...]:
        """Headers for the int-headers format, in the order given: a string key by its registered key or as the
        decimal number it is.

        Args:
            of: what the headers belong to, for the error, such as "record at offset 5".

        Raises:
            EncodeError: a key is neither registered nor a decimal 32-bit integer, or stands there twice, however
                spelled; a value is null.
        """
        spelled: dict[int, HeaderKey] = {}
        found = []
        for pair in as_headers(headers, of or "a record"):
            key, value = as_pair(pair, f"{of}: " if of else "")
            number = key if is_int_key(key) else self._number_of(key)
            if number is None:
                raise _unbridged(of, key, f"is neither in {self.name} nor a decimal 32-bit integer")
            if number in spelled:
                beside = "" if spelled[number] == key else f", as {spelled[number]!r}"
                raise _unbridged(of, key, f"stands there twice{beside}")
            if value is None:
                raise _unbridged(of, key, "is null, which int-keyed headers never are")
            spelled[number] = key
            found.append((number, value))
        return tuple(found)

    def record_to_strings(self, record: Record) -> Record:
        """`record` with the headers of `to_strings`."""
        return with_headers(record, self.to_strings(record.headers))

    def record_to_ints(self, record: Record, position: int | None = None) -> Record:
        """`record` with the headers of `to_ints`. Raises EncodeError naming it by its offset or else by `position`,
        its number among the records that are written."""
        of = f"record at offset {record.offset}" if position is None or record.offset >= 0 else f"record {position}"
        return with_headers(record, self.to_ints(record.headers, of=of))

    def _number_of(self, key: object) -> int | None:
        if not isinstance(key, str):
            return None
        number = self.key_of(key)
        return decimal_key(key) if number is None else number


def decimal_key(text: str) -> int | None:
    """The int key that `text` spells as `str` would; None where it spells none."""
    number = int(text) if _DECIMAL.fullmatch(text) else None
    return number if is_int_key(number) else None


def _unbridged(of: str, key: object, why: str) -> EncodeError:
    return EncodeError(f"{of}{': ' if of else ''}header {key!r} {why}")


def _taken(entry: HeaderEntry, by_key: dict[int, HeaderEntry], by_name: dict[str, HeaderEntry]) -> list[str]:
    problems = []
    if entry.key in by_key:
        taken = by_key[entry.key]
        problems.append(f"{entry.source}: key {entry.key} is already {taken.name!r} in {taken.source}")
    if entry.name in by_name:
        taken = by_name[entry.name]
        problems.append(f"{entry.source}: name {entry.name!r} is already key {taken.key} in {taken.source}")
    return problems


def _entry_problems(entry: HeaderEntry) -> list[str]:
    if not is_int_key(entry.key):
        return [f"{entry.source}: key {entry.key!r} is not a 32-bit integer"]
    if not isinstance(entry.name, str):
        return [f"{entry.source}: name {entry.name!r} is not a text"]
    if not entry.name:
        return [f"{entry.source}: the name is empty"]
    if decimal_key(entry.name) is not None:
        return [f"{entry.source}: name {entry.name!r} reads as a key"]
    return []


def _read(path: Path) -> tuple[str, list[HeaderEntry], list[str]]:
    """Scheme, sound entries and problems of one file."""
    import tomllib

    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        return "new", [], [f"{path}: not TOML: {error}"]
    problems = [f"{path}: unknown key {name!r}" for name in sorted(document.keys() - {"space", "scheme", "entries"})]
    space, scheme = document.get("space"), document.get("scheme", "new")
    if space not in SPACES:
        problems.append(f"{path}: space is {space!r}; allowed: {', '.join(SPACES)}")
    known_scheme = isinstance(scheme, str) and scheme in RANGES
    if not known_scheme:
        problems.append(f"{path}: scheme is {scheme!r}; allowed: {', '.join(RANGES)}")
    rows = document.get("entries", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return "new", [], [*problems, f"{path}: entries is not a list of tables, [[entries]]"]
    entries: list[HeaderEntry] = []
    by_key: dict[int, HeaderEntry] = {}
    by_name: dict[str, HeaderEntry] = {}
    for number, row in enumerate(rows):
        source = f"{path}, entries[{number}]"
        wrong = _row_problems(row, source)
        if not wrong:
            entry = HeaderEntry(**row, source=source)
            wrong = _entry_problems(entry)
            if space in SPACES and known_scheme and not wrong:
                wrong = _space_problems(entry, space, scheme)
            wrong += _taken(entry, by_key, by_name)
            by_key.setdefault(entry.key, entry)
            by_name.setdefault(entry.name, entry)
            if not wrong:
                entries.append(entry)
        problems += wrong
    return scheme if known_scheme else "new", entries, problems


def _row_problems(row: dict[str, Any], source: str) -> list[str]:
    problems = [f"{source}: unknown field {name!r}" for name in sorted(row.keys() - {"key", *_TEXTS})]
    problems += [f"{source}: {name} is missing" for name in ("key", "name") if name not in row]
    problems += [f"{source}: {name} is not text" for name in _TEXTS if not isinstance(row.get(name, ""), str)]
    if not isinstance(row.get("key", 0), int):
        problems.append(f"{source}: key {row['key']!r} is not a 32-bit integer")
    return problems


def _space_problems(entry: HeaderEntry, space: str, scheme: str) -> list[str]:
    found = range_of(entry.key, scheme)
    if found.space == RESERVED:
        return [f"{entry.source}: key {entry.key} of {entry.name!r} is reserved"]
    if found.space != space:
        return [f"{entry.source}: key {entry.key} of {entry.name!r} is in the {found.space} space, not {space}"]
    return []
