"""The options of the `tagwire` data source: text in, checked values out.

Names and meanings are those of Spark's Kafka connector, so that a query moves over by changing its format. Option
names are matched in any case: Spark hands them over in lower case. Source: facts/spark_data_source.md section 4.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from tagwire.errors import ConfigError

EARLIEST = -2
LATEST = -1

Partition = tuple[str, int]
"""A topic's name and a partition's index."""

Offsets = dict[Partition, int]
"""The next offset to read, per partition."""

Bound = int | Offsets
"""Where a read starts or ends: `EARLIEST` or `LATEST` for every partition, or one offset (or -2, -1) for each."""

_NAMES = (
    "kafka.bootstrap.servers",
    "assign",
    "subscribe",
    "subscribePattern",
    "startingOffsets",
    "endingOffsets",
    "maxOffsetsPerTrigger",
    "minPartitions",
    "failOnDataLoss",
    "includeHeaders",
)
_KNOWN = {name.lower(): name for name in _NAMES}
_SPARKS_OWN = {"path", "paths"}
_SELECTIONS = ("assign", "subscribe", "subscribePattern")
_OURS_TO_SET = {
    "auto.offset.reset": "startingOffsets says where a read starts",
    "enable.auto.commit": "the checkpoint of the query keeps the offsets",
    "interceptor.classes": "interceptors are Java classes",
    "key.deserializer": "keys are read as bytes",
    "value.deserializer": "values are read as bytes",
    "key.serializer": "keys are bytes",
    "value.serializer": "values are bytes",
}
_MAX_OFFSET = 2**63 - 1


@dataclass(frozen=True)
class Selection:
    """Which partitions are read. Exactly one of the three is set."""

    assign: dict[str, tuple[int, ...]] = field(default_factory=dict)
    subscribe: tuple[str, ...] = ()
    pattern: str = ""

    def matches(self, topic: str) -> bool:
        """Whether `subscribePattern` takes this topic: the whole name has to match."""
        return re.fullmatch(self.pattern, topic) is not None


@dataclass(frozen=True)
class TopicOptions:
    """The options of one read, checked. Use `batch_bounds` or `stream_start` for what depends on the kind of read."""

    selection: Selection
    client: dict[str, str]
    starting: Bound | None = None
    ending: Bound | None = None
    max_offsets_per_trigger: int | None = None
    min_partitions: int | None = None
    fail_on_data_loss: bool = True
    include_headers: bool = False


def parse(options: Mapping[str, str]) -> TopicOptions:
    """The options of a read, checked.

    Raises:
        ConfigError: an option is unknown, missing, contradicts another or has a wrong value; the text names it.
    """
    given: dict[str, str] = {}
    client: dict[str, str] = {}
    for name, value in options.items():
        lower = name.lower()
        if lower.startswith("kafka."):
            client[_client_property(lower.removeprefix("kafka."))] = value
        elif lower in _KNOWN:
            given[_KNOWN[lower]] = value
        elif lower not in _SPARKS_OWN:
            raise ConfigError(f"option {name}={value!r}: unknown; known are {', '.join(_NAMES)} and kafka.*")
    if not client.get("bootstrap.servers", "").strip():
        raise ConfigError("option kafka.bootstrap.servers: missing; give the brokers as HOST:PORT,HOST:PORT")
    return TopicOptions(
        selection=_selection(given),
        client=client,
        starting=_bound("startingOffsets", given),
        ending=_bound("endingOffsets", given),
        max_offsets_per_trigger=_count("maxOffsetsPerTrigger", given),
        min_partitions=_count("minPartitions", given),
        fail_on_data_loss=_flag("failOnDataLoss", given, default=True),
        include_headers=_flag("includeHeaders", given, default=False),
    )


def batch_bounds(options: TopicOptions) -> tuple[Bound, Bound]:
    """First and end offsets of a batch read: earliest to latest unless said otherwise.

    Raises:
        ConfigError: startingOffsets asks for the latest, or endingOffsets for the earliest.
    """
    starting = EARLIEST if options.starting is None else options.starting
    ending = LATEST if options.ending is None else options.ending
    _forbid("startingOffsets", starting, LATEST, "latest (-1) leaves a batch nothing to read; use earliest or offsets")
    _forbid("endingOffsets", ending, EARLIEST, "earliest (-2) leaves a batch nothing to read; use latest or offsets")
    return starting, ending


def stream_start(options: TopicOptions) -> Bound:
    """Where a new streaming query starts: latest unless said otherwise.

    Raises:
        ConfigError: endingOffsets is set.
    """
    if options.ending is not None:
        raise ConfigError("option endingOffsets: only for batch reads; a streaming read has no end")
    return LATEST if options.starting is None else options.starting


def parse_offsets(text: str, option: str) -> Offsets:
    """Offsets per partition from the connector's JSON, `{"topic":{"0":23,"1":-2}}`.

    Raises:
        ConfigError: not such JSON, a partition named twice, or a number that is no offset.
    """
    offsets: Offsets = {}
    for topic, partitions in _json_object(text, option).items():
        if not isinstance(partitions, dict) or not partitions:
            _wrong_json(option, text, f"topic {topic!r} needs its partitions")
        for index, offset in partitions.items():
            if not re.fullmatch(r"0|[1-9]\d{0,9}", index):
                _wrong_json(option, text, f"{topic!r} has no partition {index!r}")
            if type(offset) is not int or not EARLIEST <= offset <= _MAX_OFFSET:
                _wrong_json(option, text, f"{topic}-{index} has no offset {offset!r}")
            offsets[topic, int(index)] = offset
    return offsets


def _client_property(name: str) -> str:
    if name in _OURS_TO_SET:
        raise ConfigError(f"option kafka.{name}: cannot be set, {_OURS_TO_SET[name]}")
    return name


def _selection(given: Mapping[str, str]) -> Selection:
    named = [name for name in _SELECTIONS if name in given]
    if len(named) != 1:
        said = f"{' and '.join(named)}: set together" if named else f"{' or '.join(_SELECTIONS)}: missing"
        raise ConfigError(f"option {said}; exactly one of {', '.join(_SELECTIONS)} has to name the topics")
    text = given[named[0]]
    if named[0] == "assign":
        return Selection(assign=_assigned(text))
    if named[0] == "subscribe":
        topics = [topic.strip() for topic in text.split(",")]
        if not all(topics):
            raise ConfigError(f"option subscribe={text!r}: needs topic names, separated by commas")
        return Selection(subscribe=tuple(dict.fromkeys(topics)))
    try:
        re.compile(text)
    except re.error as error:
        raise ConfigError(f"option subscribePattern={text!r}: not a regular expression: {error}") from None
    if not text:
        raise ConfigError("option subscribePattern='': needs a regular expression")
    return Selection(pattern=text)


def _assigned(text: str) -> dict[str, tuple[int, ...]]:
    assigned: dict[str, tuple[int, ...]] = {}
    for topic, indexes in _json_object(text, "assign").items():
        good = isinstance(indexes, list) and indexes and all(type(i) is int and 0 <= i < 2**31 for i in indexes)
        if not good or len(set(indexes)) != len(indexes):
            _wrong_json("assign", text, f"topic {topic!r} needs its partitions, each once")
        assigned[topic] = tuple(sorted(indexes))
    if not assigned:
        _wrong_json("assign", text, "names no topic")
    return assigned


def _bound(option: str, given: Mapping[str, str]) -> Bound | None:
    if option not in given:
        return None
    text = given[option]
    words = {"earliest": EARLIEST, "latest": LATEST}
    if text.strip().lower() in words:
        return words[text.strip().lower()]
    return parse_offsets(text, option)


def _forbid(option: str, bound: Bound, forbidden: int, why: str) -> None:
    if forbidden in (bound.values() if isinstance(bound, dict) else (bound,)):
        raise ConfigError(f"option {option}: {why}")


def _count(option: str, given: Mapping[str, str]) -> int | None:
    if option not in given:
        return None
    text = given[option].strip()
    if not re.fullmatch(r"[0-9]{1,19}", text) or not 0 < int(text) <= _MAX_OFFSET:
        raise ConfigError(f"option {option}={given[option]!r}: needs a whole number above 0")
    return int(text)


def _flag(option: str, given: Mapping[str, str], *, default: bool) -> bool:
    text = given.get(option, str(default)).strip().lower()
    if text not in ("true", "false"):
        raise ConfigError(f"option {option}={given[option]!r}: needs true or false")
    return text == "true"


def _json_object(text: str, option: str) -> dict[str, Any]:
    try:
        value = json.loads(text, object_pairs_hook=_each_key_once)
    except (ValueError, RecursionError) as error:
        _wrong_json(option, text, str(error))
    if not isinstance(value, dict):
        _wrong_json(option, text, "not a JSON object")
    return value


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = dict(pairs)
    if len(keys) != len(pairs):
        raise ValueError("a key stands there twice")
    return keys


def _wrong_json(option: str, text: str, why: str) -> NoReturn:
    allowed = {"assign": '{"topic":[0,1]}', "endingOffsets": 'latest or {"topic":{"0":23,"1":-1}}'}
    hint = allowed.get(option, 'earliest, latest or {"topic":{"0":23,"1":-2}}')
    raise ConfigError(f"option {option}={text[:200]!r}: {why}; allowed: {hint}")
