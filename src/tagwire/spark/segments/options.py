"""The options of the data source `tagwire-segments`: text in, checked values out."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tagwire.errors import ConfigError
from tagwire.records import HeaderRegister
from tagwire.records.internal_topics import CLUSTER_METADATA, OFFSETS, TRANSACTIONS
from tagwire.spark.option_values import choice, count, dialect_of, flag, known_options, pattern, topic_names
from tagwire.spark.row_converter import HEADER_COLUMNS, RowOptions, row_options
from tagwire.spark.values.options import OPTIONS as VALUE_OPTIONS
from tagwire.spark.values.options import REGISTRY

RECORDS, BATCHES = "records", "batches"
STATE_VIEWS = {"offsets": OFFSETS, "groups": OFFSETS, "transactions": TRANSACTIONS, "metadata": CLUSTER_METADATA}
"""Views of Kafka's own topics, and the topic that each is of."""
VIEWS = (RECORDS, BATCHES, *STATE_VIEWS)
FAIL, DROP = "fail", "skip"
COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"
SPLIT_BYTES = 64 << 20

_FSSPEC = "fsspec."
_NAMES = (
    "view",
    "subscribe",
    "subscribePattern",
    "includeHeaders",
    HEADER_COLUMNS,
    *VALUE_OPTIONS,
    "isolation",
    "broken",
    "maxPartitionBytes",
    "filterPushdown",
    "dialect",
    "register",
)


@dataclass(frozen=True)
class SegmentOptions:
    """The options of one read, checked.

    Attributes:
        paths: files and directories, as they were given.
        topics, pattern: which topics, by name or by regular expression; all where neither is given.
        isolation: whether the records of aborted and of open transactions are left out.
        drop: whether broken batches are left out with a warning, instead of ending the read.
        split_bytes: bytes of a segment that one task reads, about.
        filter_pushdown: see `tagwire.spark.filter_pushdown`; None is as Spark allows without harm.
        settings: for fsspec, where a path is a URL.
    """

    paths: tuple[str, ...]
    view: str = RECORDS
    topics: tuple[str, ...] = ()
    pattern: str = ""
    rows: RowOptions = field(default_factory=RowOptions)
    isolation: str = UNCOMMITTED
    drop: bool = False
    split_bytes: int = SPLIT_BYTES
    filter_pushdown: bool | None = None
    dialect: str | None = None
    register: HeaderRegister | None = None
    settings: tuple[tuple[str, Any], ...] = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.view} of {', '.join(self.paths)}>"

    def takes(self, topic: str | None) -> bool:
        """Whether a topic is read; None is a file that lies in no topic's directory."""
        if self.view in STATE_VIEWS:
            return topic in (STATE_VIEWS[self.view], None)
        if not self.topics and not self.pattern:
            return True
        if topic is None:
            return False
        return topic in self.topics or bool(self.pattern and re.fullmatch(self.pattern, topic))


def parse_segment_options(options: Mapping[str, str]) -> SegmentOptions:
    """The options of a read, checked.

    Raises:
        ConfigError: an option is unknown, missing, contradicts another or has a wrong value; the text names it.
    """
    given, prefixed = known_options(options, _NAMES, (_FSSPEC,), (REGISTRY,))
    paths = _paths(options)
    if not paths:
        raise ConfigError('format tagwire-segments: names no path; give one, .load("/var/lib/kafka/data")')
    if "subscribe" in given and "subscribePattern" in given:
        raise ConfigError("option subscribe and subscribePattern: set together; one of them names the topics")
    view = choice("view", given, VIEWS)
    if view in STATE_VIEWS and (
        said := next((name for name in ("subscribe", "subscribePattern") if name in given), "")
    ):
        raise ConfigError(f"option {said}: view {view} is of {STATE_VIEWS[view]} alone; filter its rows instead")
    dialect, register = dialect_of(given)
    include_headers = flag("includeHeaders", given, default=False)
    isolation = choice("isolation", given, (UNCOMMITTED, COMMITTED))
    asked = [name for name in (HEADER_COLUMNS, *VALUE_OPTIONS) if name in given]
    asked += ["includeHeaders"] if include_headers else []
    # What coordinators know is of committed records whatever is asked.
    asked += ["isolation"] if isolation == COMMITTED and view == BATCHES else []
    if asked and view != RECORDS:
        raise ConfigError(f"option {asked[0]}: is of the view {RECORDS}; the view {view} has no such columns or rows")
    return SegmentOptions(
        paths=paths,
        view=view,
        topics=topic_names(given) if "subscribe" in given else (),
        pattern=pattern("subscribePattern", given),
        rows=row_options(given, include_headers=include_headers),
        isolation=isolation,
        drop=choice("broken", given, (FAIL, DROP)) == DROP,
        split_bytes=count("maxPartitionBytes", given) or SPLIT_BYTES,
        filter_pushdown=flag("filterPushdown", given, default=True) if "filterPushdown" in given else None,
        dialect=dialect,
        register=register,
        settings=tuple(sorted((name, _setting(text)) for name, text in prefixed[_FSSPEC].items())),
    )


def _paths(options: Mapping[str, str]) -> tuple[str, ...]:
    found = [options["path"]] if options.get("path") else []
    if options.get("paths"):
        found += json.loads(options["paths"])  # Spark's own list of what load() was given
    return tuple(found)


def _setting(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
