"""`tagwire log`: Kafka's files, printed or checked without a broker."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tagwire.cli.log_lines import RecordLines, batch_line, entry_line, fault_line
from tagwire.cli.options import Json
from tagwire.cli.terminal import printable, progress
from tagwire.closed_pipes import answering
from tagwire.errors import ConfigError, CorruptRecordError

if TYPE_CHECKING:
    from tagwire.records import HeaderRegister
    from tagwire.records.files import Fault, PartitionFiles, Segment

_MIB = 1 << 20
_DECODED = {
    "offsets": "__consumer_offsets",
    "transactions": "__transaction_state",
    "metadata": "__cluster_metadata",
    "share": "__share_group_state",
}


@dataclass(frozen=True)
class _Wanted:
    """What is to be printed, of every file alike."""

    records: bool
    headers: bool
    decode: str | None
    offset: int
    limit: int | None
    full: bool
    as_json: bool


@dataclass(frozen=True)
class _Format:
    """What the batches are: of Kafka's formats, or of a dialect, whose int keys a register may name."""

    dialect: str | None
    register: HeaderRegister | None

    def at(self, path: Path) -> dict[str, Any]:
        """How a file is read: where no dialect was given, as the partition that it lies in says."""
        from tagwire.records.files import dialect_in

        dialect = dialect_in(path.parent) if self.dialect is None else self.dialect
        return {"dialect": dialect, "register": None if dialect is None else self.register}


@dataclass(frozen=True)
class _Target:
    """A file to print, and whose it is: topic and partition are None where no directory says. `is_closed`: a segment
    after which another one comes."""

    path: Path
    segment: Segment | None
    topic: str | None = None
    partition: int | None = None
    is_closed: bool = False


def log(
    paths: Annotated[list[Path], typer.Argument(metavar="FILE|DIR", show_default=False)],
    batches: Annotated[bool, typer.Option("--batches", help="The header of each batch. This is the default.")] = False,
    records: Annotated[bool, typer.Option("--records", help="The records.")] = False,
    headers: Annotated[bool, typer.Option("--headers", help="The records with their headers.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Say only what is wrong; exit with 1 if anything is.")
    ] = False,
    decode: Annotated[
        Literal["offsets", "transactions", "metadata", "share"] | None,
        typer.Option(
            "--decode", help="The records of one of Kafka's own topics, as what they mean.", show_default=False
        ),
    ] = None,
    offset: Annotated[int, typer.Option("--offset", min=0, metavar="N", help="From this offset on.")] = 0,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="N batches or records at most.")
    ] = None,
    dialect: Annotated[
        Literal["int-headers"] | None,
        typer.Option("--dialect", help="With int-keyed headers; else as partition.metadata says.", show_default=False),
    ] = None,
    register: Annotated[
        list[Path] | None,
        typer.Option(
            "--register",
            metavar="REGISTER.toml",
            help="Name the int keys of headers as this register does; may be repeated.",
            show_default=False,
        ),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Do not cut long keys, values and headers.")] = False,
    as_json: Json = False,
) -> None:
    """Print or check log segments and the files beside them, with no broker running.

    FILE is a .log, .index, .timeindex, .txnindex or .snapshot file, a checkpoint, or partition.metadata; DIR is a
    partition's directory or one that holds some: their segments, and the batches of KRaft snapshots; of partitions that
    are moved or deleted no records. --verify computes checksums, checks that offsets grow, and finds index entries,
    leader epochs and producers that the log does not bear out.

    \b
    Examples:
      tagwire log /var/lib/kafka/flights-0
      tagwire log 00000000000000000000.log --records --offset 88121 --limit 10
      tagwire log /var/lib/kafka --verify
      tagwire log /var/lib/kafka --decode offsets --json | jq .value.offset
      tagwire log traces-0 --headers --dialect int-headers --register headers.toml
    """
    chosen = [name for name, on in (("--batches", batches), ("--verify", verify)) if on]
    chosen += [name for name, on in (("--records", records or headers), ("--decode", decode is not None)) if on][:1]
    if len(chosen) > 1:
        raise typer.BadParameter(f"{chosen[0]} and {chosen[1]} exclude each other")
    form = _Format(dialect, _register(register))
    if verify:
        _verify(paths, form, as_json)
        return
    wanted = _Wanted(
        records or headers or decode is not None,
        headers,
        None if decode is None else _DECODED[decode],
        offset,
        limit,
        full,
        as_json,
    )
    targets = [target for path in paths for target in _targets(path, form, wanted)]
    total = sum(target.path.stat().st_size for target in targets) / _MIB
    left, found = limit, 0
    with progress("reading", total, unit="MiB", visible=not sys.stdout.isatty()) as advance:
        for target in targets:
            printed = 0
            if not (as_json or wanted.records):
                print(printable(str(target.path)))
            for line in islice(_lines(target, wanted, lambda size: advance(size / _MIB)), left):
                sys.stdout.write(line + "\n")
                printed += 1
            sys.stdout.flush()
            found += printed
            if left is not None:
                left -= printed
                if not left:
                    return
            tail = None if target.segment is None else target.segment.tail
            if tail is None:
                continue
            told = f"{tail.size} bytes to the end, at {tail.position}: {tail.reason}"
            if not (as_json or wanted.records):
                print(f"  {told}")
            elif tail.kind == "partial" and target.is_closed:
                # What comes in the next segment must not seem to follow what was printed.
                told = f"a closed segment ends inside a batch: {tail.reason}; --verify looks at all segments"
                raise CorruptRecordError(told, path=target.path.name, offset=tail.position)
            else:
                print(f"{printable(str(target.path))}: {told}", file=sys.stderr)
    if offset and not found:
        what = "record" if wanted.records else "batch"
        raise ConfigError(f"--offset {offset}: no {what} from there on in {', '.join(map(str, paths))}")


def _register(files: list[Path] | None) -> HeaderRegister | None:
    if not files:
        return None
    from tagwire.records import HeaderRegister

    return HeaderRegister.load(*files)


def _targets(path: Path, form: _Format, wanted: _Wanted) -> Iterator[_Target]:
    """The files to print that a path names. What lies beside them unread is told on stderr."""
    from tagwire.records.files import partition_name

    if not path.is_dir():
        segment = _segment(path, form)
        named = partition_name(path.resolve().parent.name)
        yield _Target(path, segment, *(named[:2] if named else (None, None)))
        return
    found = _partitions(path, form)
    if wanted.records:
        # Their records are those of another directory again, or of a topic that is no more.
        passing = [files.path for files in found if files.state is not None and not files.path.samefile(path)]
        _tell_unread(path, "being moved or deleted, or of nobody; they are read by name", passing)
        found = [files for files in found if files.path not in passing]
        if not found:
            raise ConfigError(f"{path}: holds no other partition")
    if wanted.decode is not None and len(found) > 1:
        found = [files for files in found if files.topic == wanted.decode]
        if not found:
            raise ConfigError(f"{path}: holds no partition of {wanted.decode}")
    for files in found:
        _tell_unread(files.path, "being made or deleted", files.leftovers)
        if wanted.records:
            # Their records are those of the log again, or stood before it.
            _tell_unread(files.path, "snapshots, which are read by name", [each.path for each in files.snapshots])
        elif not wanted.offset:
            yield from (_Target(each.path, each, files.topic, files.partition) for each in files.snapshots)
        for number, segment in enumerate(files.segments):
            following = files.segments[number + 1 : number + 2]
            if not following or following[0].base_offset > wanted.offset:
                yield _Target(segment.path, segment, files.topic, files.partition, is_closed=bool(following))


def _tell_unread(directory: Path, why: str, paths: list[Path]) -> None:
    if paths:
        names = ", ".join(printable(path.name) for path in paths)
        print(f"{printable(str(directory))}: not read, {why}: {names}", file=sys.stderr)


def _partitions(path: Path, form: _Format) -> list[PartitionFiles]:
    from tagwire.records.files import partitions

    found = partitions(path, dialect=form.dialect, register=form.register)
    if not found:
        raise ConfigError(f"{path} is no partition's directory, and holds none")
    return found


def _segment(path: Path, form: _Format) -> Segment | None:
    """The segment in a file; None where it is one that lies beside segments.

    Raises:
        ConfigError: its name is not that of any file of Kafka's.
    """
    from tagwire.records.files import Segment, kind_of
    from tagwire.records.files.side_files import READ

    kind = kind_of(path.name)
    if kind in READ:
        return None
    # A copy under another name, or what Kafka was about to delete, is read when it is named.
    if kind == "snapshot" or ".log" in path.suffixes or ".checkpoint" in path.suffixes:
        return Segment(path, **form.at(path))
    raise ConfigError(f"{path}: no file of Kafka's has such a name; a segment ends in .log")


def _lines(target: _Target, wanted: _Wanted, advance: Callable[[int], object]) -> Iterator[str]:
    """What is printed of one file, line by line."""
    from tagwire.records.compression import MAX_DECOMPRESSED
    from tagwire.records.files import kind_of
    from tagwire.records.files.side_files import rows_of

    segment = target.segment
    if segment is None:
        for row in rows_of(target.path, kind_of(target.path.name)):
            yield entry_line(target.path, row, as_json=wanted.as_json)
        return
    shown = RecordLines(
        target.topic,
        target.partition,
        decode=wanted.decode,
        headers=wanted.headers,
        full=wanted.full,
        as_json=wanted.as_json,
    )
    with segment:
        start = segment.position_of(wanted.offset) if wanted.offset else 0
        for position, batch in segment.batches(start):
            if not wanted.records:
                yield batch_line(target.path, position, batch, as_json=wanted.as_json)
            else:
                for record in segment.records_of(position, batch, max_decompressed=MAX_DECOMPRESSED):
                    if record.offset >= wanted.offset:
                        yield shown.line(batch, record)
            advance(batch.size_in_bytes)


def _verify(paths: list[Path], form: _Format, as_json: bool) -> None:
    """Prints what is wrong with the files that `paths` name; exits with 1 if anything is."""
    checked = [each for path in paths for each in _checked(path, form)]
    sizes = sum(segment.path.stat().st_size for segments, _ in checked for segment in segments) / _MIB
    wrong = 0
    with answering():
        with progress("checking", sizes, unit="MiB", visible=not sys.stdout.isatty()) as advance:
            for _, faults in checked:
                for fault in faults(lambda size: advance(size / _MIB)):
                    wrong += 1
                    print(fault_line(fault, as_json=as_json))
        if not as_json:
            segments = sum(len(each) for each, _ in checked)
            print(f"{segments} segments, {sizes:,.1f} MiB: {f'{wrong} faults' if wrong else 'sound'}")
    if wrong:
        raise typer.Exit(1)


_Check = Callable[[Callable[[int], object]], "Iterator[Fault]"]


def _checked(path: Path, form: _Format) -> Iterator[tuple[list[Segment], _Check]]:
    """What there is to check at a path: segments, and what gives their faults while it tells how many bytes it read."""
    from tagwire.records.files import Segment
    from tagwire.records.files.side_files import check_side_file
    from tagwire.records.files.verify import verify_partition, verify_segment

    if path.is_dir():
        for files in _partitions(path, form):
            yield files.segments + files.snapshots, lambda told, files=files: verify_partition(files, progress=told)  # type: ignore[misc]
        return
    segment = _segment(path, form)
    if segment is not None:
        yield [segment], lambda told: verify_segment(segment, progress=told)
        return
    beside = Segment(path.with_suffix(".log"), **form.at(path))
    if beside.path.is_file():
        yield (
            [beside],
            lambda told: (fault for fault in verify_segment(beside, progress=told) if fault.path == path),
        )
    else:
        yield [], lambda told: check_side_file(path)
