"""Filter pushdown: which topic partitions and offsets a query's filters leave to be read.

Spark pushes filters down only where `spark.sql.python.filterPushdown.enabled` is true, and refuses a reader that takes
them where it is not; `accept_filters` makes one that works with both. All filters are handed back, for Spark to apply
again: they only restrict what is read. Source: pyspark.sql.datasource.

Spark up to 4.3 keeps what a filtered query planned for every later query on the same DataFrame, and for both sides of a
self-join: one without that filter then misses rows. So there filters restrict only where option `filterPushdown` says
that no such query follows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import DataSourceReader

from tagwire.partitions import TopicPartition
from tagwire.spark.option_values import MAX_OFFSET
from tagwire.spark.source.offset_limits import Offsets

_ABOVE = {"EqualTo": 0, "EqualNullSafe": 0, "GreaterThanOrEqual": 0, "GreaterThan": 1}
_BELOW = {"EqualTo": 1, "EqualNullSafe": 1, "LessThanOrEqual": 1, "LessThan": 0}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class PushedFilters:
    """All filters together. None restricts nothing.

    Attributes:
        topics, partitions: those that may hold rows of the result.
        start_offset, end_offset: offsets from the one to before the other.
        since: the earliest timestamp of the result, in milliseconds. There is no latest: timestamps are set by
            producers and come in any order.
    """

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    start_offset: int = 0
    end_offset: int | None = None
    since: int | None = None

    def selects(self, at: TopicPartition) -> bool:
        """Whether a topic partition may hold rows of the result."""
        topic, index = at
        return (self.topics is None or topic in self.topics) and (self.partitions is None or index in self.partitions)

    def restrict(self, start: Offsets, end: Offsets) -> tuple[Offsets, Offsets]:
        """Start and end offsets of the partitions that are selected; where nothing is left, the start is the end."""
        until = {
            at: offset if self.end_offset is None else max(min(offset, self.end_offset), start[at])
            for at, offset in end.items()
            if self.selects(at)
        }
        return {at: min(max(start[at], self.start_offset), until[at]) for at in until}, until

    def with_filter(self, name: str, column: tuple[str, ...], value: Any) -> PushedFilters:
        """These and one filter more: the name of its class in PySpark, its column and its value."""
        if column in (("topic",), ("partition",)):
            return self._with_topic_partition(name, column[0], value)
        if column == ("offset",) and type(value) is int:
            changed = self
            # No record has the greatest offset, and none comes behind it.
            if name in _ABOVE:
                start = min(value + _ABOVE[name], MAX_OFFSET)
                changed = replace(changed, start_offset=max(self.start_offset, start))
            if name in _BELOW:
                end = min(value + _BELOW[name], MAX_OFFSET)
                changed = replace(changed, end_offset=end if self.end_offset is None else min(self.end_offset, end))
            return changed
        if column == ("timestamp",) and isinstance(value, datetime) and name in _ABOVE:
            since = _milliseconds(value)
            return replace(self, since=since if self.since is None else max(self.since, since))
        return self

    def _with_topic_partition(self, name: str, column: str, value: Any) -> PushedFilters:
        if name == "In":
            allowed = frozenset(value)
        elif name in ("EqualTo", "EqualNullSafe"):
            allowed = frozenset([value])
        else:
            return self
        if column == "topic":
            return replace(self, topics=allowed if self.topics is None else self.topics & allowed)
        return replace(self, partitions=allowed if self.partitions is None else self.partitions & allowed)


def accept_filters(reader: Any, wanted: bool | None) -> None:
    """Lets `reader`, which has an attribute `pushed_filters`, take filters where Spark pushes them down.

    Args:
        wanted: what the option `filterPushdown` says; None takes them where Spark does not keep them for other queries.
    """
    isolated = hasattr(DataSourceReader, "pushLimit")  # came to Spark together with the mending of that
    if hasattr(DataSourceReader, "pushFilters") and (isolated if wanted is None else wanted):
        reader.pushFilters = _Push(reader)


class _Push:
    """Looks to Spark like the method that a reader inherits, which it allows whatever the setting."""

    def __init__(self, reader: Any) -> None:
        self.reader = reader
        self.__func__ = DataSourceReader.pushFilters

    def __call__(self, filters: Iterable[Any]) -> Iterable[Any]:
        for each in filters:
            column = getattr(each, "attribute", ())
            self.reader.pushed_filters = self.reader.pushed_filters.with_filter(
                type(each).__name__, tuple(column), getattr(each, "value", None)
            )
            yield each


def _milliseconds(value: datetime) -> int:
    at = value if value.tzinfo else value.astimezone()
    return (at - _EPOCH) // timedelta(milliseconds=1)
