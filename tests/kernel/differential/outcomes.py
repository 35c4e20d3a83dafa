"""What becomes of a case: a line for each way of reading or writing it, the same ones for every kind of kernel.

A line is the value, or the error with its text. A fault is what must not be, whatever the kernel: an error that is not
tagwire's, or what was accepted and cannot be written again, or reads differently then.
"""

from __future__ import annotations

import io
import re
import struct
import uuid
from array import array
from collections.abc import Callable, Iterator
from enum import IntEnum
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa

from tagwire import records
from tagwire.capture import Losses
from tagwire.capture.connections import requests_in
from tagwire.codec import MessageObject
from tagwire.codec.classes import Structure
from tagwire.errors import TagwireError
from tagwire.kernel.batch_scan import pass_batches, scan_batches
from tagwire.kernel.leader_epochs import leader_epochs
from tagwire.kernel.number_columns import number_column
from tagwire.kernel.plain_batches import plain_run
from tagwire.kernel.row_groups import count_minutes, group_rows
from tagwire.rpc import CLOSED, NEED_DATA, Connection, Request, Response

from .mutations import Case
from .vectors import class_of

MAX_OFFSET = (1 << 63) - 1
_ADDRESS = re.compile(" at 0x[0-9a-f]+")


class Outcome(NamedTuple):
    """Lines by what was tried, and faults."""

    lines: dict[str, str]
    faults: list[str]


class _Refused(NamedTuple):
    text: str


class Trial:
    """Collects the lines and faults of one case."""

    def __init__(self) -> None:
        self.lines: dict[str, str] = {}
        self.faults: list[str] = []

    def run(self, name: str, action: Callable[[], Any], show: Callable[[Any], str] | None = None) -> Any:
        """What `action` gives; None where it raises, which is then the line."""
        try:
            value = action()
        except TagwireError as error:
            self.lines[name] = _ADDRESS.sub("", f"{type(error).__name__}: {error}")
            return None
        except Exception as error:
            self.lines[name] = _ADDRESS.sub("", f"{type(error).__name__}: {error}")
            self.faults.append(f"{name} raised {type(error).__name__}: {error}")
            return None
        self.lines[name] = (show or shown)(value)
        return value

    def same(self, name: str, one: Any, action: Callable[[], Any]) -> None:
        """A fault, unless `action` gives what is shown as `one`."""
        try:
            other = action()
        except Exception as error:
            self.faults.append(f"{name}: {type(error).__name__}: {error}")
            return
        if shown(one) != shown(other):
            self.faults.append(f"{name}: {shown(one)} became {shown(other)}")


def outcome(case: Case) -> Outcome:
    """What becomes of `case` on the kernels of this process."""
    trial = Trial()
    TRIALS[case.kind](case, trial)
    return Outcome(trial.lines, trial.faults)


def shown(value: Any) -> str:
    """A value in full, its types told apart, the bits of its floats too."""
    if isinstance(value, Structure):
        tags = f", {sorted(value._unknown_tags.items())}" if value._unknown_tags else ""
        fields = ", ".join(f"{name}={shown(getattr(value, name))}" for name in value._fields)
        return f"{type(value).__name__}({fields}{tags})"
    if isinstance(value, float):
        return f"float {struct.pack('>d', value).hex()}"
    if isinstance(value, memoryview):
        return f"view {bytes(value).hex()}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {shown(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}[{', '.join(map(shown, value))}]"
    return repr(value)


# -- messages


def message(case: Case, trial: Trial) -> None:
    spec, version = case.about
    kind, data = class_of(spec), case.data
    strict = trial.run("strict", lambda: kind.decode(data, version))
    lenient = trial.run("lenient", lambda: kind.decode_prefix(data, version, lenient=True))
    if strict is not None:
        written_again(trial, "strict", kind, strict, version)
    if lenient is not None:
        written_again(trial, "lenient", kind, lenient[0], version)
    if case.number % 4 == 0:
        columns(case, trial, kind, version)


def written_again(trial: Trial, name: str, kind: type[MessageObject], read: MessageObject, version: int) -> None:
    written = trial.run(f"{name}, written", lambda: read.encode(version))
    if written is None:
        trial.faults.append(f"{name}: accepted, but cannot be written again: {trial.lines[f'{name}, written']}")
    else:
        trial.same(f"{name}, written and read", read, lambda: kind.decode(written, version))


def columns(case: Case, trial: Trial, kind: type[MessageObject], version: int) -> None:
    for name in ("strict", "lenient"):
        lenient = name == "lenient"
        read = trial.run(
            f"{name} columns", lambda lenient=lenient: kind.to_arrow(case.data, version, lenient=lenient), rows_shown
        )
        line = trial.lines[f"{name} columns"]
        if read is None:
            as_objects = trial.lines[name]
            if line != as_objects and "64 times the memory" not in line and "columns" not in line:
                trial.faults.append(f"{name}: objects {as_objects}, columns {line}")
            continue
        if "Error: " in trial.lines[name][:60] and "64 times the memory" not in trial.lines[name]:
            trial.faults.append(f"{name}: objects {trial.lines[name]}, columns {line}")
        written = trial.run(f"{name} columns, written", lambda read=read: kind.encode_many(read, version)[0].as_py())
        if written is None:
            trial.faults.append(f"{name}: columns cannot be written: {trial.lines[f'{name} columns, written']}")
        else:
            trial.same(
                f"{name} columns, written and read",
                read.to_pylist(),
                lambda written=written: kind.to_arrow(written, version).to_pylist(),
            )


def rows_shown(column: pa.Array) -> str:
    return shown(column.to_pylist())


# -- what is changed before it is written


class Odd(IntEnum):
    """An int that is not just an int."""

    NUMBER = 7


class OddText(str):
    """A str that is not just a str."""

    __slots__ = ()


def odd_values(chance: Random) -> Iterator[Callable[[], Any]]:
    for bits in (7, 8, 15, 16, 30, 31, 32, 63, 64):
        for number in ((1 << bits) - 1, 1 << bits, -(1 << bits), -(1 << bits) - 1):
            yield lambda number=number: number
    for text in ("", "é", "\ud800", "a\ud800", "x" * 127, "x" * 128, "€" * 10_922, "x" * 32_767, "x" * 32_768):
        yield lambda text=text: text
    yield lambda: OddText("odd")
    for thing in (0, -1, True, None, 1.5, float("nan"), float("inf"), 10**400, Odd.NUMBER, object, {}, (), (1, 2), {1}):
        yield lambda thing=thing: thing
    for items in ([], [None], [True], [1 << 31], [1, "a"], [1] * 126, [1] * 127, [-(1 << 31)] * 200, [b"x"], ["a"]):
        yield lambda items=items: list(items)
    for data in (b"", b"\0" * 3, b"x" * 200):
        yield lambda data=data: data
        yield lambda data=data: bytearray(data)
        yield lambda data=data: memoryview(data * 2)[::2]
    yield _released
    yield lambda: uuid.UUID(int=0)
    yield lambda: uuid.UUID(int=chance.getrandbits(128))


def _released() -> memoryview:
    view = memoryview(b"gone")
    view.release()
    return view


ODD = list(odd_values(Random("odd")))
ODD_TAGS: tuple[Any, ...] = (
    {},
    {-1: b""},
    {1 << 32: b"x"},
    {70_000: b"x"},
    {900: b"", 5000: b"y" * 200},
    {True: b"x"},
    {"a": b"x"},
    {900: "x"},
    {900: None},
    [1],
    {0: b"x"},
)


def changed_message(case: Case, trial: Trial) -> None:
    spec, version = case.about
    kind, chance = class_of(spec), Random(case.seed)
    value = kind.decode(case.data, version)
    for _ in range(chance.choice((1, 1, 2))):
        target = chance.choice(list(structures(value)))
        if chance.random() < 0.1:
            target._unknown_tags = chance.choice(ODD_TAGS)
        elif target._fields:
            name = chance.choice(target._fields)
            if chance.random() < 0.03:
                if hasattr(target, name):
                    delattr(target, name)
            elif isinstance(items := getattr(target, name, None), list) and items and chance.random() < 0.5:
                at = chance.randrange(len(items))
                items[at] = odd_value(items[at], chance)
            else:
                setattr(target, name, odd_value(getattr(target, name, None), chance))
    if chance.random() < 0.2:
        version = chance.choice(list(kind.valid_versions))
    trial.run("written", lambda: value.encode(version))


def odd_value(held: Any, chance: Random) -> Any:
    """Any odd thing, half of the time one that is of the kind of what it stands for."""
    wanted = chance.random() < 0.5
    for _ in range(10):
        value = chance.choice(ODD)()
        if not wanted or isinstance(value, type(held)):
            return value
    return held


def structures(value: Any) -> Iterator[Structure]:
    """Every struct in a message."""
    if isinstance(value, Structure):
        yield value
        for name in value._fields:
            yield from structures(getattr(value, name, None))
    elif isinstance(value, list):
        for item in value:
            yield from structures(item)


def changed_columns(case: Case, trial: Trial) -> None:
    """Rows of a message, one value of one of them changed, as a column of Python's own types."""
    spec, version = case.about
    kind, chance = class_of(spec), Random(case.seed)
    try:
        rows = kind.to_arrow(case.data, version).to_pylist() * chance.choice((1, 3))
    except TagwireError as error:
        trial.lines["columns"] = str(error)
        return
    at = chance.randrange(len(rows))
    rows[at] = respelled(rows[at], chance)
    try:
        column = pa.array(rows)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        trial.lines["columns"] = "no column"
        return
    trial.run("written", lambda: kind.encode_many(column, version), rows_shown)
    trial.run("written, errors in a column", lambda: kind.encode_many(column, version, errors="column"), rows_shown)


def respelled(value: Any, chance: Random) -> Any:
    """`value` with one thing in it changed."""
    if isinstance(value, dict) and value:
        name = chance.choice(list(value))
        return {**value, name: respelled(value[name], chance)}
    if isinstance(value, list) and value and chance.random() < 0.8:
        at = chance.randrange(len(value))
        return [*value[:at], respelled(value[at], chance), *value[at + 1 :]]
    if chance.random() < 0.3:
        return None
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return chance.choice((value, -1, 1 << 15, 1 << 16, 1 << 31, 1 << 32, -(1 << 31) - 1))
    if isinstance(value, str):
        return chance.choice(("", "é", "x" * 200, "x" * 32_768))
    if isinstance(value, bytes):
        return chance.choice((b"", b"\xff", b"x" * 16, b"x" * 300))
    return value


# -- records


def batches(case: Case, trial: Trial) -> None:
    view = memoryview(case.data)
    read_records(case.data, trial, None)
    trial.run("plain run", lambda: plain_run(view, 0, True, 0, MAX_OFFSET, 1 << 30, 1 << 30, 1 << 30))
    trial.run("passed", lambda: pass_batches(view, 0, MAX_OFFSET))
    trial.run("leader epochs", lambda: leader_epochs(view, pass_batches(view, 0, MAX_OFFSET)[0]))
    trial.run("scanned", lambda: scanned(view))


def scanned(view: memoryview) -> Any:
    found = [array("q", bytes(8 * 16)) for _ in range(8)]
    count = scan_batches(view, 0, 0, 0, *found)
    return [list(column[:count]) for column in found]


def message_set(case: Case, trial: Trial) -> None:
    read_records(case.data, trial, None)


def int_headers(case: Case, trial: Trial) -> None:
    read_records(case.data, trial, "int-headers")


HEADERS = (
    "position",
    "size",
    "magic",
    "attributes",
    "crc",
    "crc_ok",
    "base_offset",
    "last_offset_delta",
    "count",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "partition_leader_epoch",
)


def read_records(data: bytes, trial: Trial, dialect: str | None) -> None:
    trial.run("headers", lambda: [headers_of(each) for each in records.batch_headers(data, dialect, verify=True)])
    read = trial.run("read", lambda: [batch_rows(batch) for batch in records.read(data, dialect)])
    trial.run("unverified", lambda: [batch_rows(batch) for batch in records.read(data, dialect, verify=False)])
    together = trial.run("together", lambda: [batch_rows(batch) for batch in records.read_coalesced(data, dialect)])
    table = trial.run("columns", lambda: columns_of(data, dialect, "ms"))
    trial.run("columns, microseconds", lambda: columns_of(data, dialect, "us"))
    trial.run("chunks", lambda: chunks_of(data, dialect))
    if read is not None:
        flat = [row for rows in read for row in rows]
        trial.same("together", flat, lambda: [row for rows in together for row in rows])
        trial.same("columns", [row[0] for row in flat], lambda: table["offset"])
        trial.same("columns", [row[2] for row in flat], lambda: table["key"])
        trial.same("columns", [row[3] for row in flat], lambda: table["value"])
        for batch in records.read(data, dialect):
            trial.same("rewritten", batch_rows(batch), lambda batch=batch: rewritten(batch, dialect))


def headers_of(header: Any) -> list[Any]:
    return [getattr(header, name) for name in HEADERS]


def batch_rows(batch: Any) -> list[tuple[Any, ...]]:
    return [
        (record.offset, record.timestamp, record.key, record.value, list(record.raw_headers), list(record.headers))
        for record in batch.records()
    ]


def columns_of(data: bytes, dialect: str | None, unit: str) -> dict[str, list[Any]]:
    columns = ("offset", "timestamp", "timestamp_type", "key", "value", "headers")
    table = records.to_arrow(data, dialect=dialect, columns=columns, control=True, timestamp_unit=unit)
    if unit == "us":
        table = table.drop_columns(["headers"])
    numbered = table.column("timestamp").cast(pa.int64())
    return {**table.drop_columns(["timestamp"]).to_pydict(), "timestamp": numbered.to_pylist()}


def changed_records(case: Case, trial: Trial) -> None:
    """Records, one of them changed, written as objects and as columns, in any format."""
    chance = Random(case.seed)
    rows = [record for batch in records.read(case.data) for record in batch.records()]
    format_: dict[str, Any] = chance.choice(({}, {}, {"magic": 0}, {"magic": 1}, {"dialect": "int-headers"}))
    if format_ and chance.random() < 0.8:
        keys = (0, -1, 300, 1 << 31) if "dialect" in format_ else ()
        rows = [row.replace(headers=[(key, b"v") for key in keys[: chance.randrange(5)]]) for row in rows]
    spoiled = list(rows)
    at = chance.randrange(len(rows))
    name = chance.choice(("key", "value", "timestamp", "headers"))
    value: Any = odd_value(getattr(rows[at], name), chance)
    if name == "headers" and chance.random() < 0.7:
        pairs = ("a", b"x"), ("é", None), (odd_value("a", chance), odd_value(b"b", chance))
        value = [chance.choice(pairs) for _ in range(2)]
    spoiled[at] = rows[at].replace(**{name: value})
    trial.run("written", lambda: records.write(spoiled, **format_))
    table = records.to_arrow(case.data, control=True)
    start = chance.randrange(table.num_rows)
    table = table.slice(start, chance.randrange(1, table.num_rows - start + 1))
    times = table.column("timestamp").cast(pa.int64()).to_pylist()
    times[chance.randrange(len(times))] = chance.choice((-1, -2, None, 0, MAX_OFFSET))
    table = table.set_column(table.schema.get_field_index("timestamp"), "timestamp", pa.array(times, pa.int64()))
    if chance.random() < 0.3:
        table = table.drop_columns(["headers"])
    trial.run("columns, written", lambda: records.from_arrow(table, **format_))
    least = {"max_batch_bytes": chance.choice((62, 100, 300)), "max_batch_records": chance.choice((1, 3, 100))}
    trial.run("columns, written apart", lambda: list(records.batches_from_arrow(table, **least, **format_)))


def chunks_of(data: bytes, dialect: str | None) -> list[Any]:
    """Some of the offsets, a few rows at a time."""
    options: dict[str, Any] = {
        "dialect": dialect,
        "columns": ("offset", "headers"),
        "start_offset": 1,
        "aborted": [(1, 0)],
    }
    return [
        (rows.to_pydict(), after) for rows, after in records.arrow_chunks(data, max_rows=2, end_offset=900, **options)
    ]


def rewritten(batch: Any, dialect: str | None) -> list[tuple[Any, ...]]:
    written = records.rewrite(batch, batch.records())
    return [row for again in records.read(written, dialect) for row in batch_rows(again)]


# -- frames and captures


def request(case: Case, trial: Trial) -> None:
    for name in ("strict", "lenient"):
        trial.run(name, lambda name=name: events(Connection("broker", lenient=name == "lenient"), case.data))


def response(case: Case, trial: Trial) -> None:
    spec, version = case.about
    for name in ("strict", "lenient"):
        connection = Connection("client", client_id="c", lenient=name == "lenient")
        connection.send(class_of(spec)(), version, correlation_id=7)
        trial.run(name, lambda connection=connection: events(connection, case.data))


def events(connection: Connection, data: bytes) -> list[Any]:
    """All that comes out, the error that ends it too."""
    connection.receive(data)
    connection.receive(b"")
    found: list[Any] = []
    try:
        while (event := connection.next_event()) not in (NEED_DATA, CLOSED):
            if isinstance(event, Request):
                found.append((repr(event.header), event.decode()))
            elif isinstance(event, Response):
                found.append((event.version, event.message))
            else:
                found.append(repr(event))
    except TagwireError as error:
        found.append(f"{type(error).__name__}: {error}")
    return found


GROUPS = ("number", "speaker", "api", "version", "count", "first", "last", "first_position", "last_position")


def capture(case: Case, trial: Trial) -> None:
    trial.run("exchanges", lambda: watched(case.data))


def watched(data: bytes) -> list[Any]:
    losses = Losses()
    rows: list[Any] = []
    for table in requests_in(io.BytesIO(data), "capture", losses, requests=True, responses=True):
        columns = (table.times, table.responded, table.apis, table.versions, table.correlation_ids)
        numbers = [list(column[: table.count]) for column in columns]
        groups = [
            [getattr(group, name) for name in GROUPS]
            for group in group_rows(table, 0, table.count, number_column(table.count))
        ]
        shared = repr(table.speakers), table.first_rows, groups, count_minutes(table, 60_000_000)
        rows.append((numbers, table.requests, table.responses, *shared))
    return [rows, sorted((str(reason), count) for reason, count in losses.counts.items())]


TRIALS: dict[str, Callable[[Case, Trial], None]] = {
    "message": message,
    "changed message": changed_message,
    "changed columns": changed_columns,
    "batches": batches,
    "changed records": changed_records,
    "message set": message_set,
    "int headers": int_headers,
    "request": request,
    "response": response,
    "capture": capture,
}
