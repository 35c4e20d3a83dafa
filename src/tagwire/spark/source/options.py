"""The options of the `tagwire` data source: text in, checked values out.

Names and meanings are those of Spark's Kafka connector, so that a query moves over by changing its format. Option
names are matched in any case: Spark hands them over in lower case. Source: Spark's
KafkaSourceProvider.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tagwire.errors import ConfigError
from tagwire.partitions import EARLIEST, LATEST
from tagwire.spark.option_values import (
    count,
    dialect_of,
    flag,
    known_options,
    pattern,
    refuse_path,
    seconds,
    topic_names,
)
from tagwire.spark.row_converter import HEADER_COLUMNS, RowOptions, row_options
from tagwire.spark.source.offset_limits import (
    END_OPTIONS,
    START_OPTIONS,
    STRATEGY,
    OffsetLimit,
    ending_limit,
    forbid,
    object_of,
    starting_limit,
    wrong_json,
)
from tagwire.spark.values.options import OPTIONS as VALUE_OPTIONS
from tagwire.spark.values.options import REGISTRY

if TYPE_CHECKING:
    from tagwire.records import HeaderRegister

_PREFIX = "kafka."
_NAMES = (
    "kafka.bootstrap.servers",
    "assign",
    "subscribe",
    "subscribePattern",
    *START_OPTIONS,
    *END_OPTIONS,
    STRATEGY,
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "coalescePartitions",
    "failOnDataLoss",
    "includeHeaders",
    HEADER_COLUMNS,
    *VALUE_OPTIONS,
    "filterPushdown",
    "dialect",
    "register",
    "groupId",
    "groupIdPrefix",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "kafkaConsumer.pollTimeoutMs",
)
_SELECTIONS = ("assign", "subscribe", "subscribePattern")
_OURS_TO_SET = {
    "auto.offset.reset": "startingOffsets says where a read starts",
    "enable.auto.commit": "the checkpoint of the query keeps the offsets; groupId commits them to a group as well",
    "interceptor.classes": "interceptors are Java classes",
    "key.deserializer": "keys are read as bytes",
    "value.deserializer": "values are read as bytes",
    "key.serializer": "keys are bytes",
    "value.serializer": "values are bytes",
}
_TRIGGER_DELAY = 15 * 60.0
_RETRIES = 3
_RETRY_SECONDS = 1.0


@dataclass(frozen=True)
class Selection:
    """Which partitions are read. Exactly one of the three is set."""

    assign: dict[str, tuple[int, ...]] = field(default_factory=dict)
    subscribe: tuple[str, ...] = ()
    pattern: str = ""

    @property
    def only_topic(self) -> str | None:
        """The topic that is read, where there is one alone that is named."""
        names = [*self.assign, *self.subscribe]
        return names[0] if len(names) == 1 else None

    def matches(self, topic: str) -> bool:
        """Whether `subscribePattern` takes this topic: the whole name has to match."""
        return re.fullmatch(self.pattern, topic) is not None


@dataclass(frozen=True)
class TopicOptions:
    """The options of one read, checked. Use `batch_bounds` or `stream_start` for what depends on the kind of read.

    Attributes:
        client: the properties of `Client.from_properties`.
        ending_option: what says `ending`.
        max_trigger_delay: seconds after which a micro-batch no longer waits for `min_offsets_per_trigger`.
        coalesce_partitions: whether a task may read several partitions that have little to read.
        filter_pushdown: see `tagwire.spark.filter_pushdown`; None is as Spark allows without harm.
        dialect, register: of the records, and what names its header keys; None is Kafka's own formats.
        group: to which a stream commits its offsets; None commits nothing.
        retries, retry_seconds: how often, and after which pauses, the driver repeats a request that reaches no broker.
    """

    selection: Selection
    client: dict[str, str] = field(repr=False)
    starting: OffsetLimit | None = None
    ending: OffsetLimit | None = None
    ending_option: str | None = None
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay: float = _TRIGGER_DELAY
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    coalesce_partitions: bool = True
    fail_on_data_loss: bool = True
    rows: RowOptions = field(default_factory=RowOptions)
    filter_pushdown: bool | None = None
    dialect: str | None = None
    register: HeaderRegister | None = None
    group: str | None = None
    retries: int = _RETRIES
    retry_seconds: float = _RETRY_SECONDS


def parse(options: Mapping[str, str]) -> TopicOptions:
    """The options of a read, checked.

    `groupIdPrefix` and `kafka.group.id` name the group in which the connector's consumers read. Nothing here reads in a
    group, so they change nothing.

    Raises:
        ConfigError: an option is unknown, missing, contradicts another or has a wrong value; the text names it.
    """
    refuse_path(
        options, "subscribe, subscribePattern or assign names the topics (of Kafka's files: format tagwire-segments)"
    )
    given, prefixed = known_options(options, _NAMES, (_PREFIX,), (REGISTRY,))
    client = {_client_property(name): value for name, value in prefixed[_PREFIX].items()}
    servers = given.get("kafka.bootstrap.servers", "")
    if not servers.strip():
        raise ConfigError("option kafka.bootstrap.servers: missing; give the brokers as HOST:PORT,HOST:PORT")
    poll = count("kafkaConsumer.pollTimeoutMs", given)
    if poll is not None:
        client.setdefault("request.timeout.ms", str(poll))
    most, least = count("maxOffsetsPerTrigger", given), count("minOffsetsPerTrigger", given)
    if most is not None and least is not None and least > most:
        raise ConfigError(f"option minOffsetsPerTrigger={least}: is more than maxOffsetsPerTrigger={most}")
    if "groupId" in given and not given["groupId"].strip():
        raise ConfigError("option groupId='': needs the name of a group")
    dialect, register = dialect_of(given)
    pause = count("fetchOffset.retryIntervalMs", given, least=0)
    retries = count("fetchOffset.numRetries", given, least=0)
    return TopicOptions(
        selection=_selection(given),
        client={"bootstrap.servers": servers, **client},
        starting=starting_limit(given),
        ending=ending_limit(given),
        ending_option=next((name for name in END_OPTIONS if name in given), None),
        max_offsets_per_trigger=most,
        min_offsets_per_trigger=least,
        max_trigger_delay=seconds("maxTriggerDelay", given, default=_TRIGGER_DELAY),
        min_partitions=count("minPartitions", given),
        max_records_per_partition=count("maxRecordsPerPartition", given),
        coalesce_partitions=flag("coalescePartitions", given, default=True),
        fail_on_data_loss=flag("failOnDataLoss", given, default=True),
        rows=row_options(given, include_headers=flag("includeHeaders", given, default=False)),
        filter_pushdown=flag("filterPushdown", given, default=True) if "filterPushdown" in given else None,
        dialect=dialect,
        register=register,
        group=given.get("groupId"),
        retries=_RETRIES if retries is None else retries,
        retry_seconds=_RETRY_SECONDS if pause is None else pause / 1000,
    )


def batch_bounds(options: TopicOptions) -> tuple[OffsetLimit, OffsetLimit]:
    """First and end offsets of a batch read: earliest to latest unless said otherwise.

    Raises:
        ConfigError: startingOffsets asks for the latest, or endingOffsets for the earliest; or a group is named.
    """
    if options.group is not None:
        raise ConfigError("option groupId: only for streaming reads, whose progress a group shows")
    starting = EARLIEST if options.starting is None else options.starting
    ending = LATEST if options.ending is None else options.ending
    forbid("startingOffsets", starting, LATEST, "latest (-1) leaves a batch nothing to read; use earliest or offsets")
    forbid("endingOffsets", ending, EARLIEST, "earliest (-2) leaves a batch nothing to read; use latest or offsets")
    return starting, ending


def stream_start(options: TopicOptions) -> OffsetLimit:
    """Where a new streaming query starts: latest unless said otherwise.

    Raises:
        ConfigError: an end is set.
    """
    if options.ending is not None:
        raise ConfigError(f"option {options.ending_option}: only for batch reads; a streaming read has no end")
    return LATEST if options.starting is None else options.starting


def _client_property(name: str) -> str:
    from tagwire.client.config import check_name  # not before it is needed: PySpark looks at every data source

    if name in _OURS_TO_SET:
        raise ConfigError(f"option kafka.{name}: cannot be set, {_OURS_TO_SET[name]}")
    check_name(name, "option kafka.")
    return name


def _selection(given: Mapping[str, str]) -> Selection:
    named = [name for name in _SELECTIONS if name in given]
    if len(named) != 1:
        said = f"{' and '.join(named)}: set together" if named else f"{' or '.join(_SELECTIONS)}: missing"
        raise ConfigError(f"option {said}; exactly one of {', '.join(_SELECTIONS)} has to name the topics")
    if named[0] == "assign":
        return Selection(assign=_assigned(given["assign"]))
    if named[0] == "subscribe":
        return Selection(subscribe=topic_names(given))
    return Selection(pattern=pattern("subscribePattern", given))


def _assigned(text: str) -> dict[str, tuple[int, ...]]:
    assigned: dict[str, tuple[int, ...]] = {}
    for topic, indexes in object_of(text, "assign").items():
        good = isinstance(indexes, list) and indexes and all(type(i) is int and 0 <= i < 2**31 for i in indexes)
        if not good or len(set(indexes)) != len(indexes):
            wrong_json("assign", text, f"topic {topic!r} needs its partitions, each once")
        assigned[topic] = tuple(sorted(indexes))
    if not assigned:
        wrong_json("assign", text, "names no topic")
    return assigned
