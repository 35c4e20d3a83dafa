"""Planning a read: which offsets of which partitions, in how many pieces.

Nothing here talks to a broker or to Spark. The offsets of a checkpoint are written as Spark's Kafka connector writes
them, `{"topic":{"0":23}}`, each the next offset to read, so that a query can take over the connector's checkpoint.
Source: Spark's KafkaSourceOffset, KafkaOffsetRangeCalculator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple
from uuid import UUID

from tagwire.errors import ConfigError
from tagwire.partitions import EARLIEST, LATEST, TopicPartition
from tagwire.spark.source.offset_limits import Offsets

Document = dict[str, dict[str, int]]
"""Offsets as they stand in a checkpoint: topic, partition as text, next offset."""

SMALL: Final = 500
"""Offsets of a range that may share a task with others."""

FEWEST_TASKS: Final = 32
"""That many tasks are left as they are, for as many cores."""

_EACH: Final = 200  # offsets that are read in the time that a range takes by itself
_TOGETHER: Final = 5_000  # offsets, and what ranges take by themselves, of ranges that share a task


class OffsetRange(NamedTuple):
    """Offsets `start` up to but not including `end` of one partition.

    Attributes:
        topic_id: of the topic (KIP-516) when the range was planned; None where the brokers do not tell.
    """

    topic: str
    partition: int
    start: int
    end: int
    topic_id: UUID | None = None

    @property
    def size(self) -> int:
        """How many offsets; a compacted topic holds fewer records."""
        return self.end - self.start


def to_document(offsets: Mapping[TopicPartition, int]) -> Document:
    """Offsets as a checkpoint document, in one order, because Spark compares offsets by their text."""
    document: Document = {}
    for (topic, index), offset in sorted(offsets.items()):
        document.setdefault(topic, {})[str(index)] = offset
    return document


def from_document(document: object) -> Offsets:
    """Offsets from a checkpoint document.

    Raises:
        ConfigError: the document is not of the connector's shape, so the checkpoint belongs to something else.
    """
    try:
        offsets = {
            TopicPartition(topic, int(index)): offset
            for topic, partitions in document.items()  # type: ignore[attr-defined]
            for index, offset in partitions.items()
        }
    except (AttributeError, ValueError):
        offsets = None
    if offsets is None or not all(type(offset) is int and offset >= 0 for offset in offsets.values()):
        raise ConfigError(
            f'checkpoint: {str(document)[:200]} is not like {{"topic":{{"0":23}}}}; it is of another kind of source'
        )
    return offsets


def resolve(bound: int | Offsets, option: str, earliest: Offsets, latest: Offsets) -> Offsets:
    """The offset that `bound` means for each partition.

    Args:
        earliest, latest: first offset kept and next offset to be written; both name every partition that is read.

    Raises:
        ConfigError: offsets are given for some partitions and not for others, or for partitions that are not read.
    """
    if not isinstance(bound, dict):
        return dict(earliest if bound == EARLIEST else latest)
    missing, surplus = sorted(latest.keys() - bound.keys()), sorted(bound.keys() - latest.keys())
    if missing or surplus:
        wrong = f"misses {named(missing)}" if missing else f"names {named(surplus)}, not read here"
        raise ConfigError(f"option {option}: {wrong}; it has to name each partition once (-2 is earliest, -1 latest)")
    meaning = {EARLIEST: earliest, LATEST: latest}
    return {at: meaning[offset][at] if offset in meaning else offset for at, offset in bound.items()}


def outside(offsets: Offsets, option: str, earliest: Offsets, latest: Offsets) -> tuple[Offsets, list[str]]:
    """The offsets moved to what the broker holds, and one sentence for each that had to be moved."""
    held = {at: min(max(offset, earliest[at]), latest[at]) for at, offset in offsets.items()}
    said = [
        f"{option} {offsets[at]} of {_name(at)} is outside {earliest[at]}..{latest[at]}"
        for at in sorted(held)
        if held[at] != offsets[at]
    ]
    return held, said


def rate_limited(start: Offsets, latest: Offsets, earliest: Offsets, most: int | None) -> Offsets:
    """Where a micro-batch ends: at `latest`, or after about `most` offsets, shared by the backlog of each partition.

    A partition with a backlog gets at least one offset, so that a small one is never starved. A partition that `start`
    does not know begins at its earliest offset.
    """
    backlog = {at: end - start.get(at, earliest.get(at, 0)) for at, end in latest.items()}
    total = sum(size for size in backlog.values() if size > 0)
    if most is None or total <= most:
        return dict(latest)
    return {
        at: end if backlog[at] <= 0 else end - backlog[at] + min(backlog[at], max(1, most * backlog[at] // total))
        for at, end in latest.items()
    }


def gone(start: Offsets, present: Offsets) -> list[str]:
    """One sentence for each partition of `start` that is not `present` any more."""
    return [f"{_name(at)} is gone, its offset was {start[at]}" for at in sorted(start.keys() - present.keys())]


def made_anew(topic: str, was: UUID, now: UUID) -> str:
    """The sentence for a topic that has another id than it had."""
    return f"topic {topic} was deleted and made anew (its id was {was}, and is {now})"


def went_back(start: Offsets, latest: Offsets) -> list[str]:
    """One sentence for each partition of `start` that is gone or now ends before it: records may have been missed."""
    return gone(start, latest) + [
        f"{_name(at)} now ends at {latest[at]}, {start[at]} was reached"
        for at in sorted(start.keys() & latest.keys())
        if latest[at] < start[at]
    ]


def begun_late(start: Offsets, end: Offsets, earliest: Offsets) -> list[str]:
    """One sentence for each partition of `end` that `start` does not know, and that has lost its first records."""
    return [
        f"{_name(at)} is new and already begins at {earliest[at]}"
        for at in sorted(end.keys() - start.keys())
        if earliest.get(at, 0) > 0
    ]


def backwards(start: Offsets, end: Offsets) -> list[str]:
    """One sentence for each partition whose read would end before it starts."""
    return [f"{_name(at)} would be read from {start[at]} to {end[at]}" for at in sorted(start) if end[at] < start[at]]


def plan(start: Offsets, end: Offsets, earliest: Offsets, latest: Offsets) -> tuple[list[OffsetRange], list[str]]:
    """The ranges from `start` to `end` that the broker holds, and one sentence for each that it does not.

    A partition that is not in `start` is new and begins at its earliest offset.
    """
    ranges: list[OffsetRange] = []
    held = {at: end[at] for at in sorted(end.keys() & latest.keys())}
    said = gone(end, latest) + begun_late(start, held, earliest)
    for at in held:
        first, until = earliest[at], min(end[at], latest[at])
        begin = start.get(at, first)
        if begin < first:
            said.append(f"{_name(at)} begins at {first}, offsets from {begin} on were to be read")
        if until < end[at]:
            said.append(f"{_name(at)} ends at {until}, offsets up to {end[at]} were to be read")
        begin = max(begin, first)
        if begin < until:
            ranges.append(OffsetRange(*at, begin, until))
    return ranges, said


def split(ranges: Iterable[OffsetRange], least: int | None, most: int | None = None) -> list[OffsetRange]:
    """The ranges that hold something, cut into pieces of at most `most` offsets, then into about `least` pieces.

    Large ones are cut into more; ranges too small to be cut are set aside first, so that they do not take a share of
    the cuts.
    """
    whole = [piece for piece in ranges if piece.size > 0]
    if most is not None:
        whole = [part for piece in whole for part in _cut(piece, -(-piece.size // most))]
    if least is None or len(whole) >= least:
        return whole
    total = sum(piece.size for piece in whole)
    small = {piece for piece in whole if _pieces(piece.size, total, least) == 1}
    total -= sum(piece.size for piece in small)
    least = max(least - len(small), 1)
    pieces = {piece: 1 if piece in small else _pieces(piece.size, total, least) for piece in whole}
    return [part for piece in whole for part in _cut(piece, pieces[piece])]


def coalesced(
    ranges: Sequence[OffsetRange], least: int | None = None, most: int | None = None
) -> list[tuple[OffsetRange, ...]]:
    """The ranges as tasks: of more than a few tasks, neighbours with little in them are one.

    A task costs tens of milliseconds however little it reads, a range a few. So ranges of at most `SMALL` offsets go
    together, as long as there are about `FEWEST_TASKS` tasks left, and as no task has more to do than a large one.
    Every offset stands once, the pieces of a partition in their order.

    Args:
        least: how many tasks to leave at least, about, where that is more than `FEWEST_TASKS`.
        most: offsets that a task may have at most; a range with more is a task by itself.
    """
    fewest = max(FEWEST_TASKS, least or 0)
    if len(ranges) <= fewest:
        return [(each,) for each in ranges]
    weights = [_EACH + each.size if each.size <= SMALL else 0 for each in ranges]
    left = max(1, fewest - weights.count(0))
    bound = min(_TOGETHER, max(1, sum(weights) // left))
    tasks: list[tuple[OffsetRange, ...]] = []
    together: list[OffsetRange] = []
    weight = offsets = 0
    for each, its in zip(ranges, weights):
        if not its:
            tasks.append((each,))
            continue
        if together and (weight + its > bound or (most is not None and offsets + each.size > most)):
            tasks.append(tuple(together))
            together, weight, offsets = [], 0, 0
        together.append(each)
        weight, offsets = weight + its, offsets + each.size
    return [*tasks, tuple(together)] if together else tasks


def _pieces(size: int, total: int, least: int) -> int:
    return min(size, max(1, (2 * size * least + total) // (2 * total)))


def _cut(piece: OffsetRange, pieces: int) -> list[OffsetRange]:
    edges = [piece.start + piece.size * i // pieces for i in range(pieces + 1)]
    return [piece._replace(start=start, end=end) for start, end in pairwise(edges)]


def _name(at: TopicPartition) -> str:
    return f"{at[0]}-{at[1]}"


def named(partitions: list[TopicPartition]) -> str:
    """The names of partitions for a sentence: the first five, and how many more there are."""
    shown = ", ".join(_name(at) for at in partitions[:5])
    return shown + (f" and {len(partitions) - 5} more" if len(partitions) > 5 else "")
