"""What a query's filters say about which offsets have to be read at all.

Spark hands filters down only where `spark.sql.python.filterPushdown.enabled` is true, and refuses a reader that takes
them where it is not; `takes_filters` makes one that works with both. All filters are handed back, for Spark to apply
again: they may only narrow what is read. Source: pyspark.sql.datasource.

Spark up to 4.3 keeps what a filtered query planned for every later query on the same DataFrame, and for both sides of a
self-join: one without that filter then misses rows. So there filters narrow only where option `filterPushdown` says
that no such query follows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import DataSourceReader

from tagwire.partitions import TopicPartition
from tagwire.spark.source.bounds import Offsets

_ABOVE = {"EqualTo": 0, "EqualNullSafe": 0, "GreaterThanOrEqual": 0, "GreaterThan": 1}
_BELOW = {"EqualTo": 1, "EqualNullSafe": 1, "LessThanOrEqual": 1, "LessThan": 0}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Narrowing:
    """What all the filters together allow. None allows everything.

    Attributes:
        topics, partitions: those that may be wanted.
        start_offset, end_offset: offsets from the one to before the other.
        since: the earliest timestamp that may be wanted, in milliseconds. There is no latest: timestamps are set by
            producers and come in any order.
    """

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    start_offset: int = 0
    end_offset: int | None = None
    since: int | None = None

    def takes(self, at: TopicPartition) -> bool:
        """Whether anything of a partition may be wanted."""
        topic, index = at
        return (self.topics is None or topic in self.topics) and (self.partitions is None or index in self.partitions)

    def narrowed(self, start: Offsets, end: Offsets) -> tuple[Offsets, Offsets]:
        """Start and end of the partitions that may be wanted; where nothing is left, the start is the end."""
        until = {
            at: offset if self.end_offset is None else max(min(offset, self.end_offset), start[at])
            for at, offset in end.items()
            if self.takes(at)
        }
        return {at: min(max(start[at], self.start_offset), until[at]) for at in until}, until

    def with_filter(self, name: str, column: tuple[str, ...], value: Any) -> Narrowing:
        """What is left with one filter more: its name as PySpark calls it, the column it is about and its value."""
        if column in (("topic",), ("partition",)):
            return self._of_place(name, column[0], value)
        if column == ("offset",) and type(value) is int:
            changed = self
            if name in _ABOVE:
                changed = replace(changed, start_offset=max(self.start_offset, value + _ABOVE[name]))
            if name in _BELOW:
                end = value + _BELOW[name]
                changed = replace(changed, end_offset=end if self.end_offset is None else min(self.end_offset, end))
            return changed
        if column == ("timestamp",) and isinstance(value, datetime) and name in _ABOVE:
            since = _milliseconds(value)
            return replace(self, since=since if self.since is None else max(self.since, since))
        return self

    def _of_place(self, name: str, column: str, value: Any) -> Narrowing:
        if name == "In":
            allowed = frozenset(value)
        elif name in ("EqualTo", "EqualNullSafe"):
            allowed = frozenset([value])
        else:
            return self
        if column == "topic":
            return replace(self, topics=allowed if self.topics is None else self.topics & allowed)
        return replace(self, partitions=allowed if self.partitions is None else self.partitions & allowed)


def takes_filters(reader: Any, asked: bool | None) -> None:
    """Lets `reader`, which has an attribute `narrowing`, take filters where Spark hands them down.

    Args:
        asked: what the option `filterPushdown` says; None takes them where Spark keeps them to their own query.
    """
    of_their_own = hasattr(DataSourceReader, "pushLimit")  # came to Spark together with the mending of that
    if hasattr(DataSourceReader, "pushFilters") and (of_their_own if asked is None else asked):
        reader.pushFilters = _Push(reader)


class _Push:
    """Looks to Spark like the method that a reader inherits, which it allows whatever the setting."""

    def __init__(self, reader: Any) -> None:
        self.reader = reader
        self.__func__ = DataSourceReader.pushFilters

    def __call__(self, filters: Iterable[Any]) -> Iterable[Any]:
        for each in filters:
            column = getattr(each, "attribute", ())
            self.reader.narrowing = self.reader.narrowing.with_filter(
                type(each).__name__, tuple(column), getattr(each, "value", None)
            )
            yield each


def _milliseconds(value: datetime) -> int:
    at = value if value.tzinfo else value.astimezone()
    return (at - _EPOCH) // timedelta(milliseconds=1)
