"""The part of each partition that a read is about: all that `bounds` knows, counted from the end, for some partitions.

    2013-07-04    earliest    88121    -10    -10m    @1372917600000    0=88121,3=latest

`-10` is the last ten records of each partition, `-10m` ten minutes ago. A range is two of them with a colon between, of
which either may be left away: `-10:`, `100:200`, `-2h:-1h`, `:@1372917600000`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import typer

from tagwire.cli.bounds import Bound, Held, parse_bound, resolve
from tagwire.errors import Error, KafkaError
from tagwire.partitions import EARLIEST, LATEST

if TYPE_CHECKING:
    from tagwire.client import Client, TopicPartition


@dataclass(frozen=True)
class Last:
    """So many offsets before the end of a partition."""

    count: int


@dataclass(frozen=True)
class Edge:
    """Where a read of several partitions starts, or where it ends.

    Attributes:
        everywhere: what holds for each partition.
        named: what holds for a partition instead, by its index; the others are then not read at all.
    """

    everywhere: Bound | Last
    named: Mapping[int, Bound | Last] = field(default_factory=dict)

    @property
    def is_one_offset(self) -> bool:
        """Whether this names an offset without its partition."""
        return not self.named and isinstance(self.everywhere, Bound) and self.everywhere.is_one_offset

    def of(self, partition: int) -> Bound | Last:
        return self.named.get(partition, self.everywhere)


def parse_edge(text: str, option: str) -> Edge:
    """What `text` says, `P=WHERE,P=WHERE` included.

    What such a list does not name is the end of its partition.

    Raises:
        typer.BadParameter: it says nothing; the text names the option and what is allowed.
    """
    if not re.match(r"[0-9]+=", text):
        return Edge(_bound(text, option))
    named: dict[int, Bound | Last] = {}
    for entry in text.split(","):
        partition, equals, where = entry.partition("=")
        if not (equals and re.fullmatch(r"[0-9]{1,10}", partition)) or int(partition) in named:
            raise typer.BadParameter(
                f"{entry[:40]!r} is not PARTITION=WHERE, each partition once", param_hint=f"'{option}'"
            )
        named[int(partition)] = _bound(where, option)
    return Edge(parse_bound("latest", option), named)


def parse_range(text: str, option: str) -> tuple[Edge, Edge]:
    """The two edges of `FROM:TO`, `FROM:`, `:TO` or `FROM`. Raises typer.BadParameter."""
    start, _, end = text.partition(":")
    if ":" in end:
        raise typer.BadParameter(
            f"{text[:60]!r} has more than one colon; a time here is -5m or @MILLISECONDS", param_hint=f"'{option}'"
        )
    return parse_edge(start or "earliest", option), parse_edge(end or "latest", option)


def offsets_of(
    client: Client, edge: Edge, holds: Mapping[TopicPartition, Held], *, must_hold: bool = False
) -> dict[TopicPartition, int]:
    """The offset that the edge means in each partition, several of them in one request.

    Args:
        holds: what each partition holds now.
        must_hold: whether an offset that was named and is not held is an error.

    Raises:
        KafkaError: such an offset, naming partition and what it holds.
    """
    alike: dict[Bound, list[TopicPartition]] = {}
    found: dict[TopicPartition, int] = {}
    for at, kept in holds.items():
        wanted = edge.of(at.partition)
        if isinstance(wanted, Last):
            found[at] = max(kept.end - wanted.count, kept.start)
        elif wanted.offset in (EARLIEST, LATEST):
            found[at] = kept.start if wanted.offset == EARLIEST else kept.end
        else:
            alike.setdefault(wanted, []).append(at)
    for bound, partitions in alike.items():
        found.update(resolve(client, bound, partitions))
        if must_hold and bound.is_one_offset:
            for at in partitions:
                _check_held(at, found[at], holds[at])
    return found


def _check_held(at: TopicPartition, offset: int, kept: Held) -> None:
    if not kept.start <= offset <= kept.end:
        told = f"holds {kept.start}-{kept.end - 1}" if kept.start < kept.end else "holds no records"
        raise KafkaError(Error.OFFSET_OUT_OF_RANGE, f"partition {at} {told}, not {offset}")


def _bound(text: str, option: str) -> Bound | Last:
    if re.fullmatch(r"-[0-9]{1,18}", text):
        return Last(int(text[1:]))
    return parse_bound(text, option)
